"""The waiting page's sentences, made from the facts of a story and of its studies. No Streamlit here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from engine.outcome.story import Story
from engine.outcome.where import By, Level, Part, Where
from engine.study import Interference, LoadCurve, Read
from ui.words import NBSP, count, digits, fraction, listed, percent, seconds, sentence

PARTS: dict[Part, str] = {
    "queue": "queue",
    "frontend": "front end",
    "prompt": "own prompt",
    "handover": "to the writer",
    "answer": "writing",
    "stalled": "others' prompts",
    "preempted": "put back",
}
"""Short names, for a legend."""
WORD: dict[By, str] = {"e2e": "last word", "ttft": "first word"}
_INTO: dict[Part, str] = {
    "queue": "the queue",
    "frontend": "the front end",
    "prompt": "reading its prompt",
    "handover": "the way to a replica that writes",
    "answer": "writing",
    "stalled": "stalls by others' prompts",
    "preempted": "being put back (preemption)",
}
_WHO = {"p50": "a typical request", "p95": "the slowest in 20", "p99": "the slowest in 100"}
_LOST = {"rejected": "refused", "timed_out": "gave up", "unfinished": "still under way at the end"}
"""Why a request has no complete answer, by the state that it ends in."""
_ALIKE = 1.1
"""Times a typical request's time below which the slow ones aren't slow."""
_WORTH_SAYING = 0.1
"""Share of the whole from which on a part is named."""
_HIGH = 0.9
HALF = 0.5
_BEYOND = {
    "token_budget": "others' prompts that are being read (the step's token budget)",
    "kv": "memory that long conversations hold (KV)",
    "max_num_seqs": "seats that are all kept longer at once, because those who share steps slow one another down",
}
"""What seats don't say, by what the queue waits for."""
PIPELINE_PARTS = (
    "Pipelines (PP) aren't taken apart: several batches are under way at a time, and what one of them waits for in a "
    "stage is another one's work. The times above are whole."
)
PIPELINE_PROMPT = (
    "In a pipeline (PP) a long prompt holds up the batch that reads it, and those behind it in the stages, one after "
    "the other. That isn't drawn here."
)


def headline(story: Story) -> str:
    """The verdict in one sentence."""
    e2e = story.summary["latency_s"]["e2e"]
    if not story.summary["requests"]["offered"]:
        return "Nothing arrives, so nobody waits."
    if e2e["p50"] is None:
        return "No answer is complete, so there is no time to take apart."
    fan = story.fan_out
    if fan is not None and not math.isnan(fan.action_s[0.5]):
        return (
            f"Half of the actions take longer than {seconds(fan.action_s[0.5])}; "
            f"half of their calls are answered within {seconds(fan.call_s[0.5])}."
        )
    return (
        f"Half of the answers are complete after {seconds(e2e['p50'])}; 1 in 100 takes {seconds(e2e['p99'])} or more."
    )


def explanation(story: Story) -> str:
    """The first word and the wait before it; Markdown."""
    figures, requests = story.summary["latency_s"], story.summary["requests"]
    ttft, queue = figures["ttft"], figures["queue"]
    if ttft["p50"] is None:
        return ""
    wait = (
        f"The wait in the queue is {seconds(queue['p50'])} for half (p50) and {seconds(queue['p99'])} or more for 1 in "
        "100 (p99)."
        if queue["p99"]
        else "Next to nobody waits in the queue."
    )
    text = (
        f"Half have their first word (TTFT) within {seconds(ttft['p50'])}, 1 in 100 only after "
        f"{seconds(ttft['p99'])} or more. {wait}"
    )
    lost = requests["offered"] - requests["completed"]
    if lost:
        share = fraction(lost / requests["offered"])
        why = listed([word for state, word in _LOST.items() if requests[state]], "or")
        text += f" Without a complete answer, and so without a time here: {share} ({why})."
    return text


def where_sentence(w: Where) -> str:
    """Where an unlucky and a typical request's seconds go."""
    typical, unlucky = w.levels[0], w.levels[-1]
    to = "" if w.by == "e2e" else " to the first word"
    return (
        f"**Of the {seconds(unlucky.time_s)}{to} of {_WHO[unlucky.name]}, {_goes(unlucky)}; of {_WHO[typical.name]}'s "
        f"{seconds(typical.time_s)}, {_goes(typical)}.** {_lengths(typical, unlucky, w.by)}"
    )


def _goes(level: Level) -> str:
    """The largest parts, as many as are worth saying."""
    order = sorted(level.parts.items(), key=lambda item: -item[1])
    named = [item for n, item in enumerate(order) if n == 0 or item[1] >= _WORTH_SAYING * level.time_s]
    return listed([f"{seconds(value)} go into {_INTO[part]}" if n == 0 else f"{seconds(value)} into {_INTO[part]}"
                   for n, (part, value) in enumerate(named)])  # fmt: skip


def _lengths(typical: Level, unlucky: Level, by: By) -> str:
    """Whether the slow ones are those that ask for more."""
    if unlucky.time_s < _ALIKE * typical.time_s:
        return "The slow ones hardly take longer."
    for what, words in (("output_tokens", "ask for long answers"), ("prompt_tokens", "bring long prompts")):
        one, other = getattr(typical, what), getattr(unlucky, what)
        if other >= 1.5 * one and not (by == "ttft" and what == "output_tokens"):
            return f"The slow ones {words}: {digits(other, 2)} tokens on average, typical ones {digits(one, 2)}."
    return "The slow ones ask for no more than the others: they were unlucky."


# -- a long prompt -----------------------------------------------------------------------------------------------------


def interference_sentence(found: Interference) -> str:
    """What the long prompt does to the others, and what its own sender waits."""
    prompt = f"a prompt of {found.prompt_tokens:,} tokens"
    usual = f"words come every {seconds(found.usual_s)} otherwise"
    first = f"its sender has the first word after {seconds(found.first_word_s)}"
    if found.policy == "static":
        return (
            f"**{sentence(prompt)[:-1]} stalls nobody: it waits until the group has ended, "
            f"{seconds(found.read_from_s)}, and {first}.** {usual.capitalize()}."
        )
    how = (
        f"It is read in {count(found.steps, 'step')} within {seconds(found.reading_s)}"
        if found.steps > 1
        else f"It is read in one step of {seconds(found.reading_s)}"
    )
    cut = "" if found.prompt_tokens == found.wanted_tokens else f" There is no room for {found.wanted_tokens:,}."
    return (
        f"**{sentence(prompt)[:-1]} makes everybody pause for up to {seconds(found.longest_s)}; {usual}.** "
        f"{how}, which adds {seconds(found.stall_s)} to the answers of those who write meanwhile; {first}.{cut}"
    )


# -- how prompts are read ----------------------------------------------------------------------------------------------


def chunks_sentence(found: Sequence[Read], own: int) -> str:
    """What larger and smaller steps do to first words and to pauses."""
    now = next(read for read in found if read.value == own)
    first = _best(found, now, lambda read: read.first_word_s["p95"])
    smooth = _best(found, now, lambda read: read.pause_s)
    soonest, shortest = seconds(first.first_word_s["p95"]), _or_none(smooth.pause_s)
    if first is not smooth:
        best = f"First words are soonest with {int(first.value):,} tokens ({soonest}), "
        best += f"pauses shortest with {int(smooth.value):,} ({shortest})."
    elif first is now:
        best = "No other size does better at either."
    else:
        best = f"Both are best with {int(first.value):,} tokens: {soonest} and {shortest}."
    return (
        f"**Steps of {own:,} tokens: first word within {seconds(now.first_word_s['p95'])} for 95{NBSP}%, longest pause "
        f"of an answer {_or_none(now.pause_s)} (p95).** {best}"
    )


def _best(found: Sequence[Read], now: Read, time_s: Callable[[Read], float]) -> Read:
    """The one with the shortest time, the present one where that is printed alike."""
    best = min(found, key=lambda read: _worst(time_s(read)))
    return now if _or_none(time_s(best)) == _or_none(time_s(now)) else best


def _or_none(value: float) -> str:
    """A pause; answers of one word have none."""
    return "none" if math.isnan(value) else seconds(value)


def _worst(value: float) -> float:
    return math.inf if math.isnan(value) else value


def cached_sentence(found: Sequence[Read]) -> str:
    """What a cached prefix saves."""
    none, half = found[0], next(read for read in found if read.value == HALF)
    text = (
        f"**With half of every prompt cached the first word comes after {seconds(half.first_word_s['p50'])} instead of "
        f"{seconds(none.first_word_s['p50'])} (p50), {seconds(half.first_word_s['p95'])} instead of "
        f"{seconds(none.first_word_s['p95'])} (p95).**"
    )
    if none.capacity_rps and half.capacity_rps:
        more = half.capacity_rps / none.capacity_rps - 1
        text += f" A replica can serve {percent(more, 2)} more requests, {digits(half.capacity_rps)} a second."
    return text


def source(found: Sequence[Read]) -> str:
    """What the figures come from."""
    first = found[0]
    return f"From {count(first.runs, 'run')} of {seconds(first.horizon_s)}, the same requests each time."


# -- the hockey stick --------------------------------------------------------------------------------------------------


def load_sentence(c: LoadCurve) -> str:
    """How the wait grows, and how far the closed forms are from it."""
    high, half = (int(np.argmin(np.abs(c.load - load))) for load in (_HIGH, HALF))
    wait = float(c.wait_s[high])
    text = (
        f"**At {percent(c.load[high], 2)} of what can be served a request waits {seconds(wait)} on average, at "
        f"{percent(c.load[half], 2)} {seconds(float(c.wait_s[half]))}.** "
    )
    if c.seats == 1:
        return text + (
            f"The closed form (M/G/1, Pollaczek-Khinchine) says {seconds(float(c.single_s[high]))}: "
            f"{_distance(float(c.single_s[high]), wait)}."
        )
    return text + (
        f"As many servers as seats ({c.seats}; Allen-Cunneen) would make it {seconds(float(c.seats_s[high]))}, "
        f"{_distance(float(c.seats_s[high]), wait)}; one server as fast as the whole group (M/G/1, "
        f"Pollaczek-Khinchine) {seconds(float(c.single_s[high]))}, {_distance(float(c.single_s[high]), wait)}. "
        f"{_why(c, high)}"
    )


def _why(c: LoadCurve, high: int) -> str:
    """What the closed forms don't know: what people wait for, and the step under way."""
    if c.limited_by in _BEYOND and c.seats_s[high] < 0.5 * c.wait_s[high]:
        return f"Neither knows what most of this wait is for: {_BEYOND[c.limited_by]}."
    return (
        "At light load no formula knows of the step under way, for whose end a newcomer waits "
        f"({seconds(float(c.wait_s[0]))})."
    )


def _distance(formula: float, simulated: float) -> str:
    """How far a closed form is from the simulation."""
    if not simulated > 0:
        return "with nothing simulated to compare"
    times = formula / simulated
    if times < 0.005:
        return "as good as nothing"
    if 0.5 <= times < 2:
        near = percent(abs(times - 1), 2)
        return "just what is simulated" if round(times, 2) == 1 else f"{near} {'more' if times > 1 else 'less'}"
    return f"{digits(times, 2)} times as much" if times > 1 else f"{digits(1 / times, 2)} times too little"


def load_source(c: LoadCurve) -> str:
    """What was simulated, and where the scenario stands."""
    own = f" This scenario's average load is {percent(c.own_load, 2)}" if c.own_load is not None else ""
    own += ", more than can be served." if (c.own_load or 0.0) > 1 else "." if own else ""
    busy = float(c.busy[int(np.argmin(np.abs(c.load - _HIGH)))])
    return (
        f"{count(c.runs, 'run')} of {seconds(c.horizon_s)} for each load, on {count(c.replicas, 'replica')}, with "
        f"steady arrivals and nobody refused. Replicas are in a step {percent(busy, 2)} of the time at "
        f"{percent(_HIGH, 2)} load.{own}"
    )
