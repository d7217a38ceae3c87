"""One measurement of the user's own deployment, turned into the scenario's correction."""

from __future__ import annotations

import math
from typing import Literal, get_args

from engine.machine.advice import does_not_fit
from engine.machine.calibration.prediction import plan_with, predict
from engine.machine.calibration.rows import Point
from engine.machine.deployment import deployment
from engine.machine.memory import memory
from engine.machine.replica import constants, largest_step
from engine.scenario import Analytic, Problem, Scale, Scenario, ScenarioError

Measured = Literal["tpot", "output_tok_s"]
_LEAST, _MOST = 0.1, 10.0  # bounds of the scenario's corrections


def scale_from_measurement(
    s: Scenario,
    metric: Measured,
    value: float,
    concurrency: float,
    prompt_tokens: float,
    output_tokens: float,
    simulated: float | None = None,
) -> Scale:
    """The correction with which a scenario's deployment reproduces one measurement of it.

    `metric` "tpot": mean seconds a token after the first; "output_tok_s": output tokens a second of one replica; with
    `concurrency` requests at once on that replica all the time (a closed loop), of mean lengths in tokens. All of a
    step but the front end is multiplied alike: on deployments left out of the fit that brings the rest of a
    deployment nearer. An earlier correction of `s` is replaced.

    `simulated`: what a simulation of `s` as it is says of the same load, in the unit of `value`; it takes the place of
    the closed form, which knows of no preemption and no waves, and the present correction is corrected.

    Raises ScenarioError in words: figures that can't be, a measured profile, a model that doesn't fit, and a
    measurement so far from the prediction that something else must be wrong.
    """
    if metric not in get_args(Measured):
        raise ScenarioError.of("measurement.metric", repr(metric), "isn't known", "give tpot or output_tok_s")
    figures = {
        "value": (value, 0.0),
        "concurrency": (concurrency, 1.0),
        "prompt_tokens": (prompt_tokens, 1.0),
        "output_tokens": (output_tokens, 2.0 if metric == "tpot" else 1.0),
    }
    if simulated is not None:
        figures["simulated"] = (simulated, 0.0)
    problems = [problem for name, (given, low) in figures.items() for problem in _faults(name, given, low)]
    if not isinstance(s.performance, Analytic):
        reason = "is a measured profile already"
        problems.append(Problem("performance.kind", '"linear"', reason, "correct its coefficients, or use analytic"))
    if problems:
        raise ScenarioError(problems)
    assert isinstance(s.performance, Analytic)
    closed = simulated is None
    predicted = _predicted(s, metric, concurrency, prompt_tokens, output_tokens) if closed else float(simulated or 0)
    slower = value / predicted if metric == "tpot" else predicted / value
    if not _LEAST <= slower <= _MOST:
        said = f"is {slower:.3g} times as slow as predicted ({predicted:.4g})"
        remedy = "check its unit (seconds, or tokens a second of one replica) and the scenario's model and hardware"
        raise ScenarioError.of("measurement.value", f"{value:.4g}", said, remedy)
    present = Scale() if closed else s.performance.scale
    tpot, prefill = (float(f"{slower * factor:.4g}") for factor in (present.tpot, present.prefill))
    return Scale(tpot=tpot, prefill=prefill)


def _faults(name: str, given: float, low: float) -> list[Problem]:
    shown, field = f"{given!r}", f"measurement.{name}"
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        return [Problem(field, shown, "is not a number", "give what was measured")]
    if given < low or given <= 0:
        return [Problem(field, shown, f"is below {low:g}" if low else "is not above 0", "give what was measured")]
    return []


def _predicted(s: Scenario, metric: Measured, concurrency: float, prompt: float, output: float) -> float:
    """What the scenario says of the measurement, without any correction."""
    steps = largest_step(s.batching)
    d = deployment(s, steps)
    c = constants(s, d)
    given, held = s.batching.kv_capacity_tokens, memory(d, c)
    if not held.fits:
        raise ScenarioError([does_not_fit(d, c)])
    capacity = held.kv_capacity_tokens if given is None else given
    if capacity < prompt + 1:
        reason = f"is more than the {capacity:,} tokens of KV that a replica holds"
        raise ScenarioError.of("measurement.prompt_tokens", f"{prompt:g}", reason, "check the scenario's hardware")
    seqs = max(1.0, min(concurrency, float(s.batching.max_num_seqs), capacity / (prompt + output / 2)))
    assert isinstance(s.performance, Analytic)
    point = Point(
        line=0,
        source="",
        metric=metric,
        load="static_batch" if s.batching.policy == "static" else "closed_loop",
        model=d.model,
        accelerator=d.accelerator,
        engine=s.performance.engine,
        published_engine=s.performance.engine,
        deployment=d,
        prompt=prompt,
        output=output,
        seqs=concurrency,
        value=1.0,
        waves=False,
    )
    return predict(plan_with(point, seqs), d, c)
