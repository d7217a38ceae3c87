"""Each preset tells the story that it was chosen for."""

from __future__ import annotations

import numpy as np

from engine import Result, Scenario, simulate
from engine.scenario import preset

MINUTE = 60.0


def late_by_minute(result: Result) -> np.ndarray:
    """Share of the requests of each minute that missed the first promise."""
    a, scored = result.run.attempts, result.scored(result.scenario.slo[0])
    minute = (a.arrival_s // MINUTE).astype(int)
    valid = np.bincount(minute[scored.valid])
    return 1 - np.bincount(minute[scored.good], minlength=valid.size) / valid


def run(name: str, **changes: object) -> Result:
    """The preset with settings changed; ``__`` stands for a dot."""
    scenario: Scenario = preset(name).scenario
    return simulate(scenario.replace({path.replace("__", "."): value for path, value in changes.items()}))


def test_monday_is_fine_on_average_and_not_at_nine() -> None:
    result = run("monday")
    promise, late = result.attainments[0], late_by_minute(result)
    assert promise.met
    assert 3 <= 1 / late.max() <= 12, "one in a few in the busiest minute"
    assert late.argmax() in (5, 6), "which is that of the spike"
    assert np.median(late) < 0.02


def test_monday_without_its_spike_has_no_bad_minute() -> None:
    late = late_by_minute(run("monday", traffic__shape={"kind": "steady"}))
    assert late.max() < 0.1


def test_the_average_lies_only_when_requests_come_in_clumps() -> None:
    clumped, even = run("average-lies"), run("average-lies", traffic__cv=1)
    assert clumped.attainments[0].met is False
    assert even.attainments[0].met is True
    assert (even.attainments[0].per_seed >= 0.95).all()
    counts = [r.summary()["requests"]["offered"] for r in (clumped, even)]
    assert abs(counts[0] / counts[1] - 1) < 0.03, "the same number of requests"
    assert clumped.capacity_rps is not None
    assert 2.8 < 0.75 * 4 * clumped.capacity_rps, "far below what the fleet can serve"
