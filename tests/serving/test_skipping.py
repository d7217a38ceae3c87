"""The closed form that skips over steps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine import Scenario, simulate
from engine.serving.clock import end_of, steps_to


@given(
    d=st.integers(1, 400),
    slope=st.integers(0, 40),
    k=st.integers(1, 500),
    gap=st.integers(1, 10**6),
    t=st.integers(0, 10**6),
)
def test_steps_to_a_time_are_those_that_counting_finds(d: int, slope: int, k: int, gap: int, t: int) -> None:
    slope = min(slope, d)  # a step reads every context, so it is longer than one context's growth
    clock, steps = t, 0
    while steps < k:
        clock += d + slope * steps
        steps += 1
        if clock >= t + gap:
            break
    as_arrays = [np.array([x * 2.0**-10]) for x in (t, d, slope)]
    found, _ = steps_to(*as_arrays, np.array([k]), np.array([(t + gap) * 2.0**-10]))
    assert found[0] == steps
    assert end_of(*as_arrays, found)[0] == clock * 2.0**-10


def test_a_week_of_short_steps_has_more_than_32_bits_of_them() -> None:
    s = Scenario.from_dict(
        {
            "traffic": {
                "process": "deterministic",
                "rate_rps": 2.0**-8,
                "classes": [
                    {
                        "name": "all",
                        "prompt_tokens": {"dist": "constant", "value": 1},
                        "output_tokens": {"dist": "constant", "value": 2**24},
                    }
                ],
            },
            "performance": {"kind": "linear", "overhead_s": 2.0**-17},
            "batching": {"max_num_seqs": 1, "max_num_batched_tokens": 1},
            "fleet": {"replicas": 1},
            "run": {"horizon_s": 2.0**16, "warmup_s": 0, "seeds": 1},
            "slo": [],
        }
    )
    result = simulate(s)
    done = result.requests[result.requests.state == "completed"]
    assert len(done) == 255, "one every 256 s"
    assert (done.finish_s - done.arrival_s == 128.0).all(), "2^24 steps of 2^-17 s"
    assert len(done) * 2**24 > 2**31
