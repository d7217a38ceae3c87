"""What is said about a scenario that can't be accepted, word by word."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine.scenario import Problem, Scenario, ScenarioError


def said(document: Any) -> list[str]:
    with pytest.raises(ScenarioError) as raised:
        Scenario.from_dict(document)
    lines = str(raised.value).splitlines()
    assert lines == [str(problem) for problem in raised.value.problems]
    return lines


def traffic(**settings: Any) -> dict[str, Any]:
    return {"traffic": settings}


def prompt(**length: Any) -> dict[str, Any]:
    return traffic(classes=[{"prompt_tokens": length}])


def shape(**settings: Any) -> dict[str, Any]:
    return traffic(shape=settings)


CASES: list[tuple[str, Any, str]] = [
    # bounds and types
    ("below", {"fleet": {"replicas": 0}}, "fleet.replicas: 0 is below 1; give a whole number from 1 to 4,096"),
    ("above", {"run": {"seeds": 1025}}, "run.seeds: 1025 is above 1,024; give a whole number from 1 to 1,024"),
    (
        "week",
        {"run": {"horizon_s": 604_801}},
        "run.horizon_s: 604801 is above 604,800; give a number from 0.001 to 604,800, "
        "or null (until a trace's last request has ended)",
    ),
    ("bool", {"run": {"seeds": True}}, "run.seeds: true is not a whole number; give a whole number from 1 to 1,024"),
    ("text", {"run": {"seeds": "16"}}, 'run.seeds: "16" is not a whole number; give a whole number from 1 to 1,024'),
    ("part", {"run": {"seeds": 1.5}}, "run.seeds: 1.5 is not a whole number; give a whole number from 1 to 1,024"),
    (
        "fraction",
        {"run": {"seeds": 16.0}},
        "run.seeds: 16.0 is written as a fraction; give a whole number from 1 to 1,024",
    ),
    (
        "nan",
        traffic(rate_rps=float("nan")),
        "traffic.rate_rps: NaN is not a finite number; give a number from 0.000001 to 100,000",
    ),
    (
        "null",
        {"fleet": {"replicas": None}},
        "fleet.replicas: null is not a whole number; give a whole number from 1 to 4,096",
    ),
    (
        "switch",
        {"fleet": {"routing": {"count_own_sends": 1}}},
        "fleet.routing.count_own_sends: 1 is not true or false; give true or false",
    ),
    ("not an object", {"run": None}, "run: null is not an object; give an object"),
    ("not a list", {"slo": {}}, "slo: {} is not a list; give a list of 0 to 20 items"),
    ("null item", {"slo": [None]}, "slo.0: null is not an object; give an object"),
    ("number for a class", traffic(classes=[{}, 3]), "traffic.classes.1: 3 is not an object; give an object"),
    ("no class", traffic(classes=[]), "traffic.classes: [] is shorter than 1; give a list of 1 to 32 items"),
    ("line break", {"name": "a\nb"}, 'name: "a\\nb" contains control characters; give one line of printable text'),
    # keys
    ("unknown", {"fleet": {"replcas": 3}}, "fleet.replcas: unknown key; did you mean fleet.replicas?"),
    ("elsewhere", {"max_num_seqs": 3}, "max_num_seqs: unknown key; did you mean batching.max_num_seqs?"),
    (
        "other shape",
        shape(kind="spike", to_factor=3),
        "traffic.shape.to_factor: unknown key for kind spike; it belongs to kind ramp",
    ),
    ("no shape", shape(at_s=3), "traffic.shape.at_s: unknown key for kind steady; it belongs to kind spike"),
    (
        "other dist",
        prompt(dist="constant", cv=1),
        "traffic.classes.0.prompt_tokens.cv: unknown key for dist constant; it belongs to dist lognormal",
    ),
    (
        "other profile",
        {"performance": {"kind": "linear", "token_s": 1, "engine": "vllm"}},
        "performance.engine: unknown key for kind linear; it belongs to kind analytic",
    ),
    # choices
    (
        "choice",
        traffic(process="posson"),
        'traffic.process: "posson" is not one of the choices; did you mean poisson? '
        "give deterministic, poisson, gamma, mmpp, trace or closed",
    ),
    (
        "shape's kind",
        shape(kind="spoke"),
        'traffic.shape.kind: "spoke" is not one of the choices; did you mean spike? '
        "give steady, ramp, steps, spike or diurnal",
    ),
    (
        "kind's type",
        shape(kind=3),
        "traffic.shape.kind: 3 is not one of the choices; give steady, ramp, steps, spike or diurnal",
    ),
    (
        "in a list",
        {"slo": [{"failures": ["late"]}]},
        'slo.0.failures.0: "late" is not one of the choices; give rejected, timed_out or unfinished',
    ),
    # rules
    (
        "rate and trace",
        traffic(process="trace", rate_rps=8),
        "traffic.rate_rps: 8 has no effect with process trace: the trace sets the rate; leave rate_rps out (or at 4)",
    ),
    (
        "shape and trace",
        traffic(process="trace", shape={"kind": "spike"}),
        'traffic.shape.kind: "spike" has no effect with process trace: the trace sets the rate; '
        "use shape steady, or a process with a rate_rps",
    ),
    (
        "bursts",
        traffic(mmpp={"burst_ratio": 4, "burst_fraction": 0.5}),
        "traffic.mmpp.burst_ratio: 4 times burst_fraction (0.5) is above 1: bursts would bring more than all traffic; "
        "give a burst_ratio up to 2, or a smaller burst_fraction",
    ),
    (
        "too many bursts",
        traffic(process="mmpp", mmpp={"mean_burst_s": 1e-4}),
        "traffic.mmpp.mean_burst_s: 0.0001 makes about 14,400,000 bursts in 16 seeds of 900 s, more than 5,000,000; "
        "give longer bursts, or use process poisson: so short ones can't be told from it",
    ),
    (
        "growth without an end",
        {"traffic": {"process": "trace", "growth": {"output_factor": 2}}, "run": {"horizon_s": None}},
        "run.horizon_s: null leaves open when traffic.growth is complete; give the seconds to simulate",
    ),
    (
        "budget",
        {"batching": {"max_num_batched_tokens": 128}},
        "batching.max_num_batched_tokens: 128 is below max_num_seqs (256): not all running could get a token, "
        "and vLLM refuses it; give at least 256, or a smaller max_num_seqs",
    ),
    (
        "watermark",
        {"batching": {"watermark": 0.1, "kv_policy": "reserve"}},
        "batching.watermark: 0.1 has no effect with kv_policy reserve; leave it at 0, or use kv_policy on_demand",
    ),
    (
        "no time",
        {"performance": {"kind": "linear", "seq_s": 1}},
        "performance: overhead_s + max(weights_s, token_s) is 0: steps would take no time; "
        "give at least one of the three a value above 0",
    ),
    (
        "min",
        prompt(min=9, max=8),
        "traffic.classes.0.prompt_tokens.min: 9 is above max (8); give a min that is at most max",
    ),
    (
        "low",
        prompt(dist="uniform", low=9, high=8),
        "traffic.classes.0.prompt_tokens.low: 9 is above high (8); give a low that is at most high",
    ),
    (
        "weights",
        prompt(dist="empirical", values=[1, 2], weights=[1]),
        "traffic.classes.0.prompt_tokens.weights: has 1 entries where values has 2; give one weight for each value",
    ),
    (
        "no weight",
        prompt(dist="empirical", values=[1, 2], weights=[0, 0]),
        "traffic.classes.0.prompt_tokens.weights: are all 0; give at least one weight above 0",
    ),
    (
        "class names",
        traffic(classes=[{}, {}]),
        'traffic.classes: "chat" is the name of 2 classes; give every class a name of its own',
    ),
    (
        "slo names",
        {"slo": [{}, {}]},
        'slo: "first word" is the name of 2 promises; give every promise a name of its own',
    ),
    (
        "failures",
        {"slo": [{"failures": ["rejected"] * 2}]},
        'slo.0.failures: "rejected" is listed 2 times; list every state once',
    ),
    (
        "steps",
        shape(kind="steps", points=[[5, 2], [5, 1]]),
        "traffic.shape.points.1.0: 5 is not after 5; give the moments in rising order",
    ),
    (
        "row",
        shape(kind="steps", points=[[5]]),
        "traffic.shape.points.0.1: is missing; give a number from 0 to 1,000",
    ),
    (
        "warm-up",
        {"run": {"horizon_s": 60}},
        "run.warmup_s: 60 is not below horizon_s (60): nothing would be counted; "
        "give a shorter warm-up or a longer horizon",
    ),
    (
        "open end",
        {"run": {"horizon_s": None}},
        "run.horizon_s: null is only possible with a trace, and process is poisson; give the seconds to simulate",
    ),
    (
        "too many requests",
        {"run": {"horizon_s": 604_800, "seeds": 1024}},
        "traffic.rate_rps: 4 brings about 2,477,260,800 requests in 1,024 seeds of 604,800 s, more than 20,000,000; "
        "lower traffic.rate_rps, run.horizon_s or run.seeds",
    ),
    (
        "digest",
        traffic(process="trace", trace={"source": "sha256:ab"}),
        'traffic.trace.source: "sha256:ab" is not a digest; give sha256: and 64 lower-case hexadecimal digits',
    ),
    (
        "replicas",
        {"autoscaler": {"min_replicas": 5, "max_replicas": 4}},
        "autoscaler.min_replicas: 5 is above max_replicas (4); give a min_replicas that is at most max_replicas",
    ),
    # tables
    (
        "column",
        {"model": {"custom": {"layers": [80]}}},
        "model.custom.layers: is not a number, text, true, false or null; give a plain value",
    ),
    (
        "constant",
        {"performance": {"overrides": {"eta_c": "high"}}},
        "performance.overrides.eta_c: is not a number; give the constant's value",
    ),
    # versions
    ("newer", {"schema": 2}, "schema: 2 is newer than this version can read; use schema 1"),
    ("true", {"schema": True}, "schema: true is not a known version; use schema 1"),
    ("older", {"schema": 0}, "schema: 0 is not a known version; use schema 1"),
    ("no version", {"schema": "1"}, 'schema: "1" is not a known version; use schema 1'),
    # no document at all
    ("list", [], "[] is not an object; give a scenario: {...}"),
    ("number as key", {1: 2}, "1 is a key that is not a text; keys of the document are texts"),
    ("object", {"name": object}, "name: type is not a JSON value; give a JSON value"),
]


@pytest.mark.parametrize(("document", "line"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_one_fault_one_line(document: Any, line: str) -> None:
    assert said(document) == [line]


def test_all_faults_are_told_in_the_order_of_the_document() -> None:
    document = {"fleet": {"replicas": 0}, "traffic": {"rate": 3, "cv": 0}, "slo": [{"name": "a", "target": 2}]}
    assert [line.partition(":")[0] for line in said(document)] == [
        "traffic.cv",
        "traffic.rate",
        "fleet.replicas",
        "slo.0.target",
    ]


def test_a_problem_names_field_value_reason_remedy_and_the_nearest_value() -> None:
    with pytest.raises(ScenarioError) as raised:
        Scenario.from_dict({"fleet": {"replicas": 0}})
    (problem,) = raised.value.problems
    assert problem == Problem("fleet.replicas", "0", "is below 1", "give a whole number from 1 to 4,096")
    assert problem.nearest == (1,)


def test_the_spike_is_counted_in_the_number_of_requests() -> None:
    spike = {"kind": "spike", "at_s": 100, "factor": 11, "rise_s": 20, "hold_s": 80, "fall_s": 20}
    busy = {"traffic": {"rate_rps": 20_000, "shape": spike}, "run": {"horizon_s": 500, "seeds": 1}}
    # 20,000 * (500 + 10 * (10 + 80 + 10)): the flat part, and what the spike adds
    assert "brings about 30,000,000 requests" in said(busy)[0]
    cut = {**busy, "run": {"horizon_s": 210, "seeds": 1, "warmup_s": 0}}
    # the fall is cut half way: 10 * (10 + 80 + 7.5)
    assert "brings about 23,700,000 requests" in said(cut)[0]


@pytest.mark.parametrize(
    ("shape", "mean"),
    [
        ({"kind": "steady"}, 1.0),
        ({"kind": "spike", "at_s": 500, "factor": 9}, 1.0),
        ({"kind": "spike", "at_s": 0, "factor": 3, "rise_s": 0, "hold_s": 50, "fall_s": 0}, 2.0),
        ({"kind": "spike", "at_s": 50, "factor": 3, "rise_s": 100, "hold_s": 0, "fall_s": 0}, 1.25),
        ({"kind": "spike", "at_s": 0, "factor": 0, "rise_s": 0, "hold_s": 900, "fall_s": 0}, 0.0),
        ({"kind": "ramp", "to_factor": 4}, 2.5),
        ({"kind": "steps", "points": [[50, 3], [90, 0], [200, 9]]}, 1.7),
        ({"kind": "diurnal", "period_s": 100, "trough_factor": 0, "peak_at_s": 40}, 1.0),
        ({"kind": "diurnal", "period_s": 200, "trough_factor": 0.5, "peak_at_s": 50}, 1.0 + 1.0 / math.pi),
    ],
)
def test_mean_factor(shape: dict[str, Any], mean: float) -> None:
    scenario = Scenario.from_dict({"traffic": {"shape": shape}})
    assert scenario.traffic.shape.mean_factor(100.0) == pytest.approx(mean)
