"""The start page's sentences, made from the facts of a story."""

from __future__ import annotations

import math

import numpy as np

from engine.outcome.course import Arrivals
from engine.outcome.story import Promise, Story
from engine.scenario import Scenario
from ui.words import (
    METRICS,
    NBSP,
    REASONS,
    count,
    digits,
    fraction,
    listed,
    moment,
    people,
    percent,
    rate,
    requests,
    seconds,
    sentence,
)

_LATE = {
    "ttft": ("waits longer than promised for the first word", "wait longer than promised for the first word"),
    "e2e": ("waits longer than promised for the last word", "wait longer than promised for the last word"),
    "tpot": ("gets words slower than promised", "get words slower than promised"),
    "max_itl": ("sees a longer pause than promised", "see a longer pause than promised"),
    "queue": ("waits in the queue longer than promised", "wait in the queue longer than promised"),
}
_IN_TIME = {
    "ttft": ("gets the first word within", "get the first word within"),
    "e2e": ("gets the last word within", "get the last word within"),
    "tpot": ("gets a word every", "get a word every"),
    "max_itl": ("sees no pause above", "see no pause above"),
    "queue": ("waits in the queue at most", "wait in the queue at most"),
}
_SLOWEST = {
    "ttft": f"the slowest 5{NBSP}% wait {{}} for the first word (TTFT) at worst",
    "e2e": f"the slowest 5{NBSP}% have the last word (E2E) after {{}} at worst",
    "tpot": f"the slowest 5{NBSP}% get a word every {{}} (TPOT) at worst",
    "max_itl": f"the unluckiest 5{NBSP}% see a gap between words (ITL) of {{}} at worst",
    "queue": f"the unluckiest 5{NBSP}% are in the queue (queue time) for {{}} at worst",
}
"""What the 95th percentile of each metric is, with the term that the chart has."""
_TURNED_AWAY = ("is turned away", "are turned away")
_WORSE = 1.2
"""The busiest minutes are worth a word when they are this many times as bad as the average."""

_STILL_WRITING = 1.5
"""Times a usual answer: who came later than that before the end can't have had one."""


def headline(story: Story, scenario: Scenario) -> str:
    """The verdict in one sentence; "probably" where it would turn within the usual error of step times."""
    promise, tail, doubt = story.promise, story.tail, story.doubt
    if story.verdict == "idle":
        return "Nothing arrives, so nobody waits."
    if story.verdict == "refused":
        return "Nobody is served: every request is turned away."
    if story.verdict == "unserved":
        return f"Nobody gets a whole answer within the {_horizon(story, scenario)} simulated."
    if story.verdict == "turned_away":
        return sentence(people(story.turned_away or 0.0, *_probably(_TURNED_AWAY, doubt.overall)))
    if promise is None or story.verdict == "unpromised":
        word = METRICS[tail.metric][0]
        return "Nothing to judge." if tail.p95 is None else f"1 in 20 waits {seconds(tail.p95)} or more for the {word}."
    late = _LATE[promise.objective.metric]
    if story.verdict == "overloaded":
        more = "Probably more" if doubt.overload or doubt.overall else "More"
        return f"{more} arrives than can be served: {people(_broken(promise), *late)}."
    if story.verdict == "broken":
        return sentence(people(_broken(promise), *_probably(late, doubt.overall)))
    if story.verdict == "busiest":
        return f"In the {_busiest(promise)}, {people(_broken_then(promise) or 0.0, *_probably(late, doubt.busiest))}."
    return _holds(promise, doubt.overall or doubt.busiest)


def _probably(words: tuple[str, str], doubtful: bool) -> tuple[str, str]:
    """What one does and what many do, with "probably" before a verdict that might turn."""
    one, many = words
    return (_put(one), _put(many)) if doubtful else words


def _put(words: str) -> str:
    """Before the verb, or after "is" and "are"."""
    first, _, rest = words.partition(" ")
    return f"{first} probably {rest}" if first in ("is", "are") else f"probably {words}"


def explanation(story: Story) -> str:
    """What stands behind the verdict; Markdown."""
    return " ".join(part for part in (_context(story), _kept(story.promise, story.doubt.overall)) if part)


def _context(story: Story) -> str:
    promise, offered, able = story.promise, story.offered_rps or 0.0, story.fleet_rps
    can = f"{rate(able)} can be served" if able else "none can be served"
    can += " by the replicas that are ready, on average" if able and story.relief is not None else ""
    match story.verdict:
        case "idle":
            return "Raise the requests per second, or open a preset."
        case "refused":
            return sentence(f"the reason: {_reasons(story)}")
        case "unserved":
            return "Answers take longer than the run. Try shorter answers, a faster chip or a longer run."
        case "turned_away" | "overloaded":
            return sentence(f"{requests(offered)} arrive, {can}")
        case "broken" if promise is not None:
            then = _broken_then(promise)
            if then is not None and then > _WORSE * _broken(promise):
                return f"In the {_busiest(promise)} it is {fraction(then)}."
            return sentence(f"on average {requests(offered)} arrive, {can}")
        case "busiest" if promise is not None:
            looks = "probably looks" if story.doubt.overall else "looks"
            return f"On average it {looks} fine: {fraction(_broken(promise))}."
        case "unpromised":
            return "Nothing is promised, so there is nothing to keep or break."
        case "holds":
            return sentence(f"on average {requests(offered)} arrive, {can}")
    return ""


def _kept(promise: Promise | None, doubtful: bool) -> str:
    if promise is None or promise.attainment.attainment is None:
        return ""
    share, objective = promise.attainment.attainment, promise.objective
    word = "kept**: for" if share >= objective.target else "broken**: kept for"
    word = f"**{'probably ' if doubtful else ''}{word}"
    terms = f"{seconds(objective.threshold_s, 3)} for {percent(objective.target)}"
    runs = f", in {promise.runs_kept} of {promise.runs} runs" if promise.runs > 1 else ""
    return f"The promise ({terms}) is {word} {percent(share)} of requests{runs}."


def _holds(promise: Promise, doubtful: bool) -> str:
    then = _broken_then(promise)
    share = 1.0 - (_broken(promise) if then is None else then)
    one, many = _IN_TIME[promise.objective.metric]
    who = f"everybody {one}" if share == 1.0 else f"{percent(share)} {many}"
    when = "" if then is None else f"even in the {_busiest(promise)}, "
    return f"It {'probably holds' if doubtful else 'holds'}: {when}{who} {seconds(promise.objective.threshold_s, 3)}."


def _broken(promise: Promise) -> float:
    return 1.0 - (promise.attainment.attainment or 0.0)


def _broken_then(promise: Promise) -> float | None:
    return promise.busiest.broken if promise.busiest else None


def _busiest(promise: Promise) -> str:
    width = promise.busiest.slice_s if promise.busiest else 60.0
    return {60.0: "busiest minutes", 10.0: "busiest moments"}.get(width, "busiest seconds")


def _horizon(story: Story, scenario: Scenario) -> str:
    return seconds(float(story.summary["run"]["horizon_s"] or scenario.run.horizon_s or 0.0))


def _reasons(story: Story) -> str:
    return listed([REASONS[reason] for reason in story.reasons])


# -- one sentence a chart ----------------------------------------------------------------------------------------------


def arrivals_sentence(story: Story, scenario: Scenario) -> str:
    """What to read in arrivals against capacity; with two pools, what each of them can do."""
    return f"{_against_capacity(story, scenario)}{_by_pool(story)}"


def _by_pool(story: Story) -> str:
    parts = []
    for name, work in (("prefill", "read the prompts of"), ("decode", "write the answers to")):
        pool = story.summary.get("pools", {}).get(name, {})
        if pool.get("capacity_rps"):  # none where nothing fits, or answers are single words
            most = rate(pool["replicas"] * pool["capacity_rps"])
            parts.append(f"{count(pool['replicas'], 'replica')} can {work} {most}")
    return f" {sentence(', '.join(parts))}" if parts else ""


def _against_capacity(story: Story, scenario: Scenario) -> str:
    a = story.arrivals
    if a.capacity_rps is None:
        return "No request of this mix fits on a replica, so nothing can be served."
    if scenario.traffic.process == "closed":
        users, replicas = count(scenario.traffic.closed.users, "user"), count(scenario.replicas, "replica")
        own = f"{users} who ask again when they have their answer bring {requests(story.offered_rps or 0.0)}"
        more = " The shaded moments bring more." if a.above_s else ""
        return f"**{own}; {replicas} can serve {rate(a.capacity_rps)}.**{more}"
    can = _what_can_be_served(a, scenario)
    if not a.above_s:
        return f"**Arrivals never pass {can}.**"
    shaded = "The shaded area has to wait" + (" or is turned away." if story.turned_away else ".")
    if a.above_s > 0.97 * a.window_s:
        return f"**Arrivals are above {can} all the time.** {shaded}"
    return f"**Arrivals pass {can} for {seconds(a.above_s)} of {seconds(a.window_s)}.** {shaded}"


def _what_can_be_served(a: Arrivals, scenario: Scenario) -> str:
    if a.capacity_course_rps is None:
        return f"what {count(scenario.replicas, 'replica')} can serve ({rate(a.capacity_rps or 0.0)})"
    low, high = float(np.nanmin(a.capacity_course_rps)), float(np.nanmax(a.capacity_course_rps))
    span = rate(high) if low == high else f"{digits(low, 2)} to {rate(high)}" if low >= 0.5 else f"up to {rate(high)}"
    return f"what the ready replicas can serve ({span})"


def latency_sentence(story: Story) -> str:
    """What to read in the latency over time; without any, all there is to say."""
    course, promise = story.latencies, story.promise
    if math.isnan(course.worst_s):
        return "Nobody came, so nobody waits." if story.verdict == "idle" else "Nobody got an answer: no wait to show."
    worst = f"{_SLOWEST[story.tail.metric].format(seconds(course.worst_s))}, {moment(course.worst_at_s)}"
    silent = ""
    if course.silent_from_s is not None and _is_long(story, course.silent_from_s):
        silent = f" Nobody who comes after {moment(course.silent_from_s, '')} has an answer by the end."
    if promise is None:
        return f"**{worst[:1].upper()}{worst[1:]}.**{silent}"
    target = percent(promise.objective.target)
    if not course.broken_s:
        return f"**At no time are fewer than {target} in time:** {worst}.{silent}"
    return f"**For {seconds(course.broken_s)}, fewer than {target} are in time:** {worst}.{silent}"


def _is_long(story: Story, silent_from_s: float) -> bool:
    """Whether the silence at the end is more than answers that were still being written."""
    usual = story.summary["latency_s"]["e2e"]["p50"] or 0.0
    return float(story.summary["run"]["horizon_s"]) - silent_from_s > _STILL_WRITING * usual


def refusals_sentence(story: Story) -> str:
    """What to read in the refusals over time; without any, all there is to say."""
    share = story.turned_away
    if not share:
        return "Nobody came, so nobody is turned away." if story.verdict == "idle" else "**Nobody is turned away.**"
    usual, worst = fraction(share), fraction(story.refusals.worst)
    peak = f", {worst} {moment(story.refusals.worst_at_s)}" if worst != usual else ""
    return f"**{people(share, *_TURNED_AWAY).capitalize()}{peak}:** {_reasons(story)}."
