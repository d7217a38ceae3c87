"""Fleets whose parts react to one another: routers that look at load, clients who try again, autoscalers."""

from __future__ import annotations

from .gathering import CoupledGathering
from .retries import Retries
from .routing import POLICIES, Routing
from .scaling import Lives
from .throttle import Throttle

__all__ = ["POLICIES", "CoupledGathering", "Lives", "Retries", "Routing", "Throttle"]
