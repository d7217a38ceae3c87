"""The traffic page's sentences and figures, each for traffic in which it is true."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from engine import Scenario, simulate
from engine.outcome.story import Story, story
from engine.scenario import Traffic, preset
from engine.study import Sized, sized
from engine.traffic import Fit, fit, real_traffic
from engine.traffic.arrivals import arrival_times
from tests.study.test_sized import CALM
from tests.traffic.test_fitting import trace_of
from ui import fitted, traffic_charts, traffic_tables, traffic_words
from ui.words import NBSP

SHORT = repr({"run.horizon_s": 10.0, "run.warmup_s": 1.0})
FAST = {"performance": {"kind": "linear", "overhead_s": 0.001}, "run.seeds": 4}


@cache
def told(name: str = "average-lies", changes: str = "{}") -> tuple[Story, Scenario]:
    s = preset(name).scenario.replace(FAST | eval(changes))  # the text of a dict, so that it can be remembered
    return story(simulate(s), s), s


@cache
def both() -> Sized:
    found = sized(CALM)
    assert found is not None
    return found


@cache
def fit_of(process: str) -> Fit:
    settings: dict[str, Any] = {"rate_rps": 4.0, "process": process}
    settings |= {"cv": 2.5} if process == "gamma" else {}
    found = fit(trace_of(arrival_times(Traffic.model_validate(settings), 3600.0, 3)))
    assert found is not None
    return found


def plain(text: str) -> str:
    return text.replace(NBSP, " ")


def test_the_headline_is_the_worst_minute() -> None:
    found, s = told()
    said = traffic_words.headline(found.arriving, s)
    assert said == "The worst minute brings 1.4 times the average one."
    calm = replace(found.arriving, clumps=replace(found.arriving.clumps, worst=1.2))
    assert traffic_words.headline(calm, s).startswith("The worst minute is hardly worse than the average one: 1.2 ")
    users, one = told("one-read", SHORT)
    assert plain(traffic_words.headline(users.arriving, one)).startswith("64 users bring ")
    nobody, silent = told("monday", repr({"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}}))
    assert traffic_words.headline(nobody.arriving, silent) == "Nothing arrives."
    assert traffic_words.explanation(nobody.arriving, silent).startswith("Raise the requests")
    assert traffic_words.arrivals_sentence(nobody) == "**Nothing arrives.**"


def test_a_run_without_windows_says_so() -> None:
    short, s = told("average-lies", repr({"run.horizon_s": 0.9, "run.warmup_s": 0.0, "traffic.rate_rps": 20.0}))
    assert traffic_words.headline(short.arriving, s) == "The run is too short to have a worst second."
    assert "give it more time" in traffic_words.explanation(short.arriving, s)
    assert traffic_words.arrivals_sentence(short) == "**Too little time passes to tell windows apart.**"
    once = replace(short.arriving, clumps=replace(short.arriving.clumps, span_s=0.0))
    assert traffic_words.headline(once, s) == "Everything arrives at once."
    brief, _ = told("average-lies", repr({"run.horizon_s": 20.0, "run.warmup_s": 0.0}))
    assert "in the worst second " in traffic_words.arrivals_sentence(brief)
    assert "in the worst tenth of one.**" in traffic_words.arrivals_sentence(brief)


def test_how_clumped_is_said_in_plain_words() -> None:
    found, s = told()
    said = traffic_words.explanation(found.arriving, s)
    assert "Counts by the minute vary **8" in said or "Counts by the minute vary **9" in said
    even, same = told("average-lies", repr({"traffic.cv": 1.0}))
    assert "vary about as independent arrivals do" in traffic_words.explanation(even.arriving, same)
    clock, tick = told("average-lies", repr({"traffic.process": "deterministic", "traffic.cv": 1.0}))
    assert "more even than independent" in traffic_words.explanation(clock.arriving, tick)
    few = replace(even.arriving.clumps, dispersion={1.0: None, 10.0: None, 60.0: 0.5}, span_s=300.0)
    said = traffic_words.explanation(replace(even.arriving, clumps=few), same.replace({"run.seeds": 4}))
    assert "vary about as independent arrivals do" in said, "of 20 windows 19 in 20 times within 0.63 of 1"
    users, one = told("one-read", SHORT)
    assert "slows its own traffic" in traffic_words.explanation(users.arriving, one)


def test_the_worst_minute_is_set_against_what_can_be_served() -> None:
    found, _ = told()
    assert found.summary["run"]["seeds"] > 1
    assert traffic_words.arrivals_sentence(found).startswith("**In the first run ")
    once = replace(found, summary=found.summary | {"run": found.summary["run"] | {"seeds": 1}})
    assert re.match(r"\*\*[\d.]+ a second arrive in the worst minute", traffic_words.arrivals_sentence(once))
    high = replace(found, fleet_rps=1000.0)
    assert traffic_words.arrivals_sentence(high).endswith("The 1,000 that can be served are always enough.")
    between = replace(found, fleet_rps=float(found.arriving.slice_rps.max()) + 1)
    assert traffic_words.arrivals_sentence(between).endswith("enough for every minute, not for every second.")
    low = replace(found, fleet_rps=0.5)
    assert "In 15 of 15 minutes more arrives than the 0.5 that can be served" in traffic_words.arrivals_sentence(low)
    assert traffic_words.arrivals_sentence(replace(found, fleet_rps=None)).endswith("Nothing of it can be served.")


def test_real_services_are_named_by_likeness() -> None:
    azure = {real.name: real for real in real_traffic()}
    for name in ("azure-code", "azure-chat", "kimi"):
        c = replace(told()[0].arriving.clumps, dispersion=azure[name].dispersion)
        assert traffic_words.nearest(c) == (azure[name], 1.0)
    c = replace(told()[0].arriving.clumps, dispersion=azure["azure-chat"].dispersion)
    said = traffic_words.clumps_sentence(c)
    assert said.startswith(
        "**What looks independent by the second clumps by the minute: 1.4 times the variance of independent arrivals "
        "by the second, 16 by the minute.** Nearest of the real services: Azure, conversation."
    )
    assert traffic_words.clumps_sentence(replace(c, dispersion=azure["azure-code"].dispersion)).startswith(
        "**Clumps are long: 13 times"
    )
    assert traffic_words.clumps_sentence(replace(c, dispersion={1.0: 1.0, 10.0: 1.1, 60.0: 0.9})).startswith(
        "**Arrivals are no more clumped than independent ones"
    )
    assert traffic_words.clumps_sentence(replace(c, dispersion={1.0: 6.0, 10.0: 8.0, 60.0: 8.0})).startswith(
        "**Clumps are short: 6 times"
    )
    calm = replace(c, dispersion={1.0: 1.0, 10.0: 1.0, 60.0: 1.0})
    assert traffic_words.clumps_sentence(calm).endswith("** All of the real services clump more.")
    far = replace(c, dispersion={1.0: 6.4, 10.0: 8.3, 60.0: 8.4})  # 4 times Kimi's, 4.6 times Azure's
    assert traffic_words.clumps_sentence(far).endswith("** None of the real services clumps like that.")
    assert "too short" in traffic_words.clumps_sentence(replace(c, dispersion={1.0: None, 10.0: None, 60.0: None}))
    assert "second to second" in traffic_words.clumps_sentence(replace(c, dispersion={1.0: 2.0, 10.0: 2.0, 60.0: None}))
    assert "minute to minute" in traffic_words.clumps_sentence(replace(c, dispersion=azure["kimi"].dispersion))


def test_a_service_sized_for_the_average_fails_in_the_worst_minute() -> None:
    z = both()
    said = plain(traffic_words.sized_sentence(z, CALM))
    assert said.startswith("**A service sized for the average (1.8 a second: 2 replicas) keeps the promise for ")
    assert f"takes {z.worst.replicas} replicas" in said
    assert "inside the minute there are worse seconds" in traffic_words.sized_sentence(
        replace(z, worst=replace(z.worst, kept_worst=0.5)), CALM
    )
    same = replace(z, worst=z.average)
    assert z.average.kept_worst is not None
    assert z.average.kept_worst < CALM.slo[0].target
    enough = "As many replicas can serve the worst minute on average ("
    assert enough in plain(traffic_words.sized_sentence(same, CALM))
    assert traffic_words.sized_sentence(same, CALM).endswith("too, but inside the minute there are worse seconds, and "
                                                             "what was left from before.")  # fmt: skip
    poor = replace(z.average, kept=0.92, kept_worst=0.93)
    assert traffic_words.sized_sentence(replace(z, average=poor, worst=poor), CALM).endswith(
        "too, but the promise is kept no better at other times."
    )
    kept = replace(z.average, kept_worst=0.99)
    assert traffic_words.sized_sentence(replace(z, average=kept, worst=kept), CALM).endswith(", too.")
    nobody = replace(z, average=replace(z.average, kept_worst=0.0))
    assert "keeps the promise for none of those who come in the worst minute" in traffic_words.sized_sentence(
        nobody, CALM
    )
    none = {"kept": None, "kept_worst": None}
    times = replace(z, average=replace(z.average, **none), worst=replace(z.worst, **none))
    assert "for the first word (TTFT)" in plain(traffic_words.sized_sentence(times, CALM.replace({"slo": []})))


def test_lengths_and_their_likeness() -> None:
    a = told()[0].arriving
    assert a.prompt is not None
    assert a.output is not None
    assert a.joint is not None
    said = traffic_words.lengths_sentence(a.prompt, a.output, told()[1])
    assert said.startswith("**Half of the prompts have 8")
    even = (replace(a.prompt, mean=1900.0, cv=0.0), replace(a.output, mean=200.0, cv=0.0))
    assert traffic_words.lengths_sentence(*even, told()[1]) == "**All prompts have 1,900 tokens, all answers 200.**"
    grows = told()[1].replace({"traffic.growth": {"prompt_factor": 4}})
    said = traffic_words.lengths_sentence(a.prompt, a.output, grows)
    assert said.endswith("In the course of a run they grow: prompts 4 times.")
    assert "says nothing about the answer's length" in traffic_words.joint_sentence(a.joint)
    assert traffic_words.joint_sentence(replace(a.joint, rank_correlation=-0.52)) == (
        "**Longer prompts tend to have shorter answers (rank correlation −0.52).**"
    )
    assert "longer answers (rank correlation 0.30)" in traffic_words.joint_sentence(
        replace(a.joint, rank_correlation=0.3)
    )
    assert "equally long" in traffic_words.joint_sentence(replace(a.joint, rank_correlation=None))


def test_a_fit_says_how_good_it_is_and_when_resampling_is_better() -> None:
    good = fit_of("gamma")
    said = plain(traffic_words.fit_sentence(good))
    assert said.startswith("**The arrivals are like clumped gaps (gamma), ")
    assert "gaps with a CV of 2.5" in said or "gaps with a CV of 2.4" in said
    assert "resample" not in said
    poor = replace(good, best=replace(good.best, good=False, off=3.2))
    said = traffic_words.fit_sentence(poor)
    assert said.startswith("**No simple process has clumps like the trace's: clumped gaps (gamma) come nearest.**")
    assert "off by a factor of 3.2" in said
    assert said.endswith("resample it.**")
    long = replace(good, prompt=replace(good.prompt, ks=0.2))
    assert "Lognormal prompts miss the recorded shares by up to 20 points" in plain(traffic_words.fit_sentence(long))


def test_buttons_make_scenarios_that_can_run() -> None:
    good = fit_of("gamma")
    trace = trace_of(arrival_times(Traffic(rate_rps=4.0), 3600.0, 3))
    s = Scenario.from_dict(
        {"traffic": {"process": "trace", "trace": {"speed": 2.0}}, "run": {"horizon_s": None, "seeds": 1}}
    )
    fitting = s.replace(fitted.fitting(good, s))
    assert (fitting.traffic.process, fitting.run.horizon_s, fitting.run.seeds) == ("gamma", 1800.0, 8)
    assert fitting.traffic.classes[0].name == "fitted"
    drawn = s.replace(fitted.resampling(s, trace))
    assert (drawn.traffic.trace.resample, drawn.traffic.trace.block_s, drawn.run.horizon_s) == ("blocks", 60.0, 1800.0)


def test_figures_have_one_axis_each_and_small_traces() -> None:
    found, s = told()
    a = found.arriving
    assert a.prompt is not None
    assert a.output is not None
    assert a.joint is not None
    figures = {
        "arrivals": traffic_charts.arrivals_figure(a, 5.3, 900.0, 60.0),
        "clumps": traffic_charts.clumps_figure(a.clumps),
        "fit": traffic_charts.fit_figure(fit_of("gamma")),
        "lengths": traffic_charts.lengths_figure(a.prompt, a.output, (fit_of("gamma").prompt, fit_of("gamma").output)),
    }
    for figure in figures.values():
        assert "yaxis2" not in figure.layout
        assert all(trace.y.dtype == np.float32 and trace.y.size <= 2000 for trace in figure.data)
    assert figures["arrivals"].layout.yaxis.range[0] == 0
    for name in ("clumps", "fit", "lengths"):
        assert "(log)" in figures[name].layout.yaxis.title.text
    assert {trace.name for trace in figures["clumps"].data} == {
        "independent", "Azure code", "Azure chat", "Kimi chat", "here"
    }  # fmt: skip
    joint = traffic_charts.joint_figure(a.joint).data[0]
    assert np.nansum(joint.z) == pytest.approx(100.0, rel=1e-4)
    assert s.traffic.cv == 3.0


def test_the_bars_are_the_shares_in_time() -> None:
    z = both()
    figure = traffic_charts.sized_figure(z, 0.95)
    bars = {bar.name: bar.x.tolist() for bar in figure.data}
    assert bars["all"] == pytest.approx([100 * z.average.kept, 100 * z.worst.kept])
    assert bars["worst minute"] == pytest.approx([100 * z.average.kept_worst, 100 * z.worst.kept_worst])
    assert figure.layout.shapes[0].x0 == 95.0
    close = replace(z, average=replace(z.average, kept=0.4, kept_worst=0.84), worst=replace(z.worst, kept=0.97))
    beside = {bar.name: bar.textposition for bar in traffic_charts.sized_figure(close, 0.95).data}
    assert beside["all"] == ("outside", "outside")
    assert beside["worst minute"][0] == "inside", "outside the rule of the target would cross it"
    none = {"kept": None, "kept_worst": None}
    times = replace(z, average=replace(z.average, **none), worst=replace(z.worst, **none))
    assert traffic_charts.sized_figure(times, None).layout.xaxis.title.text == "95th percentile, s"
    assert len(traffic_charts.sized_figure(replace(z, worst=z.average), 0.95).data[0].y) == 1


def test_tables_have_what_the_charts_have() -> None:
    a = told()[0].arriving
    assert a.prompt is not None
    assert a.output is not None
    assert a.joint is not None
    assert len(traffic_tables.arrivals_table(a, 5.3)) == a.second_rps.size
    clumps = traffic_tables.clumps_table(a.clumps)
    assert list(clumps["traffic"])[1:] == [real.title for real in real_traffic()]
    assert clumps["CV of gaps"][1] == 13.152
    assert traffic_tables.joint_table(a.joint)["requests (%)"].sum() == pytest.approx(100.0)
    assert len(traffic_tables.lengths_table(a.prompt, a.output)) == a.prompt.tokens.size
    assert traffic_tables.fit_table(fit_of("gamma"))["process"].iloc[0] == "the trace"
    assert list(traffic_tables.sized_table(both())["replicas"]) == [2, both().worst.replicas]
