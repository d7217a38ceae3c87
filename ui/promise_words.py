"""The promise page's sentences, made from the terms of a run. No Streamlit here."""

from __future__ import annotations

from collections.abc import Mapping

from engine.outcome.promises import Terms
from engine.outcome.promises.rescore import Choice
from engine.outcome.promises.threshold import Strictest, promisable
from engine.scenario import Objective
from engine.study import Fewest
from ui.promise_settings import PLACES, STATES
from ui.words import METRICS, NBSP, count, digits, listed, moment, percent, seconds, sentence

HAVE = {
    "ttft": "have the first word within {}",
    "e2e": "have the last word within {}",
    "tpot": "get a word every {} or faster",
    "max_itl": "see no gap between words above {}",
    "queue": "wait at most {} before any work",
}
_HARDLY = 0.002
"""Choices that move a share by less don't matter."""
NOBODY = "Nothing counts, so there is nothing to promise."


def what(metric: str) -> str:
    """The metric in plain words, its term beside it."""
    word, term = METRICS[metric]
    return f"{word} ({term})"


def kept_s(s: Strictest) -> str:
    """The strictest threshold as one would sign it."""
    return "–" if s.threshold_s is None else seconds(promisable(s.threshold_s))


def headline(t: Terms) -> str:
    """The question answered: what these machines can sign."""
    o, share = t.objective, t.choices[0].share
    if share is None:
        return NOBODY
    if t.strictest.threshold_s is None:
        return (
            f"Nothing can be promised to {percent(o.target)}: too many get no answer in time, however long one waits."
        )
    first = f"{percent(o.target)} {HAVE[o.metric].format(kept_s(t.strictest))}"
    promised = seconds(o.threshold_s)
    if share < o.target:
        verb = "probably can't be signed" if _doubtful(t) else "can't be signed"
        return sentence(f"{first}: {promised} {verb}")
    verb = "can probably be signed" if _doubtful(t) else "can be signed"
    more = next((target for target in (0.99, 0.999) if target > max(share, o.target)), None)
    limit = "" if more is None else f", not to {percent(more)}"
    return sentence(f"{first}: {promised} {verb} to {percent(o.target)}{limit}")


def _doubtful(t: Terms) -> bool:
    """Whether the verdict lies within the spread over runs."""
    ends = t.strictest.ci95_s
    return ends is not None and ends[0] <= t.objective.threshold_s <= ends[1]


def explanation(t: Terms, fewest: Fewest | None) -> str:
    """Where it is measured, and how many machines it takes; Markdown."""
    return " ".join(part for part in (places(t), window_by_window(t), machines_needed(fewest)) if part)


def places(t: Terms) -> str:
    """The three places' numbers in a sentence."""
    shares = {c.value: c.share for c in t.choices if c.part == "place"}
    if any(share is None for share in shares.values()):
        return ""
    server, gateway, client = (shares[place] or 0.0 for place in PLACES)
    printed = _same(shares)
    told = [f"{share} {' and '.join(there)}" for share, there in printed.items()]
    if len(told) == 1:
        return f"**{percent(client)} are in time wherever it is measured.**"
    if client > gateway:
        why = "a retry makes good what the gateway counts as broken, so callers see less trouble than it does"
    elif server > gateway and PLACES["gateway"] not in printed[percent(server)]:
        why = "the server doesn't see whom it refused, and only callers know of retries and the network"
    else:
        why = "only callers see the network and what came before their last try"
    return f"**The same answers: {listed(told) if len(told) > 2 else ', '.join(told)} in time**; {why}."


def _same(shares: Mapping[str, float | None]) -> dict[str, list[str]]:
    """Places by the share that is printed for them: what looks the same is said once."""
    found: dict[str, list[str]] = {}
    for place in PLACES:
        found.setdefault(percent(shares[place] or 0.0), []).append(PLACES[place])
    return found


def window_by_window(t: Terms) -> str:
    """Whether what holds over the whole run holds in the windows that the promise names; "" where none fits."""
    w = t.windows
    if w is None or w.share is None or w.share == 1.0 or w.length_s != t.objective.window_s:
        return ""
    windows = f"{w.kind} windows of {seconds(w.length_s)}"
    kept = f"of {windows} {percent(w.share)} keep" if w.share else f"none of the {windows} keeps"
    told = f"That is over whole runs: {kept} the promise"
    every = None if t.windows_curve is None else t.windows_curve.all_kept_s
    return f"{told}, all of them at {seconds(promisable(every))}." if every is not None else f"{told}."


def machines_needed(found: Fewest | None) -> str:
    """The fewest replicas that keep the promise; "" while that isn't known."""
    if found is None:
        return ""
    here = " as now" if found.replicas == found.have and not found.changes else f", {found.have} now"
    return f"The fewest machines that keep it: **{count(found.replicas, 'replica')}**{here}{_range(found)}."


def _range(found: Fewest) -> str:
    if found.perhaps is None:
        return ""
    if found.surely is None:
        return f" (by the spread over runs {found.perhaps} or more)"
    if found.perhaps == found.surely:
        return ""
    return f" (by the spread over runs {found.perhaps} to {found.surely})"


def fewest_sentence(found: Fewest) -> str:
    """What to read in the chart of replicas."""
    mine, fewer = found.trial(found.replicas), found.trial(found.replicas - 1)
    assert mine is not None
    keep = "keeps" if found.replicas == 1 else "keep"
    first = f"{count(found.replicas, 'replica')} {keep} the promise for {percent(mine.attainment)}"
    other = f", {found.replicas - 1} for {percent(fewer.attainment)}" if fewer is not None else ""
    if found.runs == 1:
        return f"**{sentence(first + other)}**"
    runs = (
        f"{mine.runs_kept} of {found.runs} runs {'keeps' if mine.runs_kept == 1 else 'keep'} it with {found.replicas}"
    )
    return f"**{sentence(first + other)}** {sentence(runs + _range(found))}"


def no_number(o: Objective) -> str:
    """Where more machines don't help."""
    return (
        f"**No number of replicas keeps {seconds(o.threshold_s)} for {percent(o.target)}.** "
        "What is promised is shorter than a request alone takes, or what breaks it isn't the load."
    )


def curve_sentence(t: Terms) -> str:
    """What to read in attainment against the threshold."""
    o, share = t.objective, t.choices[0].share
    assert share is not None
    others = [s for s in t.by_target if s.target != o.target and s.threshold_s is not None and s.target >= 0.9]
    also = [f"{percent(s.target)} need {kept_s(s)}" for s in others]
    never = [percent(s.target) for s in t.by_target if s.threshold_s is None]
    more = f"{sentence(listed(also))} " if also else ""
    none = sentence(f"{listed(never)} can't be promised, however long one waits") + " " if never else ""
    spread = ""
    if t.strictest.ci95_s is not None:
        low, high = (seconds(end) for end in t.strictest.ci95_s)
        spread = f"From run to run the strictest is uncertain between {low} and {high} (95{NBSP}% interval)."
        if low == high:
            spread = "The strictest is the same from run to run."
    first = f"within {seconds(o.threshold_s)}: {percent(share)} of requests, {percent(o.target)} promised."
    return f"**{sentence(first)}** {more}{none}{spread}".strip()


def choices_sentence(t: Terms) -> str:
    """What to read in the dots: how far one run's number can be moved by choosing."""
    now = t.choices[0]
    same = [c for c in t.choices if c.part in ("place", "failures") and c.share is not None]
    low, high = min(c.share or 0.0 for c in same), max(c.share or 0.0 for c in same)
    first = f"the promise as it is: {percent(now.share or 0.0)}"
    if high - low < _HARDLY:
        return f"**{sentence(first)}** Where it is measured and what counts as broken hardly matter in this run."
    by = f"place and failures alone move the same run from {percent(low)} to {percent(high)}"
    return f"**{sentence(first)}** {sentence(by)}"


def choice_word(c: Choice, o: Objective) -> str:
    """A choice in a few words."""
    match c.part:
        case "now":
            return "as promised"
        case "place":
            return PLACES[c.value]
        case "failures":
            return _failures(c.value)
        case "metric":
            return METRICS[c.value][0]
        case "threshold":
            return f"within {seconds(c.value)}"
        case "window":
            kind, length = c.value
            return f"{kind} {seconds(length)}" if kind != "slice" else f"slices of {seconds(length)}"


def _failures(states: tuple[str, ...]) -> str:
    if set(states) == set(STATES):
        return "all failures count"
    return "answers only" if not states else "refusals don't count"


PARTS = {
    "now": "Now", "place": "Measured", "failures": "Failures", "metric": "What", "threshold": "Threshold",
    "window": "Windows kept",
}  # fmt: skip


def budget_sentence(t: Terms) -> str:
    """What to read in the budget's course."""
    b, o = t.budget, t.objective
    if b is None:
        return "**There is no error budget:** the target of 100 % allows nothing." if o.target >= 1 else f"**{NOBODY}**"
    allowed = f"{percent(1 - o.target)} of requests may be bad, or everything for {seconds(t.downtime_s)} of "
    allowed += f"{seconds(o.window_s)}"
    if not b.used:
        return f"**Nothing of the error budget is used.** {sentence(allowed)}"
    pace = f"burns at {digits(b.pace, 2)} times what is allowed (burn rate)"
    ends = "the budget lasts" if b.pace <= 1 else f"a window's budget is gone after {seconds(o.window_s / b.pace)}"
    steep = f"at worst {digits(b.steepest, 2)} for {seconds(b.slice_s)}, {moment(b.steepest_at_s)}"
    return f"**The error budget {pace}: {ends}.** {sentence(allowed)} {sentence(steep)}"
