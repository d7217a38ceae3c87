"""Where the names of points go in a chart: beside their points, none over another. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_WIDTHS_PX, _HEIGHT_PX = (305.0, 620.0, 960.0), 285.0
"""Of the plot: on a telephone, on a tablet and on a desk."""
_LETTER_PX, _LINE_PX, _MARKER_PX, _GAP_PX = 5.7, 13.0, 12.0, 1.5


class _Box(NamedTuple):
    left: float
    right: float
    low: float
    high: float

    def over(self, other: _Box) -> bool:
        """Whether the two have any place in common."""
        beside = self.right <= other.left or other.right <= self.left
        return not (beside or self.high <= other.low or other.high <= self.low)


def placed(points: Sequence[tuple[float, float]], texts: Sequence[str], first: Sequence[int]) -> list[str | None]:
    """Where each text stands at its point, in Plotly's words; ``None``: nowhere without being over another text or
    point, or beyond the edge.

    Points are shares of the plot's width and height, from 0 to 1. Those named ``first`` have the choice, in that order.
    """
    markers = [[_marker(x * width, y * _HEIGHT_PX) for x, y in points] for width in _WIDTHS_PX]
    taken: list[list[_Box]] = [[] for _ in _WIDTHS_PX]
    found: list[str | None] = [None] * len(points)
    for i in [*first, *(i for i in range(len(points)) if i not in first)]:
        for where in ("top center", "bottom center", "middle right", "middle left"):
            boxes = [_box(points[i][0] * w, points[i][1] * _HEIGHT_PX, texts[i], where) for w in _WIDTHS_PX]
            if all(
                box.left >= 0
                and box.right <= width + _GAP_PX
                and box.low >= 0
                and not any(box.over(other) for other in before)
                and not any(box.over(marker) for j, marker in enumerate(others) if j != i)
                for box, width, before, others in zip(boxes, _WIDTHS_PX, taken, markers, strict=True)
            ):
                found[i] = where
                for box, before in zip(boxes, taken, strict=True):
                    before.append(box)
                break
    return found


def _marker(x: float, y: float) -> _Box:
    half = _MARKER_PX / 2
    return _Box(x - half, x + half, y - half, y + half)


def _box(x: float, y: float, text: str, where: str) -> _Box:
    """The place of a text at a point, pixels."""
    width, off = len(text) * _LETTER_PX, _MARKER_PX / 2 + _GAP_PX
    if where.endswith("center"):
        low = y + off if where.startswith("top") else y - off - _LINE_PX
        return _Box(x - width / 2, x + width / 2, low, low + _LINE_PX)
    left = x + off if where.endswith("right") else x - off - width
    return _Box(left, left + width, y - _LINE_PX / 2, y + _LINE_PX / 2)
