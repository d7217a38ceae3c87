"""How sure it is, in words."""

from __future__ import annotations

import pytest

from engine.catalog import accelerators
from engine.machine import Evidence, engines, family_of, published, replica_evidence
from engine.scenario import Scenario
from ui import confidence
from ui.words import NBSP

SERVICE = Scenario.from_dict({})


def said(monkeypatch: pytest.MonkeyPatch, status: str, scenario: Scenario = SERVICE) -> tuple[str, str]:
    """The caption's and the assumption's words for an invented class."""
    found = Evidence("hopper", "vllm", "dense", status, 8.2, 35.0, 12, "dense models on all families")  # type: ignore[arg-type]
    monkeypatch.setattr(confidence, "replica_evidence", lambda _: found)
    monkeypatch.setattr("engine.machine.confidence.replica_evidence", lambda _: found)
    return tuple(text.replace(NBSP, " ") for text in (confidence.status(scenario), confidence.assumption(scenario)))  # type: ignore[return-value]


def test_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    caption, assumption = said(monkeypatch, "calibrated")
    assert caption == (
        "step times calibrated (Hopper, vLLM, dense models): within 8 % for half, 35 % for nine in ten of published "
        "deployments not used in the fit"
    )
    assert "calibrated for Hopper, vLLM, dense models. Published measurements of H100" in assumption
    assert assumption.endswith("8 % for half, 35 % for nine in ten of 12 published deployments not used in the fit.")


@pytest.mark.parametrize("status", ["extrapolated", "not calibrated"])
def test_less_sure(monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    caption, assumption = said(monkeypatch, status)
    assert f"step times {status}" in caption
    assert f"**Step times:** {status} for" in assumption
    assert "the error is that of dense models on all families." in assumption


def test_a_correction_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    own = SERVICE.replace({"performance.scale": {"tpot": 1.3, "prefill": 1.3}})
    caption, assumption = said(monkeypatch, "calibrated", own)
    assert "corrected by your measurement" in caption
    assert assumption.endswith("Your measurement corrects them.")


def test_a_measured_profile_says_so() -> None:
    linear = Scenario.from_dict({"performance": {"kind": "linear", "overhead_s": 0.1}})
    assert confidence.status(linear) == "step times from a measured profile"
    assert "measured profile" in confidence.assumption(linear)


def test_every_scenario_s_class_has_its_words() -> None:
    for engine in engines():
        found = replica_evidence(SERVICE.replace({"performance.engine": engine}))
        assert found is not None
        assert found.status in ("calibrated", "extrapolated", "not calibrated")
    families = {family_of(row) for row in accelerators().values()} | {p.family for p in published()}
    assert families <= set(confidence.FAMILIES)
    assert not [p.engine for p in published() if confidence.engine_word(p.engine) == p.engine]
