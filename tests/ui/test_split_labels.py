"""Names of points in a chart stand clear of each other."""

from __future__ import annotations

from itertools import combinations

import pytest

from ui import split_labels
from ui.split_labels import placed

EIGHT_CHIPS = {
    "8 copies": (63.3, 495), "TP2 × 4 (now)": (94.3, 463), "CP2 × 4": (57.9, 429), "PP2 × 4": (51.4, 321),
    "TP4 × 2": (115.2, 380), "TP2·CP2 × 2": (85.2, 409), "CP4 × 2": (52.9, 347), "TP2·PP2 × 2": (72.0, 311),
    "PP4 × 2": (34.0, 217), "TP8": (113.7, 263), "TP4·CP2": (102.6, 321), "TP2·CP4": (76.4, 310), "CP8": (46.2, 237),
    "TP4·PP2": (81.0, 239), "TP2·PP4": (43.2, 182), "PP8": (14.7, 117),
}  # fmt: skip
"""As the preset's chart has them."""


@pytest.mark.parametrize("width", [305.0, 620.0, 960.0])
def test_all_of_the_presets_layouts_have_a_name_and_none_is_over_another(width: float) -> None:
    names, points = list(EIGHT_CHIPS), [(x / 150, y / 600) for x, y in EIGHT_CHIPS.values()]
    places = placed(points, names, [0, 1, 4])
    assert None not in places
    boxes = [
        split_labels._box(x * width, y * 285.0, name, place or "")
        for (x, y), name, place in zip(points, names, places, strict=True)
    ]
    assert not [(a, b) for a, b in combinations(boxes, 2) if a.over(b)]


def test_where_there_is_no_room_the_first_have_it() -> None:
    places = placed([(0.5, 0.5)] * 6, ["TP2·CP2 × 2"] * 6, [4])
    assert places == ["bottom center", "middle right", "middle left", None, "top center", None]


def test_at_the_edge_a_name_stands_inside() -> None:
    assert placed([(0.01, 0.5), (0.99, 0.5)], ["TP2·CP2", "TP2·CP4"], []) == ["middle right", "middle left"]
