"""Ways of using so many chips for one model: which there are, what each does, and which is recommended."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from engine.outcome import Result
from engine.scenario import Problem, Scenario, ScenarioError
from engine.study import (
    Layout,
    LayoutOutcome,
    frontier,
    layout_changes,
    layout_outcome,
    layout_outcomes,
    layouts,
    present,
    recommend,
)
from engine.study.run import simulate_together
from engine.traffic import Trace, generate

SMALL = Scenario.from_dict(
    {
        "traffic": {
            "rate_rps": 4.0,
            "classes": [
                {
                    "prompt_tokens": {"dist": "constant", "value": 2000},
                    "output_tokens": {"dist": "constant", "value": 60},
                }
            ],
        },
        "model": {"name": "Llama-3.1-8B"},
        "parallelism": {"tp": 2},
        "fleet": {"replicas": 2},
        "run": {"horizon_s": 40, "warmup_s": 5, "seeds": 2},
    }
)


def shapes(found: tuple[Layout, ...]) -> set[tuple[int, int, int, int]]:
    return {(one.tp, one.pp, one.cp, one.replicas) for one in found if one.problem is None}


def test_every_way_of_dealing_out_four_chips() -> None:
    found = layouts(SMALL, 4)
    assert shapes(found) == {(1, 1, 1, 4), (2, 1, 1, 2), (4, 1, 1, 1), (1, 1, 2, 2), (1, 1, 4, 1), (2, 1, 2, 1),
                             (1, 2, 1, 2), (2, 2, 1, 1), (1, 4, 1, 1)}  # fmt: skip
    assert all(one.chips * one.replicas == 4 for one in found)
    assert [one.replicas for one in found] == sorted((one.replicas for one in found), reverse=True)
    assert present(SMALL) == 4


@pytest.mark.parametrize(
    ("changes", "chips", "layout", "field", "said"),
    [
        ({}, 6, (3, 1, 1), "parallelism.tp", "doesn't divide the 32 attention heads"),
        ({"model.name": "Mistral-Large-2411"}, 4, (1, 1, 1), "model.name", "at 8 bit needs"),
        ({}, 16, (16, 1, 1), "parallelism.tp", "is beyond the 8 H100-SXM-80GB that a fast link joins"),
        ({}, 16, (4, 1, 4), "parallelism.cp", "makes 16 devices, and a fast link joins 8"),
        ({}, 64, (1, 64, 1), "parallelism.pp", "stages are more than the 32 layers"),
        ({"traffic.rate_rps": 800}, 4, (1, 2, 1), "parallelism.pp", "with 16,000 requests a copy, more than the 6,000"),
        ({"autoscaler.policy": "hpa"}, 4, (1, 2, 1), "autoscaler.policy", "is not available yet"),
    ],
)
def test_layouts_that_cannot_work_say_why(
    changes: dict[str, object], chips: int, layout: tuple[int, int, int], field: str, said: str
) -> None:
    found = layouts(SMALL.replace(changes), chips)
    (one,) = [each for each in found if (each.tp, each.pp, each.cp) == layout]
    assert one.problem is not None
    assert one.problem.field == field
    assert said in one.problem.reason


def test_experts_over_chips_with_attention_of_their_own() -> None:
    deepseek = {"model.name": "DeepSeek-V3", "hardware.accelerator": "H200-SXM-141GB", "parallelism.tp": 8}
    found = layouts(SMALL.replace(deepseek), 8)
    spread = {one.ep: one for one in found if one.ep > 1}
    assert {ep: (one.chips, one.replicas) for ep, one in spread.items()} == {2: (2, 4), 4: (4, 2), 8: (8, 1)}
    assert spread[8].problem is None
    assert spread[8].changes == {"parallelism.tp": 1, "parallelism.pp": 1, "parallelism.cp": 1, "parallelism.ep": 8,
                                 "parallelism.sp": "none", "fleet.replicas": 1}  # fmt: skip
    assert spread[4].problem is not None, "671 GB on four chips"
    shared = next(one for one in found if one.tp == 8)
    more, less = (layout_outcome(SMALL.replace(deepseek), one) for one in (spread[8], shared))
    assert more.kv_capacity_tokens is not None
    assert less.kv_capacity_tokens is not None
    assert more.kv_capacity_tokens > 6 * less.kv_capacity_tokens, "each chip has an eighth of the latent KV, not all"


def test_long_traces_on_pipelines_take_too_long() -> None:
    replayed = SMALL.replace({"traffic.process": "trace", "traffic.trace.source": "a.csv"})
    problems = {one.pp: one.problem for one in layouts(replayed, 2, 12_002) if one.tp == one.cp == 1}
    assert problems[1] is None
    assert problems[2] is not None
    assert "with 12,002 requests a copy" in problems[2].reason
    assert all(one.problem is None for one in layouts(replayed, 2, 6_000))


def test_a_trace_is_compared_like_the_traffic_that_it_recorded() -> None:
    requests = generate(SMALL.traffic, SMALL.run, 1)
    recorded = Trace(
        requests.arrival_s, requests.prompt_tokens, requests.output_tokens, None, None, None, ("default",), "own",
        "of layouts", 0, (),
    )  # fmt: skip
    replayed = SMALL.replace({"traffic.process": "trace", "traffic.trace.source": "a.csv"})
    several = [one for one in layouts(replayed, 2, len(recorded)) if one.problem is None]
    found = layout_outcomes(replayed, several, recorded)
    for one, drawn in zip(found, layout_outcomes(SMALL, several), strict=True):
        assert one.tokens_per_gpu == pytest.approx(drawn.tokens_per_gpu, rel=0.03)
        assert one.lone_first_word_s == drawn.lone_first_word_s
    assert frontier(found)
    assert recommend(replayed, several, found) is not None


def test_too_many_chips() -> None:
    with pytest.raises(ScenarioError, match="give from 1 to 64"):
        layouts(SMALL, 65)


def test_tensor_buys_pace_copies_buy_throughput_and_context_the_first_word() -> None:
    copies, tensor, context = (
        layout_outcome(SMALL, Layout(tp, 1, cp, 4 // (tp * cp))) for tp, cp in ((1, 1), (4, 1), (1, 4))
    )
    assert copies.tokens_per_user is not None
    assert tensor.tokens_per_user is not None
    assert context.tokens_per_user is not None
    assert tensor.tokens_per_user > 1.2 * copies.tokens_per_user
    assert context.tokens_per_user < 1.05 * copies.tokens_per_user, "decoding is no faster"
    assert copies.tokens_per_gpu is not None
    assert tensor.tokens_per_gpu is not None
    assert copies.tokens_per_gpu > 1.1 * tensor.tokens_per_gpu
    assert copies.lone_first_word_s is not None
    assert context.lone_first_word_s is not None
    assert context.lone_first_word_s < 0.8 * copies.lone_first_word_s
    assert copies.runs == 2
    assert copies.capacity_rps == pytest.approx(4 * copies.tokens_per_gpu / 60)


def test_all_at_once_as_one_by_one() -> None:
    several = [one for one in layouts(SMALL, 4) if one.problem is None]
    assert layout_outcomes(SMALL, several) == [layout_outcome(SMALL, one) for one in several]
    users = SMALL.replace({"traffic.process": "closed", "traffic.closed.users": 8})
    assert layout_outcomes(users, several[:2]) == [layout_outcome(users, one) for one in several[:2]]


def test_few_at_a_time_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    several = [one for one in layouts(SMALL, 2) if one.problem is None]
    whole = layout_outcomes(SMALL, several)
    together: list[int] = []

    def watched(scenarios: list[Scenario], trace: Trace | None) -> list[Result]:
        together.append(len(scenarios))
        return simulate_together(scenarios, trace)

    module = import_module("engine.study.layouts")  # whose name in its package is the function's
    monkeypatch.setattr(module, "simulate_together", watched)
    monkeypatch.setattr(module, "MOST_TOGETHER", 700)  # 4 a second for 40 s, twice: 320 each
    assert layout_outcomes(SMALL, several) == whole
    assert together == [2, 2]


def test_two_pools_become_copies_that_read_in_chunks() -> None:
    pools = {"prefill_replicas": 1, "decode_replicas": 3}
    apart = SMALL.replace({"batching.policy": "disaggregated", "batching.disaggregated": pools, "parallelism.tp": 1})
    assert present(apart) == 4
    found = layouts(apart, 4)
    assert shapes(found) == shapes(layouts(SMALL, 4)), "pipelines, too"
    for one in found:
        changed = apart.replace(layout_changes(apart, one))
        assert (changed.batching.policy, changed.replicas) == ("chunked", one.replicas)


def test_a_pipeline_holds_as_much_as_tensor_parallel_and_is_slower_for_a_user() -> None:
    tensor, pipeline = (layout_outcome(SMALL, Layout(tp, pp, 1, 2)) for tp, pp in ((2, 1), (1, 2)))
    assert pipeline.kv_capacity_tokens == pytest.approx(tensor.kv_capacity_tokens, rel=0.02)
    assert pipeline.tokens_per_user is not None
    assert tensor.tokens_per_user is not None
    assert pipeline.tokens_per_user < 0.8 * tensor.tokens_per_user, "a pass takes what one chip alone would take"
    assert pipeline.lone_first_word_s is not None
    assert tensor.lone_first_word_s is not None
    assert pipeline.lone_first_word_s > 1.1 * tensor.lone_first_word_s


def outcome(tp: int, pace: float, per_gpu: float, met: bool | None = True, cp: int = 1) -> LayoutOutcome:
    layout = Layout(tp, 1, cp, 8 // (tp * cp))
    return LayoutOutcome(layout, pace, per_gpu, 10.0, 0.5, 0.99 if met else 0.5, met, 0.2, 100_000, 2)


COPIES, TWO, FOUR, EIGHT = (
    outcome(1, 40.0, 500.0),
    outcome(2, 70.0, 450.0),
    outcome(4, 90.0, 300.0),
    outcome(8, 80, 200),
)
ALL = [COPIES, TWO, FOUR, EIGHT]


def test_the_frontier_leaves_out_what_is_beaten_in_both() -> None:
    assert frontier(ALL) == (FOUR, TWO, COPIES)
    assert frontier([]) == ()
    assert frontier([replace(COPIES, tokens_per_user=None)]) == ()


def test_most_throughput_of_those_that_keep_the_promise() -> None:
    tried = [one.layout for one in ALL]
    calm = recommend(SMALL, tried, ALL)
    assert calm is not None
    assert (calm.best, calm.pressure, calm.kept) == (COPIES, "none", True)
    assert (calm.fastest, calm.most, calm.plain) == (FOUR, COPIES, COPIES)
    assert recommend(SMALL, tried, []) is None


@pytest.mark.parametrize(
    ("changes", "lone_s", "capacity_rps", "pressure"),
    [
        ({}, 0.2, 3.0, "requests"),  # of 4 a second
        ({}, 1.5, 10.0, "prompts"),  # of the two seconds promised for the first word
        ({"slo.0.metric": "tpot", "slo.0.threshold_s": 0.02}, 0.2, 10.0, "pace"),
    ],
)
def test_the_pressure_has_a_name(changes: dict[str, object], lone_s: float, capacity_rps: float, pressure: str) -> None:
    broken = replace(outcome(1, 40.0, 500.0, met=False), lone_first_word_s=lone_s, capacity_rps=capacity_rps)
    found = [broken, TWO, FOUR]
    advice = recommend(SMALL.replace(changes), [one.layout for one in found], found)
    assert advice is not None
    assert (advice.best, advice.pressure, advice.plain) == (TWO, pressure, broken)


def test_a_model_that_needs_several_chips_is_pressed_by_memory() -> None:
    alone = Layout(1, 1, 1, 8, Problem("model.name", "", "doesn't fit", ""))
    advice = recommend(SMALL, [alone, TWO.layout, FOUR.layout], [TWO, FOUR])
    assert advice is not None
    assert (advice.best, advice.pressure) == (TWO, "memory")


def test_without_a_layout_that_keeps_it_the_nearest_one() -> None:
    found = [outcome(1, 40.0, 500.0, met=False), replace(outcome(4, 90.0, 300.0, met=False), attainment=0.9)]
    advice = recommend(SMALL, [one.layout for one in found], found)
    assert advice is not None
    assert (advice.best, advice.kept) == (found[1], False)
