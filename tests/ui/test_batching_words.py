"""The batching page's sentences and figures, each for a case in which it is true."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from engine import Scenario, simulate
from engine.outcome.story import Story, story
from engine.scenario import preset
from engine.study import Group, Grouped, group, grouped, in_flight
from tests.study.test_grouped import SMALL
from ui import batching_charts, batching_tables, batching_words, grouped_charts
from ui.words import NBSP

LINE = SMALL.replace({"batching.max_num_seqs": 128, "performance.token_s": 0.0})
"""Steps of 20 ms and half a millisecond a conversation: the knee is at 40."""


@cache
def of(name: str) -> Group:
    found = group(preset(name).scenario)
    assert found is not None
    return found


def line() -> Group:
    found = group(LINE, None, 10)
    assert found is not None
    return found


@cache
def told() -> Story:
    return story(simulate(LINE), LINE)


@cache
def both() -> tuple[Scenario, Grouped]:
    wordy = preset("wordy").scenario.replace({"run.seeds": 1})
    return wordy, grouped(wordy)


def plain(text: str) -> str:
    return text.replace(NBSP, " ")


def test_the_headline_names_the_riders_and_the_cap() -> None:
    assert batching_words.headline(of("one-read"), 64) == (
        "64 conversations share each read of the weights; the setting caps the group at 128."
    )
    assert batching_words.headline(of("monday"), 8) == (
        "8 conversations share each read of the weights; memory caps the group at 30."
    )
    assert batching_words.headline(of("wordy"), 9).endswith("memory caps the group at 30, and at 8.5 in the end.")
    assert batching_words.headline(of("monday"), 1).startswith("A conversation mostly has the read")
    assert batching_words.headline(of("monday"), None).startswith("Nobody shares the read of the weights now;")


def test_the_formula_has_the_scenario_s_own_numbers() -> None:
    said = plain(batching_words.explanation(line(), 10, told()))
    assert said.startswith(
        "A step takes 20 ms whoever is in it, and 0.5 ms more for each conversation. With 10 in the group a word "
        "(token) takes 2.5 ms of the replica's time, and everybody gets one every **25 ms**."
    )


def test_the_gain_from_doubling_is_printed_and_the_knee_named() -> None:
    said = batching_words.sharing_sentence(line())
    # 8 * 20.5 / 24 = 6.83; 2 * 52 / 84 = 1.24
    assert said.startswith("**1 to 8: 6.8 times the words a second; 64 to 128: 1.2 times.** From the knee at 40 ")
    assert batching_words.gains(line().sharing, 128)[1] == (64, 128, pytest.approx(104 / 84))
    flat = replace(line(), sharing=replace(line().sharing, parts={"compute": 0.02 * line().sharing.sizes}))
    assert batching_words.sharing_sentence(flat).startswith("**1 to 8: no more; 64 to 128: no more.**")
    assert "Memory is full before." in batching_words.sharing_sentence(of("monday"))
    free = replace(line(), sharing=replace(line().sharing, knee=None))
    assert "more than a third at every size" in batching_words.sharing_sentence(free)
    alone = replace(line(), sharing=replace(line().sharing, knee=1))
    assert "next to nothing to share" in batching_words.sharing_sentence(alone)


def test_a_single_seat_has_nothing_to_gain() -> None:
    assert batching_words.gains(line().sharing, 1) == []
    assert [few for few, _, _ in batching_words.gains(line().sharing, 12)] == [1]


def test_memory_and_seats_say_what_caps_the_group() -> None:
    g, s = of("monday"), preset("monday").scenario
    assert g.memory is not None
    said = plain(batching_words.memory_sentence(g, g.memory, in_flight(s, 0.55, 0.047)))
    assert said.startswith("**Weights take 61 of an accelerator's 80 GiB; 10 GiB are left for conversations (KV).** ")
    assert "40,966 tokens a replica: 30 conversations of 1,350 tokens" in said
    assert said.endswith(" % of it.")
    assert "all of it, so somebody waits" in batching_words.memory_sentence(g, g.memory, in_flight(s, 5.5, 0.047))
    one = of("one-read")
    assert one.memory is not None
    shared = plain(batching_words.memory_sentence(one, one.memory, None))
    assert "more than 128 seats (`max_num_seqs`) need with 101 tokens each" in shared
    assert shared.endswith("half-way through its answer, without what is cached and shared.")
    grows = of("wordy")
    assert grows.memory is not None
    assert " As long as lengths don't grow " in batching_words.memory_sentence(
        grows, grows.memory, in_flight(preset("wordy").scenario, 0.55, 0.047)
    )
    assert batching_words.seats_sentence(g).startswith("**Conversations of 1,350 tokens find 30 seats, whatever ")
    assert "caps the group at 128: memory would be the limit from 3,630 tokens" in batching_words.seats_sentence(one)
    assert "no end of memory" in batching_words.seats_sentence(line())
    assert batching_words.seats_sentence(of("wordy")).endswith("they have 4,820 tokens, and 8.5 seats (hollow).")


def test_the_pace_is_that_of_the_run_with_others_prompts() -> None:
    found, g = told(), line()
    mean = found.summary["latency_s"]["itl"]["mean"]
    assert batching_words.pace(g, found, 10) == mean
    assert mean > 0.02, "a step of one alone"
    assert batching_words.pace(replace(g, grown=g.record), found, 10) == pytest.approx(0.025), (
        "of a step that only writes"
    )
    silent = replace(found, summary=found.summary | {"latency_s": {"itl": {"mean": None}}})
    assert batching_words.pace(g, silent, None) == pytest.approx(0.0205)


def test_refusals_begin_though_no_setting_changed() -> None:
    s, found = both()
    said = plain(batching_words.course_sentence(found.course, s))
    assert said.startswith("**No setting changes, and yet memory begins to limit the group around minute ")
    assert "refusals begin around minute " in said
    assert re.search(r"; some of those who come from minute \d+ on are preempted and refusals", said)
    same = s.replace({"traffic.growth": None})
    assert plain(batching_words.course_sentence(found.course, same)).startswith("**Memory begins to limit the group ")
    impatient = replace(found.course, gave_up=True)
    assert "callers begin to give up around minute " in plain(batching_words.course_sentence(impatient, s))
    assert "gave up" in {note.text.replace(NBSP, " ") for note in grouped_charts.course_figure(
        impatient, 1800.0, 60.0, 256).layout.annotations}  # fmt: skip
    calm = replace(found.course, full_from_s=None, lost_from_s=None, preempted_from_s=None)
    assert batching_words.course_sentence(calm, same) == (
        "**Memory never limits the group.** Hardly anybody is refused or preempted."
    )
    nobody = replace(calm, lost=calm.lost * 0.0, preempted=calm.preempted * 0.0)
    assert batching_words.course_sentence(nobody, same).endswith(" Nobody is refused, and nobody is preempted.")


def test_static_groups_serve_fewer() -> None:
    _, found = both()
    said = plain(batching_words.ways_sentence(found))
    assert said.startswith("**Letting people join at any step (continuous batching) serves 1.7 times the requests of ")
    assert "The price: others' prompts lengthen 1 gap between words in 100 (ITL) to " in said
    alike = replace(found, static=replace(found.static, capacity_rps=found.continuous.capacity_rps))
    assert batching_words.ways_sentence(alike).startswith(
        "**A replica that always has a queue serves as many either way"
    )
    alike = replace(alike, static=replace(alike.static, ttft_p95_s=found.continuous.ttft_p95_s))
    assert re.search(
        r"wait [\d.]+ m?s for the first word \(TTFT\) either way\.", plain(batching_words.ways_sentence(alike))
    )
    none = replace(found, static=replace(found.static, capacity_rps=None))
    assert batching_words.ways_sentence(none) == "**No request of this mix fits on a replica.**"


def test_the_stacked_parts_are_the_step_and_the_marks_are_in_their_places() -> None:
    g = of("one-read")
    figure = batching_charts.sharing_figure(g, 64)
    stacked = [trace for trace in figure.data if trace.stackgroup]
    assert [trace.name for trace in stacked] == ["weights", "overhead", "compute", "KV"]
    assert np.allclose(sum(trace.y for trace in stacked), g.sharing.step_s * 1e3, rtol=1e-5)
    marks = sorted(shape.x0 for shape in figure.layout.shapes if shape.type == "line")
    assert marks == [g.sharing.knee, 64]
    assert figure.layout.yaxis.range[0] == 0
    assert figure.layout.yaxis2.range[0] == 0
    assert "(log)" in figure.layout.xaxis.title.text
    assert len(figure.layout.yaxis3.tickvals) <= 8, "few enough to stand apart"
    assert {trace.xaxis for trace in figure.data} <= {None, "x"}
    assert all(trace.y.dtype == np.float32 for trace in figure.data)


def test_what_memory_has_no_room_for_is_grey() -> None:
    g = of("monday")
    figure = batching_charts.sharing_figure(g, 8)
    (grey,) = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert (grey.x0, grey.x1) == (pytest.approx(g.record.seats), g.sharing.sizes[-1])


def test_the_memory_bar_adds_up_to_the_accelerator() -> None:
    memory = of("monday").memory
    assert memory is not None
    figure = batching_charts.memory_figure(memory)
    assert sum(float(bar.x[0]) for bar in figure.data) == pytest.approx(80.0, rel=1e-6)
    assert batching_tables.memory_table(memory)["GiB"].sum() == pytest.approx(80.0)


def test_the_seats_have_their_points() -> None:
    figure = batching_charts.seats_figure(of("wordy"), 9)
    assert figure.layout.yaxis.range[0] < np.log10(9)
    few = batching_charts.seats_figure(of("one-read"), 2)
    assert few.layout.yaxis.range[0] < np.log10(2), "who is there lies inside the chart, however few"
    points = {trace.name: (float(trace.x[0]), float(trace.y[0])) for trace in figure.data if trace.mode == "markers"}
    assert set(points) == {"now", "at the end", "in use"}
    assert points["now"][1] == pytest.approx(of("wordy").record.seats)
    assert points["in use"] == (points["now"][0], 9.0)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_the_course_and_the_ways_are_drawn_from_zero() -> None:
    s, found = both()
    course = grouped_charts.course_figure(found.course, 1800.0, 60.0, 256)
    assert {trace.name for trace in course.data} == {
        "there is room for",
        "running",
        "refused or timed out",
        "preemptions",
    }
    assert course.layout.yaxis.range[0] == course.layout.yaxis2.range[0] == 0
    tight = grouped_charts.course_figure(found.course, 1800.0, 60.0, 12)
    assert "max_num_seqs" in {trace.name for trace in tight.data}
    ways = grouped_charts.ways_figure(found)
    assert [axis.range[0] for axis in (ways.layout.xaxis, ways.layout.xaxis2, ways.layout.xaxis3)] == [0, 0, 0]
    assert s.batching.max_num_seqs == 256


def test_tables_have_what_the_charts_have() -> None:
    _, found = both()
    table = batching_tables.sharing_table(line())
    at = table[table["group"] == 64].iloc[0]
    assert at["twice the group: times the words"] == pytest.approx(104 / 84)
    assert at["step (ms)"] == pytest.approx(52.0)
    assert len(batching_tables.course_table(found.course)) == found.course.start_s.size
    assert list(batching_tables.ways_table(found)["grouping"]) == ["joining at any step", "groups that end together"]
    assert len(batching_tables.seats_table(line())) == line().lengths.size
