"""What a promise must name, and what each of its parts does to the number: from one run, judged again and again."""

from __future__ import annotations

from .terms import Terms, terms

__all__ = ["Terms", "terms"]
