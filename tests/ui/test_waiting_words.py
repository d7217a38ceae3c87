"""The waiting page's sentences, figures and tables, each for a run in which it is true."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from engine import Result, Scenario, simulate
from engine.outcome.fan_out import FanOut, fan_out
from engine.outcome.story import Story, story
from engine.outcome.where import PARTS, By, Level, Where, where
from engine.scenario import preset
from engine.study import LoadCurve, Read, interference
from ui import fan_out_words, interference_chart, reading_charts, waiting_charts, waiting_tables, waiting_words
from ui.words import NBSP

SMALL = Scenario.from_dict(
    {
        "traffic": {"rate_rps": 20.0},
        "performance": {"kind": "linear", "overhead_s": 0.01, "token_s": 1e-5, "seq_s": 1e-4},
        "batching": {"max_num_seqs": 32},
        "run": {"horizon_s": 200, "seeds": 4, "warmup_s": 20},
    }
)
BOOK = preset("long-prompt").scenario
NOBODY = {"traffic.shape": {"kind": "steps", "points": [[0, 0.0]]}}


@cache
def _told(changes: str) -> tuple[Story, Result]:
    result = simulate(SMALL.replace(eval(changes)), waits=True)  # the text of a dict, so that it can be remembered
    return story(result), result


def told(**changes: Any) -> tuple[Story, Result]:
    return _told(repr({path.replace("__", "."): value for path, value in changes.items()}))


def plain(text: str) -> str:
    return text.replace(NBSP, " ")


def test_the_headline_is_of_answers_or_of_actions() -> None:
    found, result = told()
    e2e = result.latency["e2e"].figures
    said = plain(waiting_words.headline(found))
    assert (
        said == f"Half of the answers are complete after {e2e['p50']:.2g} s; 1 in 100 takes {e2e['p99']:.2g} s or more."
    )
    many, together = told(traffic__client__fan_out=8)
    action = fan_out(together).action_s[0.5]
    assert plain(waiting_words.headline(many)).startswith(
        f"Half of the actions take longer than {action:.2g} s; half of"
    )


def test_nobody_and_no_answer_are_said() -> None:
    found, _ = told(**{"traffic.shape": NOBODY["traffic.shape"]})
    assert waiting_words.headline(found) == "Nothing arrives, so nobody waits."
    assert waiting_words.explanation(found) == ""
    refused, result = told(batching__kv_capacity_tokens=1)
    assert waiting_words.headline(refused).startswith("No answer is complete")
    assert where(result).levels == ()
    assert "none has a time" in fan_out_words.fan_out_sentence(fan_out(result))


def test_the_explanation_says_how_many_have_no_time() -> None:
    found, _ = told()
    said = plain(waiting_words.explanation(found))
    assert said.startswith("Half have their first word (TTFT) within ")
    assert "The wait in the queue is " in said
    queue = found.summary["latency_s"] | {"queue": {"p50": 0.0, "p99": 0.0}}
    alone = replace(found, summary=found.summary | {"latency_s": queue})
    assert "Next to nobody waits in the queue." in waiting_words.explanation(alone)
    assert re.search(r"so without a time here: 1 in \d+ \(still under way at the end\)\.$", said)


def level(name: str, prompts: float, answers: float, **parts: float) -> Level:
    every = dict.fromkeys(PARTS, 0.0) | parts
    total = sum(every.values())
    return Level(name, 0.5, total, every, 21, prompts, answers)  # type: ignore[arg-type]


def test_where_the_seconds_go_names_what_is_large() -> None:
    typical = level("p50", 400, 200, queue=0.02, prompt=0.1, answer=2.0)
    unlucky = level("p99", 500, 210, queue=6.0, prompt=0.1, answer=2.0, stalled=1.9)
    said = plain(waiting_words.where_sentence(Where("e2e", (typical, unlucky), 0, 0.1, 2.0, 0.9)))
    assert said == (
        "**Of the 10 s of the slowest in 100, 6 s go into the queue, 2 s into writing and 1.9 s into stalls by "
        "others' prompts; of a typical request's 2.1 s, 2 s go into writing.** The slow ones ask for no more than the "
        "others: they were unlucky."
    )
    same = level("p99", 400, 200, queue=0.02, prompt=0.1, answer=2.1)
    assert waiting_words.where_sentence(Where("e2e", (typical, same), 0, 0.1, 2.0, 0.9)).endswith(
        "** The slow ones hardly take longer."
    )
    long = level("p99", 500, 900, answer=9.0)
    assert "long answers: 900 tokens" in waiting_words.where_sentence(Where("e2e", (typical, long), 0, 0.1, 2.0, 0.9))
    pasted = level("p99", 9000, 210, prompt=9.0)
    assert "long prompts: 9,000 tokens" in waiting_words.where_sentence(
        Where("e2e", (typical, pasted), 0, 0.1, 2.0, 0.9)
    )


def test_up_to_the_first_word_long_answers_are_no_reason() -> None:
    typical, slow = level("p50", 400, 200, queue=0.1), level("p99", 450, 900, queue=3.0)
    said = plain(waiting_words.where_sentence(Where("ttft", (typical, slow), 0, 0.1, 2.0, 0.9)))
    assert said.startswith("**Of the 3 s to the first word of the slowest in 100, 3 s go into the queue;")
    assert said.endswith("they were unlucky.")


@pytest.mark.parametrize("by", ["e2e", "ttft"])
def test_the_bars_are_the_parts_and_add_up(by: By) -> None:
    _, result = told()
    found = where(result, by)
    figure = waiting_charts.where_figure(found)
    total = np.sum([bar.x for bar in figure.data], axis=0)
    np.testing.assert_allclose(total, [level.time_s for level in found.levels], rtol=0.01)
    assert {bar.name for bar in figure.data} <= set(waiting_words.PARTS.values())
    assert len({(bar.marker.color, bar.marker.pattern.shape) for bar in figure.data}) == len(figure.data)
    table = waiting_tables.where_table(found)
    parts = table[[f"{name} (s)" for name in waiting_words.PARTS.values() if f"{name} (s)" in table]].sum(axis=1)
    np.testing.assert_allclose(parts, table[f"{waiting_words.WORD[by]} (s)"], rtol=1e-9)


def test_a_long_prompt_in_words_under_each_policy() -> None:
    chunked = interference(BOOK, 30_000)
    said = plain(waiting_words.interference_sentence(chunked))
    assert said.startswith("**A prompt of 30,000 tokens makes everybody pause for up to 990 ms; words come every 12 ms")
    assert "It is read in 4 steps within 3.2 s" in said
    first = plain(waiting_words.interference_sentence(interference(BOOK.replace({"batching.policy": "prefill_first"}))))
    assert "pause for up to 3.2 s" in first
    assert "It is read in one step of 3.2 s" in first
    static = plain(waiting_words.interference_sentence(interference(BOOK.replace({"batching.policy": "static"}))))
    assert static.startswith("**A prompt of 30,000 tokens stalls nobody: it waits until the group has ended, ")
    cut = interference(BOOK.replace({"batching.kv_capacity_tokens": 20_000}))
    assert waiting_words.interference_sentence(cut).endswith("There is no room for 30,000.")


@pytest.mark.parametrize("policy", ["chunked", "prefill_first", "static"])
def test_the_gantt_has_every_token_and_the_bracket_the_pause(policy: str) -> None:
    found = interference(BOOK.replace({"batching.policy": policy}))
    figure = interference_chart.interference_figure(found)
    ticks, own, strip = figure.data
    times = [t[t >= found.tokens_s[-1][0]] for t in found.tokens_s]
    assert ticks.x.size == sum(t.size for t in times) < 2_000
    assert own.x.size == 6
    (axis,) = [a.text for a in figure.layout.annotations if a.text.startswith("<i>gap")]
    assert strip.y.max() == pytest.approx(found.longest_s * (1000 if axis.endswith("ms</i>") else 1), rel=0.01)
    (said,) = [a.text for a in figure.layout.annotations if "longest pause" in a.text]
    assert plain(said).endswith(" ms")
    assert figure.layout.yaxis2.range[0] == 0
    table = waiting_tables.interference_table(found)
    assert table["gap before it (s)"].max() == pytest.approx(found.longest_s)


def read(value: float, first: float, pause: float, capacity: float | None = 2.0) -> Read:
    gaps = {"p50": 0.01, "p99": pause / 2}
    return Read(value, {}, {"p50": first / 2, "p95": first}, gaps, pause, capacity, 100, 8, 120.0)


def test_chunks_name_the_best_for_each_and_the_present() -> None:
    found = [read(256, 1.8, 0.1), read(1024, 0.9, 0.3), read(8192, 1.2, 1.4)]
    said = plain(waiting_words.chunks_sentence(found, 8192))
    assert said == (
        "**Steps of 8,192 tokens: first word within 1.2 s for 95 %, longest pause of an answer 1.4 s (p95).** First "
        "words are soonest with 1,024 tokens (900 ms), pauses shortest with 256 (100 ms)."
    )
    assert plain(waiting_words.source(found)) == "From 8 runs of 2 min, the same requests each time."
    best = [replace(found[0], first_word_s=dict.fromkeys(found[0].first_word_s, 0.5)), *found[1:]]
    assert plain(waiting_words.chunks_sentence(best, 8192)).endswith(
        "Both are best with 256 tokens: 500 ms and 100 ms."
    )
    assert waiting_words.chunks_sentence(best, 256).endswith("No other size does better at either.")
    alike = [replace(read, first_word_s=found[0].first_word_s, pause_s=found[0].pause_s) for read in found]
    assert waiting_words.chunks_sentence(alike, 8192).endswith("No other size does better at either.")
    figure = reading_charts.chunks_figure(found, 8192)
    assert [trace.name for trace in figure.data] == ["first word p95", "p50", "longest p95", "gap p99"]
    assert [trace.yaxis for trace in figure.data] == ["y", "y", "y2", "y2"]
    for axis, highest in ((figure.layout.yaxis, 1.8), (figure.layout.yaxis2, 1.4)):
        assert axis.type == "log"
        assert axis.range[0] < axis.range[1] < np.log10(highest) + 0.1
    assert sum("(log)" in note.text for note in figure.layout.annotations) == 2
    assert figure.layout.shapes[0].x0 == 2
    assert list(waiting_tables.chunks_table(found)["tokens a step"]) == [256, 1024, 8192]


def test_a_cached_prefix_says_what_half_saves() -> None:
    found = [read(0.0, 1.0, 0.5, 2.0), read(0.5, 0.4, 0.5, 3.0)]
    said = plain(waiting_words.cached_sentence(found))
    assert "after 200 ms instead of 500 ms (p50), 400 ms instead of 1 s (p95)" in said
    assert said.endswith("A replica can serve 50 % more requests, 3 a second.")
    assert len(reading_charts.cached_figure(found).data) == 4
    assert list(waiting_tables.cached_table(found)["cached (%)"]) == [0.0, 50.0]


def curve(seats: int = 30, seats_s: float = 2.0, single_s: float = 6.0, limit: str = "kv") -> LoadCurve:
    load = np.array([0.1, 0.5, 0.9])
    forms = (np.array([0.0, 0.1, value]) for value in (seats_s, single_s))
    wait = np.array([0.02, 0.07, 1.9])
    return LoadCurve(load, wait, wait / 10, 2 * wait, wait + 5, *forms, seats, 1.3, 0.46, 4, 12, 900.0, limit, load)


def test_the_distance_of_the_closed_forms_is_named() -> None:
    said = plain(waiting_words.load_sentence(curve()))
    assert said.startswith("**At 90 % of what can be served a request waits 1.9 s on average, at 50 % 70 ms.**")
    assert "(30; Allen-Cunneen) would make it 2 s, 5 % more;" in said
    assert "Pollaczek-Khinchine) 6 s, 3.2 times as much." in said
    one = plain(waiting_words.load_sentence(curve(1, 1.88, 1.88)))
    assert one.endswith("The closed form (M/G/1, Pollaczek-Khinchine) says 1.9 s: 1 % less.")
    assert "At light load no formula knows of the step under way, for whose end a newcomer waits (20 ms)." in said
    beyond = plain(waiting_words.load_sentence(curve(seats_s=1e-5, single_s=0.5, limit="token_budget")))
    assert "as good as nothing" in beyond
    assert "500 ms, 3.8 times too little. Neither knows what most of this wait is for: others' prompts" in beyond
    assert plain(waiting_words.load_source(curve())).endswith("This scenario's average load is 46 %.")
    over = replace(curve(), own_load=1.224)
    assert plain(waiting_words.load_source(over)).endswith("average load is 122 %, more than can be served.")
    assert waiting_words.load_source(replace(curve(), own_load=None)).endswith("load.")
    figure = waiting_charts.load_figure(curve())
    names = [trace.name for trace in figure.data if trace.name]
    assert names == ["one server", "30 seats", "simulated"]
    assert figure.layout.shapes[-1].x0 == 46
    assert "one server" not in [trace.name for trace in waiting_charts.load_figure(curve(1)).data]
    assert list(waiting_tables.load_table(curve())["load (%)"]) == pytest.approx([10, 50, 90])


def test_fan_out_says_why_the_simulated_figure_differs() -> None:
    found = fan_out(told(traffic__client__fan_out=8)[1])
    assert found.median_as_call is not None
    said = plain(fan_out_words.fan_out_sentence(found))
    assert said.startswith("**The median action takes ")
    assert "For 8 independent calls it would be exactly the 91.7th, " in said
    assert said.endswith("Calls issued together share a queue and its luck, so the slowest stands out less.")
    assert "have no time, because a call of theirs wasn't answered" in fan_out_words.fan_out_source(found)
    figure = waiting_charts.fan_out_figure(found)
    assert [trace.name for trace in figure.data] == ["a call", "an action of 8", "8 independent calls"]
    assert {note.y for note in figure.layout.annotations} == {1}, "above the chart"
    assert len({note.yshift for note in figure.layout.annotations}) == 3
    assert all((np.diff(trace.y) >= 0).all() for trace in figure.data)
    ticks = [float(text) for text in figure.layout.xaxis.ticktext]
    assert ticks == list(figure.layout.xaxis.tickvals)
    call, _, independent = figure.data
    np.testing.assert_allclose(independent.y, 100 * (call.y / 100) ** 8, rtol=1e-4)
    table = waiting_tables.fan_out_table(found)
    assert table["simulated p50 (s)"].notna().sum() == 1
    assert table["median is a call's percentile"].iloc[19] == pytest.approx(96.594, abs=1e-3)


def test_single_calls_are_told_what_twenty_would_be() -> None:
    found: FanOut = fan_out(told()[1])
    said = fan_out_words.fan_out_sentence(found)
    assert "An action of 20 independent calls would take" in said
    assert "a call's 96.6th percentile" in said
    assert said.endswith(" Set the calls an action to simulate calls that are issued together.")
    assert fan_out_words.fan_out_sentence(found, settable=False).endswith("96.6th percentile.**"), "as with a trace"
    assert len(waiting_charts.fan_out_figure(found).data) == 2
    assert plain(fan_out_words.fan_out_source(found)).endswith(" of them not answered.")


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.5, "50th"), (0.9659, "96.6th"), (0.92, "92nd"), (0.81, "81st"), (0.12, "12th"), (0.93, "93rd")],
)
def test_percentiles_are_numbered(share: float, said: str) -> None:
    assert fan_out_words._nth(share) == said


def test_answers_of_one_word_have_no_pause() -> None:
    found = [read(256, 1.8, float("nan")), read(8192, 1.2, float("nan"))]
    assert "longest pause of an answer none" in plain(waiting_words.chunks_sentence(found, 8192))
    assert reading_charts.chunks_figure(found, 8192).layout.yaxis2.type == "log"
