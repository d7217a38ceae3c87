"""The promise page's sentences, tables and figures, each for a run in which it is true."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from engine import Scenario, simulate
from engine.outcome.promises import Terms, terms
from engine.outcome.promises.rescore import TARGETS
from engine.study import Fewest, Trial
from tests.outcome.promises.build import BUSY, NOBODY, run_of
from ui import measuring_words, promise_charts, promise_tables, promise_tiles, promise_words
from ui.assumptions import assumptions
from ui.promise_settings import FAILURES, PLACE, failures_word
from ui.promise_settings import terms as settings
from ui.words import NBSP

CALM = BUSY.replace({"traffic.rate_rps": 0.6, "traffic.client.max_retries": 0})


@cache
def _told(scenario: Scenario) -> Terms:
    found = terms(simulate(scenario))
    assert found is not None
    return found


def told(scenario: Scenario = BUSY, **changes: Any) -> Terms:
    return _told(scenario.replace({key.replace("__", "."): value for key, value in changes.items()}))


def plain(text: str) -> str:
    return text.replace(NBSP, " ")


FEWEST = Fewest(
    replicas=3,
    have=2,
    changes={"fleet.replicas": 3},
    perhaps=3,
    surely=4,
    trials=(
        Trial(2, 0.58, (0.5, 0.66), 0, 10.0),
        Trial(3, 0.97, (0.94, 0.99), 2, 15.0),
        Trial(4, 0.99, (0.98, 1.0), 3, None),
    ),
    target=0.95,
    runs=3,
)  # fmt: skip


class TestVerdict:
    def test_what_can_be_signed_and_to_how_much_not(self) -> None:
        found = told(CALM, slo__0__target=0.9, slo__0__threshold_s=1.5)
        share = found.choices[0].share
        assert share is not None
        assert 0.9 < share < 0.99
        text = plain(promise_words.headline(found))
        assert re.match(
            r"90 % have the first word within [\d.]+ m?s: 1.5 s can (probably )?be signed to 90 %, not to 99 %\.", text
        )

    def test_what_cannot(self) -> None:
        found = told(slo__0__target=0.7, slo__0__threshold_s=0.5)
        assert plain(promise_words.headline(found)).endswith(": 500 ms can't be signed.")

    def test_probably_where_the_spread_reaches_the_threshold(self) -> None:
        strict = told(CALM, slo__0__target=0.9).strictest.threshold_s
        assert strict is not None
        found = told(CALM, slo__0__target=0.9, slo__0__threshold_s=round(strict * 1.01, 4))
        assert "can probably be signed" in promise_words.headline(found)
        found = told(CALM, slo__0__target=0.9, slo__0__threshold_s=round(strict * 0.99, 4))
        assert "probably can't be signed" in promise_words.headline(found)

    def test_nothing_can_be_promised(self) -> None:
        found = told(slo__0__target=0.99)
        assert found.strictest.threshold_s is None
        assert plain(promise_words.headline(found)).startswith(
            "Nothing can be promised to 99 %: too many get no answer"
        )

    def test_nobody_came(self) -> None:
        found = terms(run_of(NOBODY))
        assert found is not None
        assert promise_words.headline(found) == promise_words.NOBODY
        assert promise_words.places(found) == ""


class TestPlaces:
    def test_in_order_and_why(self) -> None:
        text = plain(promise_words.places(told()))
        shares = [float(x) for x in re.findall(r"([\d.]+) %", text)]
        assert shares == sorted(shares, reverse=True)
        assert "the server doesn't see whom it refused" in text

    def test_retries_can_turn_the_order(self) -> None:
        found = told(traffic__client__backoff_s=1.0, traffic__client__max_retries=8, slo__0__threshold_s=20.0)
        shares = {c.value: c.share for c in found.choices if c.part == "place"}
        assert shares["client"] > shares["gateway"]  # type: ignore[operator]
        assert "a retry makes good" in promise_words.places(found)

    def test_without_refusals_only_the_network_differs(self) -> None:
        open_ = told(CALM, admission__max_outstanding=None, slo__0__threshold_s=0.3)
        assert "only callers see the network" in promise_words.places(open_)
        alike = replace(
            open_,
            choices=tuple(
                replace(c, share={"server": 0.97334, "gateway": 0.97331, "client": 0.9722}[c.value])
                if c.part == "place"
                else c
                for c in open_.choices
            ),
        )
        assert plain(promise_words.places(alike)) == (
            "**The same answers: 97.3 % at the server and at the gateway, 97.2 % at the client in time**; only callers "
            "see the network and what came before their last try."
        ), "what is printed alike is said once, and needs no reason"
        near = told(CALM, admission__max_outstanding=None, traffic__client__network_rtt_s=0.0, slo__0__threshold_s=3.0)
        assert "wherever it is measured" in promise_words.places(near)


def test_windows_in_the_explanation_only_where_they_fit_and_differ() -> None:
    text = promise_words.explanation(told(), None)
    w = told().windows
    assert w is not None
    assert w.share is not None
    assert "of rolling windows of 60" in text
    assert "windows" not in promise_words.explanation(told(slo__0__window_s=86400.0), None)


def test_the_fewest_machines() -> None:
    text = plain(promise_words.explanation(told(), FEWEST))
    assert "The fewest machines that keep it: **3 replicas**, 2 now (by the spread over runs 3 to 4)." in text
    assert plain(promise_words.fewest_sentence(FEWEST)) == (
        "**3 replicas keep the promise for 97 %, 2 for 58 %.** "
        "2 of 3 runs keep it with 3 (by the spread over runs 3 to 4)."
    )
    once = replace(FEWEST, runs=1, perhaps=None, surely=None)
    assert plain(promise_words.fewest_sentence(once)) == "**3 replicas keep the promise for 97 %, 2 for 58 %.**"
    alone = replace(FEWEST, trials=(FEWEST.trials[0], replace(FEWEST.trials[1], runs_kept=1)))
    assert "1 of 3 runs keeps it with 3" in plain(promise_words.fewest_sentence(alone))
    same = replace(FEWEST, have=3, changes={}, surely=3)
    assert "**3 replicas** as now." in plain(promise_words.machines_needed(same))
    assert "3 or more" in promise_words.machines_needed(replace(FEWEST, surely=None))
    assert "No number of replicas keeps 3" in promise_words.no_number(BUSY.slo[0])
    figure = promise_charts.fewest_figure(FEWEST)
    assert figure.data[0].x.tolist() == [2, 3, 4]
    assert figure.data[0].y == pytest.approx([58, 97, 99])
    assert figure.layout.yaxis.range[0] == 0
    table = promise_tables.fewest_table(FEWEST)
    assert table["in time (%)"].tolist() == pytest.approx([58, 97, 99])


class TestCurve:
    def test_sentence(self) -> None:
        text = plain(promise_words.curve_sentence(told()))
        assert text.startswith("**Within 3 s: ")
        assert "can't be promised, however long one waits." in text
        assert "(95 % interval)" in text
        steady = replace(told().strictest, ci95_s=(0.0247, 0.02471))
        same = replace(told(), strictest=steady)
        assert promise_words.curve_sentence(same).endswith("The strictest is the same from run to run.")
        assert promise_tiles._spread(steady) == "the same in 3 runs"

    def test_figure_has_the_curve_its_band_and_the_rules(self) -> None:
        found = told()
        figure = promise_charts.curve_figure(found, found.curve)
        lines = {trace.name: trace for trace in figure.data if trace.name}
        assert found.curve is not None
        assert lines["in time"].y == pytest.approx(100 * found.curve.share, rel=1e-6)
        assert set(lines) == {"in time", "windows kept", "target", "A"}
        assert found.windows_curve is not None
        assert lines["windows kept"].y == pytest.approx(100 * found.windows_curve.share, rel=1e-6)
        texts = [note.text.replace(NBSP, " ") for note in figure.layout.annotations]
        assert "promised 3 s" in texts
        assert any(text.startswith("kept ") for text in texts)
        assert "log scale" in figure.layout.xaxis.title.text
        assert len({line.line.dash for line in lines.values()}) == 4, "told apart without colour"

    def test_a_rule_at_the_left_edge_has_its_name_inside(self) -> None:
        found = told()
        assert found.curve is not None
        edge = found.objective.model_copy(update={"threshold_s": float(found.curve.threshold_s[0]) * 1.01})
        notes = promise_charts.curve_figure(replace(found, objective=edge)).layout.annotations
        (mine,) = [note for note in notes if note.text.startswith("promised")]
        assert (mine.xanchor, mine.y) == ("left", 0.8)

    def test_table(self) -> None:
        found = told()
        assert found.curve is not None
        assert found.windows_curve is not None
        table = promise_tables.curve_table(found)
        assert table["in time (%)"].tolist() == pytest.approx(100 * found.curve.share)
        assert table["windows kept (%)"].dropna().tolist() == pytest.approx(100 * found.windows_curve.share)


class TestChoices:
    def test_every_choice_is_a_dot_with_its_number(self) -> None:
        found = told()
        figure = promise_charts.choices_figure(found)
        known = [c for c in found.choices if c.share is not None]
        dots = figure.data[0]
        assert dots.customdata == pytest.approx([100 * (c.share or 0) for c in known], rel=1e-6)
        assert len(figure.layout.yaxis.ticktext) == len(known) == len(figure.layout.annotations)
        low = figure.layout.xaxis.range[0]
        for c, x, symbol in zip(known, dots.x, dots.marker.symbol, strict=True):
            assert x == pytest.approx(max(low, 100 * (c.share or 0)), rel=1e-6)
            assert (symbol == "triangle-left") == (100 * (c.share or 0) < low)
        assert "circle-open" in dots.marker.symbol
        assert "diamond" in dots.marker.symbol

    def test_words_are_distinct_within_a_part(self) -> None:
        found = told()
        for part in promise_words.PARTS:
            words = [promise_words.choice_word(c, found.objective) for c in found.choices if c.part == part]
            assert len(set(words)) == len(words)

    def test_sentence_says_how_far_the_number_moves(self) -> None:
        assert "place and failures alone move the same run from" in promise_words.choices_sentence(told()).lower()
        still = told(
            CALM, admission__max_outstanding=None, traffic__client__ttft_timeout_s=None,
            traffic__client__network_rtt_s=0.0, slo__0__threshold_s=8.0,
        )  # fmt: skip
        assert "hardly matter" in promise_words.choices_sentence(still)

    def test_table_says_which_targets_are_kept(self) -> None:
        table = promise_tables.choices_table(told())
        assert len(table) == len(told().choices)
        for column, target in zip(table.filter(like="keeps").columns, TARGETS, strict=True):
            want = ["yes" if (c.share or 0) >= target else "no" for c in told().choices]
            assert table[column].tolist() == want


class TestBudget:
    def test_sentence_and_figure(self) -> None:
        found = told(slo__0__target=0.95)
        text = plain(promise_words.budget_sentence(found))
        assert re.match(
            r"\*\*The error budget burns at [\d.]+ times what is allowed \(burn rate\): a window's budget", text
        )
        assert "5 % of requests may be bad, or everything for 3 s of 60 s" in text
        assert found.budget is not None
        figure = promise_charts.budget_figure(found.budget, 160.0, 20.0)
        lines = {trace.name: trace for trace in figure.data}
        assert lines["all runs"].y == pytest.approx(100 * found.budget.left, rel=1e-5, abs=1e-4)
        assert {"worst run", "burn 14.4", "burn 6", "burn 1"} <= set(lines)
        low, high = figure.layout.yaxis.range
        assert low <= min(lines["all runs"].y.min(), lines["worst run"].y.min())
        assert high >= 100

    def test_names_of_slopes_that_end_side_by_side_are_stacked(self) -> None:
        quiet = told(CALM, traffic__rate_rps=0.05, slo__0__threshold_s=8.0)
        assert quiet.budget is not None
        notes = promise_charts.budget_figure(quiet.budget, 160.0, 20.0).layout.annotations
        ends = [(note.y, note.yshift) for note in notes if note.text.startswith("burn") and note.xref != "paper"]
        assert len(ends) > 1
        assert len(set(ends)) == len(ends)

    def test_one_run_is_no_worst_one(self) -> None:
        found = told(slo__0__target=0.95, run__seeds=1)
        assert found.budget is not None
        names = {trace.name for trace in promise_charts.budget_figure(found.budget, 160.0, 20.0).data}
        assert "left" in names
        assert not names & {"all runs", "worst run"}

    def test_slopes_reach_nothing_left_when_the_budget_is_gone(self) -> None:
        found = told(slo__0__target=0.95)
        assert found.budget is not None
        figure = promise_charts.budget_figure(found.budget, 160.0, 20.0)
        for trace in figure.data:
            if trace.name.startswith("burn"):
                burn = float(trace.name.split()[1])
                (x0, x1), (y0, y1) = trace.x.tolist(), trace.y.tolist()
                assert (y0 - y1) / 100 == pytest.approx(burn * (x1 - x0) / 60.0, rel=1e-4)

    def test_nothing_used_and_nothing_allowed(self) -> None:
        quiet = told(CALM, traffic__rate_rps=0.05, slo__0__threshold_s=8.0)
        assert "Nothing of the error budget is used" in promise_words.budget_sentence(quiet)
        assert "There is no error budget" in promise_words.budget_sentence(told(slo__0__target=1.0))
        assert "no alert can be set" in measuring_words.alerts_sentence(told(slo__0__target=1.0))


class TestAlerts:
    def test_the_threshold_moves_to_an_edge_and_it_is_said(self) -> None:
        assert "the alert is moved to **2.5" in measuring_words.snap_sentence(told())
        assert "is an edge of vLLM's buckets" in measuring_words.snap_sentence(told(slo__0__threshold_s=5.0))

    def test_short_windows_cannot_tell(self) -> None:
        text = plain(measuring_words.alerts_sentence(told(slo__0__target=0.95)))
        assert "Over a window of 60 s no alert can tell" in text
        table = promise_tables.alerts_table(told(slo__0__target=0.95))
        assert all(cell.startswith("can't tell") for cell in table["sounds"])

    def test_sounding_ones_are_told_with_their_delay(self) -> None:
        found = told(slo__0__target=0.95, slo__0__window_s=20000.0)
        assert any(a.fired for a in found.alerts)
        assert re.search(
            r"sounds in \d of 3 runs, .* after trouble began", plain(measuring_words.alerts_sentence(found))
        )
        assert any(cell.endswith("of 3 runs") for cell in promise_tables.alerts_table(found)["sounds"])
        once = told(slo__0__target=0.95, slo__0__window_s=20000.0, run__seeds=1)
        assert any(a.fired for a in once.alerts)
        assert re.search(r" sounds [\d.]+ \w+ after trouble began", plain(measuring_words.alerts_sentence(once)))
        assert "yes" in promise_tables.alerts_table(once)["sounds"].tolist()

    def test_impossible_and_later(self) -> None:
        table = promise_tables.alerts_table(told(slo__0__target=0.6, slo__0__window_s=30 * 86400.0))
        assert table["sounds"][0] == "never: needs more than all"
        assert "at this pace" in table["sounds"][2]


class TestMeasuring:
    def test_histogram(self) -> None:
        found = told()
        assert plain(measuring_words.histogram_sentence(found)).startswith("**Prometheus would show a p")
        figure = promise_charts.histogram_figure(found)
        points = {trace.name: trace for trace in figure.data if trace.name}
        assert points["true"].x == pytest.approx([r.true_s for r in found.readings], rel=1e-6)
        assert points["read"].x == pytest.approx([r.read_s for r in found.readings], rel=1e-6)
        assert points["true"].marker.symbol != points["read"].marker.symbol
        beyond = replace(found, readings=(replace(found.readings[0], bucket_s=(2560.0, np.inf), read_s=2560.0),))
        assert "Above its last edge" in measuring_words.histogram_sentence(beyond)
        assert promise_charts.histogram_figure(beyond).data
        assert "nothing to say" in measuring_words.histogram_sentence(replace(found, readings=()))

    def test_windows_averages_testers_and_sizes(self) -> None:
        found = told()
        text = plain(measuring_words.windows_sentence(found))
        assert "rolling windows of 60 s" in text
        assert "slices of 10 s" in text
        none = replace(found, choices=tuple(replace(c, share=0.0) if c.part == "window" else c for c in found.choices))
        assert "the target was met in none of the rolling windows" in measuring_words.windows_sentence(none)
        w = found.windows
        assert w is not None
        assert "none of the rolling windows of 60" in promise_words.window_by_window(
            replace(found, windows=replace(w, kept=0))
        )
        assert "doesn't fit twice" in measuring_words.windows_sentence(told(slo__0__window_s=86400.0))
        assert "the mean of the parts' p99s is" in measuring_words.averages_sentence(found)
        assert "coordinated omission" in measuring_words.omission_sentence(found)
        assert found.omission is not None
        assert found.averages["run"].true_s != found.omission.everybody.p99_s, "that of the first run is another figure"
        assert measuring_words.omission_sentence(found).startswith("**In the first run a load tester with ")
        once = told(run__seeds=1)
        assert measuring_words.omission_sentence(once).startswith("**A load tester with ")
        assert "368 requests" in plain(measuring_words.sure_sentence(found))
        few = replace(found, sure=tuple(replace(s, high_s=None) for s in found.sure))
        assert "could be anything above" in measuring_words.sure_sentence(few)
        for table in (
            promise_tables.windows_table, promise_tables.averages_table, promise_tables.omission_table,
            promise_tables.sure_table, promise_tables.readings_table,
        ):  # fmt: skip
            assert len(table(found))

    def test_users_who_wait_are_testers_themselves(self) -> None:
        closed = told(
            CALM, traffic__process="closed", traffic__closed__users=3, traffic__rate_rps=4.0,
            admission__max_outstanding=None,
        )  # fmt: skip
        assert measuring_words.omission_sentence(closed) == ""


class TestControls:
    def test_every_set_of_failures_is_a_choice_that_can_be_made(self) -> None:
        control = settings(BUSY)[FAILURES]
        assert control.choices is not None
        assert len(control.choices) == 8
        assert len(set(control.choices.values())) == 8
        for value in control.choices:
            made = BUSY.replace(control.changes(value))
            assert "+".join(made.slo[0].failures) == value
            assert settings(made)[FAILURES].value == value
        assert failures_word(()) == "nobody: answers only"

    def test_places(self) -> None:
        assert settings(BUSY)[PLACE].choices == {
            "server": "at the server", "gateway": "at the gateway", "client": "at the client",
        }  # fmt: skip
        assert settings(BUSY.replace({"slo": []})) == {}

    def test_the_network_is_modelled_where_it_counts(self) -> None:
        assert any("round trip of 250" in line for line in assumptions(BUSY.replace({"slo.0.measured_at": "client"})))
        assert any("the network, failures" in line for line in assumptions(BUSY))
