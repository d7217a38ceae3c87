"""What is said about policies side by side, each sentence for outcomes in which it is true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.study import Figure, PolicyName, PolicyOutcome, Split
from ui.policy_words import policies_sentence, source
from ui.reading_charts import policies_figure
from ui.words import NBSP


def outcome(
    policy: Any, first_s: float, pause_s: float, kept: float | None, split: Split | None = None
) -> PolicyOutcome:
    return PolicyOutcome(
        policy=policy,
        changes={},
        replicas=4,
        accelerators=8,
        ttft_s={name: Figure(first_s) for name in ("p50", "p95", "p99")},
        itl_s={name: Figure(pause_s / 2) for name in ("p95", "p99")},
        stall_s={name: Figure(pause_s) for name in ("p50", "p95", "p99", "max")},
        output_tokens_per_s=Figure(100.0),
        attainment=None if kept is None else Figure(kept),
        goodput_rps=1.0,
        capacity_rps=2.0,
        answered=10,
        unanswered=0,
        split=split,
        splits=(split, split) if split else (),
        runs=8,
        horizon_s=600.0,
    )


CHUNKED = outcome("chunked", 2.0, 0.25, 0.9)
FIRST = outcome("prefill_first", 1.0, 2.0, 0.95)
POOLS = outcome("disaggregated", 3.0, 0.1, 0.5, Split(1, 3, 0.5, 1.0, 9.0, True))


def said(*found: PolicyOutcome) -> str:
    return policies_sentence(found).replace(NBSP, " ")


def test_one_policy_for_the_first_word_and_another_for_steady_ones() -> None:
    text = said(CHUNKED, FIRST, POOLS)
    assert text.startswith("**The first word comes soonest with prompts read first: 1 s for the slowest in 20.")
    assert "Words pause least with 1 of 4 replicas only for prompts: 100 ms, against 2 s.**" in text
    assert text.endswith("The promise is kept best with prompts read first: for 95 % of requests.")


def test_pools_that_fall_behind_are_told_so() -> None:
    assert "keep up" not in said(CHUNKED, POOLS)
    behind = outcome("disaggregated", 1.0, 90.0, 0.95, Split(3, 1, 0.95, 1.0, 9.0, False))
    assert said(CHUNKED, behind).endswith(" But two pools don't keep up with what comes: one of their queues grows as "
                                          "long as the run lasts.")  # fmt: skip


def test_a_policy_without_others_is_compared_with_none() -> None:
    assert said(CHUNKED) == (
        "**With these settings there are answers with prompts in chunks only: first word within 2 s for 95 %, longest "
        "pause of an answer 250 ms (p95).** The promise is kept for 90 % of requests."
    )


def test_answers_of_one_word_have_no_pause_to_compare() -> None:
    one, other = (replace(o, stall_s={name: Figure(None) for name in o.stall_s}) for o in (CHUNKED, FIRST))
    assert said(one, other).startswith(
        "**The first word comes soonest with prompts read first: 1 s for the slowest in 20.** "
        "Answers of one word have no pauses. The promise"
    )
    assert "Words pause least with prompts in chunks: 250 ms.** The promise" in said(CHUNKED, other)


def test_policies_that_keep_the_promise_alike() -> None:
    alike = [outcome(policy, 1.0, 0.5, 1.0) for policy in ("chunked", "prefill_first", "static")]
    assert said(*alike).endswith("The promise is kept alike by all: for 100 % of requests.")


def test_one_policy_for_both() -> None:
    assert "Nobody's longest pause is shorter either: 250 ms.**" in said(CHUNKED, outcome("static", 4.0, 0.5, None))


def test_what_was_simulated() -> None:
    refused: dict[PolicyName, str] = {"static": "fleet.routing.policy: is not available yet; use random"}
    text = source([CHUNKED, POOLS], refused).replace(NBSP, " ").replace("\\", "")
    assert text.startswith("8 runs of 10 min each, the same requests on the same 8 accelerators.")
    assert "Of 2 ways to share the replicas out to two pools the best is shown." in text
    assert text.endswith("Without “in groups”: fleet.routing.policy: is not available yet; use random.")


def test_the_figure_has_a_place_for_every_policy() -> None:
    figure = policies_figure(["in chunks", "prompts first"], [CHUNKED, FIRST])
    marks = {trace.name: (list(trace.x), trace.mode, [float(y) for y in trace.y]) for trace in figure.data}
    assert marks["first word p95"] == (["in chunks", "prompts first"], "markers", [2.0, 1.0])
    assert marks["longest p95"] == (["in chunks", "prompts first"], "markers", [0.25, 2.0])
