"""One measurement of one's own deployment: the correction reproduces it, and impossible ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.machine import scale_from_measurement
from engine.machine.calibration.own_point import _predicted
from engine.scenario import Scale, Scenario, ScenarioError

Build = Callable[..., Scenario]
SMALL = {"model.name": "Llama-3.1-8B", "model.weight_dtype": "bf16", "parallelism.tp": 1}


@pytest.mark.parametrize("metric", ["tpot", "output_tok_s"])
def test_the_correction_reproduces_the_measurement(scenario: Build, metric: Any) -> None:
    s = scenario(SMALL)
    figures = (metric, 1.0, 32, 1000.0, 200.0)
    predicted = _predicted(s, metric, *figures[2:])
    measured = 1.25 * predicted if metric == "tpot" else predicted / 1.25
    scale = scale_from_measurement(s, metric, measured, 32, 1000, 200)
    assert scale == Scale(tpot=1.25, prefill=1.25)
    # Given to the scenario, an earlier correction is replaced, not applied again.
    corrected = s.replace({"performance.scale": {"tpot": 1.25, "prefill": 1.25}})
    assert scale_from_measurement(corrected, metric, measured, 32, 1000, 200) == scale


def test_a_simulation_can_take_the_place_of_the_closed_form(scenario: Build) -> None:
    s = scenario({**SMALL, "performance.scale": {"tpot": 2.0, "prefill": 1.5}})
    assert scale_from_measurement(s, "tpot", 0.012, 32, 1000, 200, simulated=0.010) == Scale(tpot=2.4, prefill=1.8)
    rate = scale_from_measurement(s, "output_tok_s", 800, 32, 1000, 200, simulated=1000)
    assert rate == Scale(tpot=2.5, prefill=1.875)


def test_more_at_once_are_slower_and_make_more(scenario: Build) -> None:
    s = scenario(SMALL)
    few, many = (_predicted(s, "tpot", n, 1000, 200) for n in (4, 64))
    assert few < many
    few, many = (_predicted(s, "output_tok_s", n, 1000, 200) for n in (4, 64))
    assert few < many < 16 * few


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (("ttft", 0.01, 8, 100, 100), "measurement.metric: 'ttft' isn't known; give tpot or output_tok_s"),
        (("tpot", 0.0, 8, 100, 100), "measurement.value: 0.0 is not above 0; give what was measured"),
        (("tpot", float("nan"), 8, 100, 100), "measurement.value: nan is not a number"),
        (("tpot", 0.01, 0, 100, 100), "measurement.concurrency: 0 is below 1"),
        (("tpot", 0.01, 8, 100, 1), "measurement.output_tokens: 1 is below 2"),
        (("tpot", 8.0, 8, 100, 100), "measurement.value: 8 is "),
        (("tpot", 0.01, 8, 10_000_000, 100), "measurement.prompt_tokens: 1e+07 is more than the "),
    ],
)
def test_what_is_wrong_with_a_measurement_is_said(scenario: Build, figures: Any, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scale_from_measurement(scenario(SMALL), *figures)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_measured_profile_needs_no_correction(scenario: Build) -> None:
    s = scenario({"performance": {"kind": "linear", "overhead_s": 0.01}})
    with pytest.raises(ScenarioError, match=r'performance.kind: "linear" is a measured profile already'):
        scale_from_measurement(s, "tpot", 0.01, 8, 100, 100)


def test_a_model_that_does_not_fit_is_refused_in_words(scenario: Build) -> None:
    s = scenario({"model.name": "Llama-3.1-405B", "parallelism.tp": 1})
    with pytest.raises(ScenarioError, match=r"model.name"):
        scale_from_measurement(s, "tpot", 0.01, 8, 100, 100)
