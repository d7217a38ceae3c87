"""The About page's figures."""

from __future__ import annotations

import numpy as np
import pytest

from engine.machine import published
from engine.study import recorded_runs
from ui import about_charts
from ui.about_charts import MARKS, METRICS, UNITS, curves, curves_table, scatter, scatter_table


def test_no_two_families_look_alike() -> None:
    assert len({symbol for _, symbol in MARKS.values()}) == len(MARKS)


@pytest.mark.parametrize("metric", METRICS)
def test_a_scatter_has_every_point_in_its_unit(metric: str) -> None:
    points = [p for p in published() if p.metric == metric]
    figure = scatter(points, 0.2)
    dots = [trace for trace in figure.data if trace.mode == "markers"]
    assert sum(len(trace.x) for trace in dots) == len(points) == len(scatter_table(points))
    assert {trace.name for trace in dots} == {about_charts.FAMILIES[p.family] for p in points}
    scale = UNITS[metric][1]
    assert max(np.max(trace.x) for trace in dots) == pytest.approx(scale * max(p.measured for p in points), rel=1e-6)


def test_the_band_is_a_share_either_way() -> None:
    points = [p for p in published() if p.metric == "tpot"][:5]
    low, high, same = scatter(points, 0.25).data[:3]
    np.testing.assert_allclose(np.array(low.y) / np.array(low.x), 0.75)
    np.testing.assert_allclose(np.array(high.y) / np.array(high.x), 1.25)
    np.testing.assert_allclose(same.x, same.y)


def test_curves_have_both_panels_and_all_sides() -> None:
    for run in recorded_runs():
        figure = curves(run)
        assert len(figure.data) == 6
        assert sum(bool(trace.showlegend) for trace in figure.data) == 3
        assert len(curves_table(run)) == run.time_s.size
