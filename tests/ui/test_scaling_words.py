"""The scaling page's sentences and figures, each for a run in which it is true."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from engine import Scenario, simulate
from engine.outcome.relief import Relief
from engine.outcome.story import Story, story
from engine.study import RuleOutcome, Spare
from tests.outcome.scaled import SCENARIO
from ui import charts, scaling_charts, scaling_tables, scaling_words, verdict
from ui.assumptions import machines
from ui.words import NBSP

SLOW = {"autoscaler.interval_s": 60}


@cache
def _told(changes: str) -> tuple[Story, Scenario]:
    scenario = SCENARIO.replace(eval(changes))  # the text of a dict, so that it can be remembered
    return story(simulate(scenario), scenario), scenario


def told(changes: dict[str, Any] | None = None) -> tuple[Story, Relief, Scenario]:
    found, scenario = _told(repr(changes or SLOW))
    assert found.relief is not None
    return found, found.relief, scenario


def plain(text: str) -> str:
    return text.replace(NBSP, " ")


def test_the_verdict_has_the_lag_and_its_parts() -> None:
    _, r, _ = told()
    assert plain(scaling_words.headline(r)) == "Help arrives 49 s late: 9 s to decide and 40 s to start."
    assert plain(scaling_words.lag(r)) == "49 s"
    assert plain(scaling_words.lag_below(r)) == "9 s to decide, 40 s to start"
    assert plain(scaling_words.course_sentence(r)).startswith(
        "**Demand outgrows capacity in second 111; the first order is given 9 s after that, and capacity is enough "
        "49 s after that.** The queue grows to "
    )
    assert plain(scaling_words.waterfall_sentence(r)).startswith(
        "**49 s of lag, of which pulling the image takes 15 s.** Draining what had piled up takes another "
    )


def test_an_order_ahead_of_demand() -> None:
    _, r, _ = told({"autoscaler.interval_s": None})
    assert plain(scaling_words.headline(r)) == "Help arrives 34 s late: ordered 6 s ahead and 40 s to start."
    assert "6 s before that" in plain(scaling_words.course_sentence(r))
    assert scaling_words.part_label(r.parts[0]).replace(NBSP, " ") == "6 s ahead"


def test_nothing_ordered() -> None:
    _, r, s = told({"autoscaler.metric": "utilization", "autoscaler.target": 0.95})
    assert scaling_words.headline(r) == "Help doesn't arrive: nothing is ordered."
    assert scaling_words.lag(r) == "never"
    assert scaling_words.lag_below(r) == "nothing ordered"
    (trap,) = r.traps
    said = scaling_words.trap(trap, s)
    assert "saturates below the target" in said
    assert "Busy fraction can't exceed 1.1 times the target of 0.95" in said


def test_demand_that_falls_first() -> None:
    short = {"kind": "steps", "points": [[100, 4.0], [125, 0.2]]}
    _, r, _ = told(SLOW | {"traffic.shape": short, "autoscaler.startup.provision_s": 300})
    assert scaling_words.headline(r).startswith("Demand falls before help is there: for ")
    assert scaling_words.lag_below(r) == "demand fell before"
    assert "demand is back below it" in scaling_words.course_sentence(r)


def test_no_help_needed() -> None:
    _, r, _ = told({"traffic.shape": {"kind": "steady"}})
    assert scaling_words.headline(r) == "No help is needed: demand never outgrows the replicas that are ready."
    assert "can always serve it" in scaling_words.course_sentence(r)
    assert scaling_words.lag(r) == "none"
    _, r, _ = told({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}})
    assert scaling_words.headline(r) == "Nothing arrives, so no help is needed."


def test_every_trap_has_words() -> None:
    from engine.outcome.traps import Trap

    for kind in ("never_up", "saturates", "one_request", "over_orders", "flaps", "called_off"):
        assert scaling_words.trap(Trap(kind, 2.0), SCENARIO).startswith("**")  # type: ignore[arg-type]


def test_what_spare_capacity_would_do_is_said_once_it_is_known() -> None:
    found, r, _ = told()
    assert "spare" not in scaling_words.explanation(r, found.promise, None)
    known = Spare(2, 3, {}, 0.97, 0.8, 0.5, 12.0, 10.0, 7.2, 3)
    said = plain(scaling_words.explanation(r, found.promise, known))
    assert "**2 spare replicas would have bridged it**, for \\$7.2 an hour, day and night: 97 % in time." in said


def outcome(rule: str, attainment: float, short: int = 2, lag: float | None = 500.0) -> RuleOutcome:
    return RuleOutcome(rule, {}, 4, lag, short, attainment, 10.0, 4.0, 9.0, 2)  # type: ignore[arg-type]


def test_the_rules_sentence_names_the_best_and_the_best_that_waits_for_the_load() -> None:
    found = [outcome("hpa", 0.5), outcome("knative", 0.6), outcome("schedule", 0.98, 0, None)]
    said = plain(scaling_words.rules_sentence(found, 0.95))
    assert said.startswith("**By the clock keeps most in time: 98 %.**")
    assert "the best is Knative with 60 %" in said
    kept = plain(scaling_words.rules_sentence([outcome("hpa", 0.97), outcome("keda", 0.96)], 0.95))
    assert kept.endswith("The promise is kept by Kubernetes HPA and KEDA.")
    table = scaling_tables.rules_table(found)
    assert list(table["help arrives after"].str.replace(NBSP, " ")) == ["8 min 20 s", "8 min 20 s", "never short"]


def test_the_panels_share_a_time_axis_and_the_rules_go_through_all() -> None:
    _, r, s = told()
    figure = scaling_charts.course_figure(r, 600.0, 0.0)
    lines = {trace.name: trace for trace in figure.data if trace.name}
    assert set(lines) == {"demand", "capacity", "waiting", "wanted", "ready"}
    assert [lines[name].yaxis for name in ("demand", "waiting", "ready")] == ["y", "y2", "y3"]
    assert {trace.xaxis for trace in figure.data} <= {None, "x"}
    rules = [shape.x0 * 60 for shape in figure.layout.shapes if shape.type == "line"]
    assert r.episode is not None
    assert np.allclose(rules, [111, 120, 160, r.episode.drained_s])
    named = [a.text for a in figure.layout.annotations]
    assert [name for name in named if name in ("short", "decided", "ready", "drained")][:4] == [
        "short", "decided", "ready", "drained"
    ]  # fmt: skip
    assert "starting" in named, "its name stands where the replicas are starting"
    assert all(axis.range[0] == 0 for axis in (figure.layout.yaxis, figure.layout.yaxis2, figure.layout.yaxis3))
    assert lines["capacity"].y.max() == 3.0
    assert s.run.horizon_s == 600


def test_the_waterfall_s_bars_follow_one_another_to_the_lag() -> None:
    _, r, _ = told()
    figure = scaling_charts.waterfall_figure(r)
    bars = {bar.y[0]: (float(bar.base[0]), float(bar.x[0]), bar.text[0].replace(NBSP, " ")) for bar in figure.data}
    assert bars["noticing and deciding"] == (0.0, 9.0, "9 s")
    assert bars["getting a machine"] == (9.0, 10.0, "10 s")
    assert bars["warming up"] == (44.0, 5.0, "5 s")
    assert bars["<b>lag</b>"] == (0.0, 49.0, "<b>49 s</b>")
    assert bars["draining the queue"][0] == 49.0
    table = scaling_tables.waterfall_table(r)
    assert table["takes (s)"].iloc[:-1].sum() == 49.0


def test_the_start_page_doesn_t_claim_a_fixed_fleet() -> None:
    found, _, s = told()
    said = plain(verdict.arrivals_sentence(found, s))
    assert "what the ready replicas can serve (1 to 3 a second)" in said
    assert plain(machines(found, s)).startswith("1 to 3 replicas of ")
    figure = charts.arrivals_figure(found.arrivals, 600.0, 0.0)
    (capacity,) = [trace for trace in figure.data if trace.name == "can be served"]
    assert capacity.line.shape == "hv"
    assert sorted(set(capacity.y.tolist())) == [1.0, 2.0, 3.0] or sorted(set(capacity.y.tolist())) == [1.0, 3.0]


def test_tables_have_a_row_for_each_moment() -> None:
    _, r, _ = told()
    table = scaling_tables.course_table(r)
    assert len(table) == r.demand.time_s.size
    at = table[table["from (s)"] == 140].iloc[0]
    assert (at["wanted"], at["starting"], at["ready"]) == (3, 2, 1)
