"""Replicas that are pipelines: the model's layers lie in stages, and batches follow one another through them."""

from __future__ import annotations

from .engine import Pipelined

__all__ = ["Pipelined"]
