"""How long the windows are in which nothing is decided between replicas doesn't decide what comes out."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Scenario, simulate
from engine.serving.coupled import gathering
from engine.serving.coupled.clock import noticing_s
from engine.serving.coupled.scaling import Scaling

SURGE = {"kind": "spike", "at_s": 100.0, "factor": 2.5, "rise_s": 5.0, "hold_s": 40.0, "fall_s": 5.0}
IMPATIENT = {"ttft_timeout_s": 8.0, "max_retries": 2, "backoff_s": 1.0}
LONG = [
    {
        "name": "all",
        "prompt_tokens": {"dist": "lognormal", "mean": 2000, "cv": 1.0, "max": 16000},
        "output_tokens": {"dist": "lognormal", "mean": 150, "cv": 1.0, "max": 2000},
    }
]


def scenario(**more: Any) -> Scenario:
    """Two replicas that a surge takes past what they can do."""
    document: dict[str, Any] = {
        "traffic": {"rate_rps": 9.0, "classes": LONG, "shape": SURGE},
        "run": {"horizon_s": 240.0, "warmup_s": 20.0, "seeds": 6},
    }
    for name, keys in more.items():
        document[name] = {**document.get(name, {}), **keys}
    return Scenario.from_dict(document)


RUNS = {
    "retries": scenario(traffic={"client": IMPATIENT}),
    "retries with a budget": scenario(traffic={"client": {**IMPATIENT, "retry_budget_ratio": 0.1}}),
    "throttled clients": scenario(
        traffic={"client": {**IMPATIENT, "throttle": {"k": 1.5, "window_s": 30.0}}}, admission={"max_outstanding": 60}
    ),
    "an autoscaler": scenario(
        autoscaler={
            "policy": "hpa", "metric": "outstanding", "target": 20.0, "min_replicas": 2, "max_replicas": 4,
            "startup": {"provision_s": 20.0, "image_pull_s": 10.0, "weights_load_s": 10.0, "warmup_s": 5.0},
        }
    ),
}  # fmt: skip


def p99(s: Scenario) -> float:
    """The 99th percentile of time to first token, seconds, of a run in which what is to be shown happened."""
    found: Any = simulate(s).summary()
    assert found["requests"]["retries"] > 100 or not s.traffic.client.max_retries
    assert found["autoscaler"] is None or found["autoscaler"]["most_ready"] > 2
    return float(found["latency_s"]["ttft"]["p99"])


@pytest.mark.accept
@pytest.mark.parametrize("name", RUNS)
def test_half_as_long_windows_change_p99_ttft_by_less_than_2_percent(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = p99(RUNS[name])
    monkeypatch.setattr(gathering, "noticing_s", lambda **kw: noticing_s(**kw) / 2)
    began = Scaling.__init__

    def closer(self: Scaling, *args: Any) -> None:
        began(self, *args)
        self.sample_every_s /= 2

    monkeypatch.setattr(Scaling, "__init__", closer)
    half = p99(RUNS[name])
    print(name, "p99 TTFT", whole, "with windows half as long", half)
    assert half == pytest.approx(whole, rel=0.02)
