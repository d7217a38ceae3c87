"""Every page draws every kind of scenario: with what it has to say, or with words about why it can't; never a fault."""

from __future__ import annotations

from typing import Any

import pytest

from engine.scenario import Scenario
from tests.ui.visitor import QUICK, ROOT, said, visit

PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "silence": {"traffic.rate_rps": 1e-6},
    "closed": {"traffic.process": "closed", "traffic.rate_rps": 4.0, "traffic.closed": {"users": 8, "ramp_s": 5.0}},
    "no promise": {"slo": []},
    "two pools": {"batching.policy": "disaggregated"},
    "groups": {"batching.policy": "static"},
    "autoscaler": {"autoscaler.policy": "hpa", "fleet.replicas": 1},
    "retries": {
        "traffic.client.max_retries": 2,
        "traffic.client.timeout_s": 3.0,
        "traffic.client.on_timeout": "ignore",
    },
    "actions": {"traffic.client.fan_out": 5},
    "client": {"slo": [{"measured_at": "client", "metric": "e2e", "threshold_s": 3.0}]},
    "overload": {"traffic.rate_rps": 60.0, "admission.max_outstanding": 10},
    "nobody fits": {"batching.kv_capacity_tokens": 2},
    "a real machine": {"performance": {"kind": "analytic"}, "run.horizon_s": 60.0},
    "pipeline": {"performance": {"kind": "analytic"}, "parallelism.pp": 2, "run.horizon_s": 60.0},
    "split": {"performance": {"kind": "analytic"}, "parallelism.cp": 2, "run.horizon_s": 60.0},
    "divided": {"performance": {"kind": "analytic"}, "parallelism.sp": "operators", "run.horizon_s": 60.0},
    "experts": {
        "performance": {"kind": "analytic"},
        "model.name": "Qwen3-235B-A22B",
        "parallelism": {"tp": 1, "ep": 8},
        "run.horizon_s": 60.0,
    },
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_draws_every_kind_of_scenario(page: str, kind: str) -> None:
    scenario: Scenario = QUICK.replace(KINDS[kind])
    assert said(visit(scenario.to_link(), f"pages/{page}.py"))
