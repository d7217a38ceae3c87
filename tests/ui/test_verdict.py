"""The sentences of the first screen, each for a run in which it is true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine import Scenario, simulate
from engine.outcome.margin import Doubt
from engine.outcome.story import story
from tests import one_a_second
from ui import verdict
from ui.assumptions import assumptions, footer, machines
from ui.words import NBSP

MINUTES = 12
QUIET = [60.0 * minute + 10.0 * i + 5.0 for minute in range(MINUTES) for i in range(3)]
RUSH = [300.0] * 30
TOKEN = {"dist": "constant", "value": 1}


def said(arrivals: list[float], output_tokens: int = 1, **changes: Any) -> dict[str, str]:
    """What is said about one replica that takes a second a request, one at a time."""
    result = one_a_second.run(arrivals, output_tokens, **changes)
    scenario, told = result.scenario, story(result)
    found = {
        "headline": verdict.headline(told, scenario),
        "explanation": verdict.explanation(told),
        "arrivals": verdict.arrivals_sentence(told, scenario),
        "latency": verdict.latency_sentence(told),
        "refusals": verdict.refusals_sentence(told),
        "machines": machines(told, scenario),
        "footer": footer(told, scenario),
    }
    return {key: text.replace(NBSP, " ") for key, text in found.items()}


def test_it_holds() -> None:
    text = said(QUIET)
    assert text["headline"] == "It holds: even in the busiest minutes, everybody gets the first word within 2.5 s."
    assert "kept**: for 100 % of requests." in text["explanation"]
    assert text["arrivals"] == "**Arrivals never pass what 1 replica can serve (1 a second).**"
    assert text["refusals"] == "**Nobody is turned away.**"
    assert text["latency"].startswith(
        "**At no time are fewer than 95 % in time:** the slowest 5 % wait 1 s for the first word (TTFT) at worst"
    )


def test_broken() -> None:
    text = said(QUIET + RUSH)
    assert text["headline"] == "1 in 2 people waits longer than promised for the first word."
    assert text["explanation"] == (
        "In the busiest minutes it is 9 in 10. The promise (2.5 s for 95 %) is **broken**: kept for 53 % of requests."
    )
    assert text["latency"] == (
        "**For 30 s, fewer than 95 % are in time:** "
        "the slowest 5 % wait 29 s for the first word (TTFT) at worst, around minute 5."
    )


def test_broken_in_the_busiest_minutes() -> None:
    text = said(QUIET + RUSH, slo__0__target=0.5)
    assert text["headline"] == "In the busiest minutes, 9 in 10 people wait longer than promised for the first word."
    assert text["explanation"].startswith("On average it looks fine: 1 in 2. The promise (2.5 s for 50 %) is **kept**")


def test_turned_away() -> None:
    text = said(QUIET + RUSH, admission__max_outstanding=5)
    assert text["headline"] == "2 in 5 people are turned away."
    assert text["refusals"] == "**2 in 5 people are turned away, 3 in 4 around minute 5:** queue full."
    assert text["arrivals"].endswith("The shaded area has to wait or is turned away.")


def test_everybody_turned_away() -> None:
    text = said(QUIET, admission__max_outstanding=0)
    assert text["headline"] == "Nobody is served: every request is turned away."
    assert text["explanation"].startswith("The reason: queue full.")
    assert text["refusals"] == "**Everybody is turned away:** queue full."
    assert text["latency"] == "Nobody got an answer: no wait to show."


def test_overloaded() -> None:
    text = said([i / 2 for i in range(1440)])
    assert text["headline"].startswith("More arrives than can be served: ")
    assert text["explanation"].startswith("2 requests a second arrive, 1 a second can be served.")
    assert "Nobody who comes after minute 6 has an answer by the end." in text["latency"]
    assert "all the time" in text["arrivals"]


def test_unserved() -> None:
    assert said([719.9, 719.95])["headline"] == "Nobody gets a whole answer within the 12 min simulated."


def test_unpromised() -> None:
    text = said(QUIET, slo=[])
    assert text["headline"] == "1 in 20 waits 1 s or more for the first word."
    assert text["explanation"] == "Nothing is promised, so there is nothing to keep or break."


@pytest.mark.parametrize(
    ("metric", "term"),
    [
        ("ttft", "first word (TTFT)"),
        ("e2e", "last word (E2E)"),
        ("queue", "in the queue (queue time)"),
        ("tpot", "(TPOT)"),
        ("max_itl", "gap between words (ITL)"),
    ],
)
def test_every_metric_has_its_words(metric: str, term: str) -> None:
    promise = [{"name": "p", "metric": metric, "threshold_s": 0.5, "target": 0.95}]
    text = said(QUIET + RUSH, output_tokens=3, slo=promise)
    assert "than promised" in text["headline"]
    assert "in time" in text["latency"]
    assert term in text["latency"]


def test_idle() -> None:
    scenario = Scenario.from_dict({"traffic": {"rate_rps": 1e-6}, "run": {"seeds": 1}})
    told = story(simulate(scenario))
    assert verdict.headline(told, scenario) == "Nothing arrives, so nobody waits."
    assert verdict.latency_sentence(told) == "Nobody came, so nobody waits."
    assert verdict.refusals_sentence(told) == "Nobody came, so nobody is turned away."


def test_what_it_runs_on_and_where_figures_come_from() -> None:
    text = said(QUIET)
    assert text["machines"].startswith(r"1 replica of Llama\-3.1\-70B on 4 H100\-SXM\-80GB")
    assert "1 run of 12 min, 36 requests simulated in" in text["footer"]
    assert "step times from a measured profile" in text["footer"]


@pytest.mark.parametrize("process", ["poisson", "deterministic", "gamma"])
def test_assumptions_say_who_arrives(process: str) -> None:
    lines = assumptions(Scenario.from_dict({"traffic": {"process": process, "cv": 2.0}}))
    assert len(lines) == 4
    assert lines[2].startswith("**Step times:** ")
    word = {"poisson": "independently", "deterministic": "clockwork", "gamma": "gaps vary 2 times"}[process]
    assert word in lines[0]
    assert "wait as long as it takes, and don't ask again" in lines[0]
    assert "nobody is refused" in lines[1]


def test_people_who_ask_again_set_their_own_pace() -> None:
    scenario = Scenario.from_dict(
        {
            "traffic": {"process": "closed", "closed": {"users": 3}, "classes": [{"output_tokens": TOKEN}]},
            "performance": {"kind": "linear", "overhead_s": 1.0},
            "batching": {"max_num_seqs": 1},
            "fleet": {"replicas": 1},
            "run": {"seeds": 1, "horizon_s": 100.0, "warmup_s": 20.0},
        }
    )
    told = story(simulate(scenario))
    text = verdict.arrivals_sentence(told, scenario).replace(NBSP, " ")
    assert text.startswith(
        "**3 users who ask again when they have their answer bring 1 request a second; 1 replica can"
    )
    assert "by the end" not in verdict.latency_sentence(told), "answers under way at the end are no silence"


@pytest.mark.parametrize(
    ("changes", "doubt", "words"),
    [
        ({}, Doubt(overall=True), "1 in 2 people probably waits longer than promised for the first word."),
        ({}, Doubt(busiest=True), "1 in 2 people waits longer than promised for the first word."),
        (
            {"slo.0.target": 0.5},
            Doubt(busiest=True),
            "In the busiest minutes, 9 in 10 people probably wait longer than promised for the first word.",
        ),
        ({"slo.0.threshold_s": 60.0}, Doubt(overall=True), "It probably holds: even in the busiest minutes, "),
        ({"admission.max_outstanding": 5}, Doubt(overall=True), "2 in 5 people are probably turned away."),
    ],
)
def test_a_verdict_that_might_turn_says_probably(changes: dict[str, Any], doubt: Doubt, words: str) -> None:
    result = one_a_second.run(QUIET + RUSH, **changes)
    scenario, told = result.scenario, replace(story(result), doubt=doubt)
    assert verdict.headline(told, scenario).replace(NBSP, " ").startswith(words)
    assert ("probably" in verdict.explanation(told)) == doubt.overall
