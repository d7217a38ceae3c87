"""The start page's sentences, made from the facts of a story."""

from __future__ import annotations

import math

from engine.outcome.story import Promise, Story
from engine.scenario import Scenario
from ui.words import METRICS, REASONS, count, fraction, listed, moment, percent, rate, seconds, sentence

_LATE = {
    "ttft": ("waits longer than promised for the first word", "wait longer than promised for the first word"),
    "e2e": ("waits longer than promised for the last word", "wait longer than promised for the last word"),
    "tpot": ("gets words slower than promised", "get words slower than promised"),
    "max_itl": ("sees a longer pause than promised", "see a longer pause than promised"),
    "queue": ("waits in the queue longer than promised", "wait in the queue longer than promised"),
}
_IN_TIME = {
    "ttft": "get the first word within",
    "e2e": "get the last word within",
    "tpot": "get a word every",
    "max_itl": "see no pause above",
    "queue": "wait in the queue at most",
}


def headline(story: Story, scenario: Scenario) -> str:
    """The verdict in one sentence."""
    promise = story.promise
    match story.verdict:
        case "idle":
            return "Nothing arrives, so nobody waits."
        case "refused":
            return "Nobody is served: every request is turned away."
        case "unserved":
            return f"Nobody gets a whole answer within the {_horizon(story, scenario)} simulated."
        case "turned_away":
            return _people(story.turned_away or 0.0, "is turned away", "are turned away")
        case "overloaded":
            return f"More arrives than can be served: {_late(promise)[:-1]}."
        case "broken":
            return sentence(_late(promise))
        case "busiest":
            worst = promise.busiest if promise else None
            assert promise is not None and worst is not None
            return f"In the {_busiest(story)}, {_people(worst.broken or 0.0, *_verbs(promise), lower=True)}"
        case "holds":
            return _holds(story)
    p95 = story.tail.p95
    word = METRICS[story.tail.metric][0]
    return f"The slowest 1 in 20 waits {seconds(p95)} or more for the {word}." if p95 is not None else "Nothing to judge."


def explanation(story: Story, scenario: Scenario) -> str:
    """What stands behind the verdict; Markdown."""
    parts = [_context(story, scenario), _kept(story.promise)]
    return " ".join(part for part in parts if part)


def _context(story: Story, scenario: Scenario) -> str:
    promise, offered, able = story.promise, story.offered_rps, story.fleet_rps
    match story.verdict:
        case "idle":
            return "Raise the requests per second, or open a preset."
        case "refused":
            return sentence(f"the reason: {_reasons(story)}")
        case "unserved":
            return "Answers take longer than the run. Try shorter answers, a faster chip or a longer run."
        case "turned_away" | "overloaded" if offered is not None:
            can = f"{rate(able)} can be served" if able else "none can be served"
            return f"{sentence(rate(offered).replace(' a ', ' requests a ', 1) + f' arrive, {can}')}"
        case "broken":
            worst = promise.busiest if promise else None
            if promise and worst and worst.broken and worst.broken > _broken(promise) * 1.2:
                return f"In the {_busiest(story)} it is {fraction(worst.broken)[0].removesuffix(' people')}."
        case "busiest":
            assert promise is not None
            share = _broken(promise)
            return f"On average it looks fine: {fraction(share)[0].removesuffix(' people')}."
        case "unpromised":
            return "Nothing is promised, so there is nothing to keep or break."
        case "holds":
            if offered is not None and able:
                return f"On average {rate(offered).replace(' a ', ' requests a ', 1)} arrive; {rate(able)} can be served."
    return ""


def _kept(promise: Promise | None) -> str:
    if promise is None or promise.attainment.attainment is None:
        return ""
    share, objective = promise.attainment.attainment, promise.objective
    word = "**kept**: for" if share >= objective.target else "**broken**: kept for"
    terms = f"{seconds(objective.threshold_s, 3)} for {percent(objective.target)}"
    runs = f", in {promise.runs_kept} of {promise.runs} runs" if promise.runs > 1 else ""
    return f"The promise ({terms}) is {word} {percent(share)} of requests{runs}."


def _holds(story: Story) -> str:
    promise = story.promise
    assert promise is not None
    worst = promise.busiest
    share = promise.attainment.attainment if worst is None or worst.broken is None else 1.0 - worst.broken
    who = "everybody" if share == 1.0 else percent(share or 0.0)
    within = _IN_TIME[promise.objective.metric]
    if share == 1.0:
        verb, _, rest = within.partition(" ")
        within = f"{verb}s {rest}"
    when = f"even in the {_busiest(story)}, " if worst is not None and worst.broken is not None else ""
    return f"It holds: {when}{who} {within} {seconds(promise.objective.threshold_s, 3)}."


def _late(promise: Promise | None) -> str:
    assert promise is not None
    return _people(_broken(promise), *_verbs(promise), lower=True)


def _verbs(promise: Promise) -> tuple[str, str]:
    return _LATE[promise.objective.metric]


def _people(share: float, one: str, many: str, lower: bool = False) -> str:
    who, plural = fraction(share)
    text = f"{who} {many if plural else one}."
    return text if lower else text[:1].upper() + text[1:]


def _broken(promise: Promise) -> float:
    return 1.0 - (promise.attainment.attainment or 0.0)


def _busiest(story: Story) -> str:
    worst = story.promise.busiest if story.promise else None
    width = worst.slice_s if worst else 60.0
    return {60.0: "busiest minutes", 10.0: "busiest moments"}.get(width, "busiest seconds")


def _horizon(story: Story, scenario: Scenario) -> str:
    return seconds(float(story.summary["run"]["horizon_s"] or scenario.run.horizon_s or 0.0))


def _reasons(story: Story) -> str:
    return listed([REASONS[reason] for reason in story.reasons])


# -- one sentence a chart ----------------------------------------------------------------------------------------------


def arrivals_sentence(story: Story, scenario: Scenario) -> str:
    """What to read in arrivals against capacity."""
    a = story.arrivals
    replicas = count(scenario.fleet.replicas, "replica")
    if a.capacity_rps is None:
        return "No request of this mix fits on a replica, so nothing can be served."
    can = f"what {replicas} can serve ({rate(a.capacity_rps)})"
    if not a.above_s:
        return f"**Arrivals never pass {can}.**"
    if a.above_s > 0.97 * a.window_s:
        return f"**Arrivals are above {can} all the time.** The shaded area is the queue being built."
    times = f"{seconds(a.above_s)} of {seconds(a.window_s)}"
    return f"**Arrivals pass {can} for {times}.** The shaded area is the queue being built."


def latency_sentence(story: Story) -> str:
    """What to read in the latency over time."""
    course, promise = story.latencies, story.promise
    word = METRICS[story.tail.metric][0]
    if math.isnan(course.worst_s):
        return "Nobody got an answer, so there is no wait to show."
    worst = f"{seconds(course.worst_s)} at worst, {moment(course.worst_at_s)}"
    if promise is None:
        return f"**The {word} takes the slowest 5 % {worst}.**"
    if not course.over_s:
        return f"**The slowest 5 % stay within the promise throughout:** {worst}."
    return f"**The slowest 5 % are over the promise for {seconds(course.over_s)}:** {worst}."


def refusals_sentence(story: Story) -> str:
    """What to read in the refusals over time; without any, all there is to say."""
    share = story.turned_away
    if not share:
        return "**Nobody is turned away.**" + ("" if story.verdict != "idle" else " Nobody came.")
    worst = fraction(story.refusals.worst)[0].removesuffix(" people")
    at = moment(story.refusals.worst_at_s)
    return f"**{_people(share, 'is turned away', 'are turned away')[:-1]}, {worst} {at}:** {_reasons(story)}."
