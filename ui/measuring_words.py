"""The promise page's sentences about measuring: alerts, histograms, windows, averages, testers. No Streamlit here."""

from __future__ import annotations

from math import isfinite

from engine.outcome.promises import Terms
from engine.outcome.promises.alerts import Alert
from engine.outcome.promises.rescore import Choice
from engine.outcome.promises.windows import Windows
from ui.words import NBSP, count, digits, listed, percent, seconds, sentence


def windows_sentence(t: Terms) -> str:
    """Requests against slices of time, rolling against calendar windows."""
    found = [c for c in t.choices if c.part == "window" and c.share is not None]
    if not found or t.choices[0].share is None:
        return ""
    told = listed([f"{percent(c.share)} of {_windows(c)}" if c.share else f"none of the {_windows(c)}" for c in found])
    weighed = f"{percent(t.choices[0].share)} of requests were in time, and the target was met in {told}"
    w = t.windows
    worst = "" if w is None or w.worst in (None, 1.0) else _worst(w)
    why = "A request counts the same whenever it comes; a slice of time counts the same however many come in it."
    shorter = ""
    if w is not None and w.length_s != t.objective.window_s:
        shorter = (
            f" The promise's own window of {seconds(t.objective.window_s)} doesn't fit twice into a run, "
            f"so windows of {seconds(w.length_s)} stand in."
        )
    return f"**{sentence(weighed)}**{worst} {why}{shorter}"


def _worst(w: Windows) -> str:
    share = f"only {percent(w.worst)} were" if w.worst else "nobody was"
    return f" In the worst {w.kind} window {share} in time."


def _windows(c: Choice) -> str:
    kind, length = c.value
    return f"slices of {seconds(length)}" if kind == "slice" else f"{kind} windows of {seconds(length)}"


def alerts_sentence(t: Terms) -> str:
    """What to read in the table of alerts."""
    if not t.alerts:
        return "**Without an error budget no alert can be set.**"
    sounded = [a for a in t.alerts if a.fired]
    blind = [a for a in t.alerts if a.possible and not a.usable]
    if sounded:
        first = sounded[0]
        where = f" in {first.fired} of {first.runs} runs," if first.runs > 1 else ""
        late = seconds(first.late_s or 0.0)
        text = f"the alert on a burn rate of {digits(first.rule.burn)} sounds{where} {late} after trouble began"
    elif blind and len(blind) + sum(not a.possible for a in t.alerts) == len(t.alerts):
        text = (
            f"over a window of {seconds(t.objective.window_s)} no alert can tell: its own windows hold too few requests"
        )
    else:
        text = "no alert would have sounded"
    return f"**{sentence(text)}** {snap_sentence(t)}"


def snap_sentence(t: Terms) -> str:
    """Where an alert can stand at all."""
    e = t.edge
    if e.exact:
        return f"A histogram can count it: {seconds(e.asked_s)} is an edge of vLLM's buckets."
    around = listed([seconds(edge) for edge in (e.below_s, e.above_s) if edge is not None])
    return (
        f"vLLM's histogram has no edge at {seconds(e.asked_s)}, only at {around}: "
        f"the alert is moved to **{seconds(e.edge_s)}**."
    )


def alert_when(a: Alert) -> str:
    """A cell of the table: when an alert sounds, or why not."""
    if not a.possible:
        return "never: needs more than all"
    if not a.usable:
        return f"can't tell: {digits(a.in_short, 2)} requests in its short window"
    if a.fired:
        return f"in {a.fired} of {a.runs} runs" if a.runs > 1 else "yes"
    return "not at this pace" if a.otherwise_s is None else f"not yet: after {seconds(a.otherwise_s)} at this pace"


def histogram_sentence(t: Terms) -> str:
    """What to read in the histogram's error."""
    if not t.readings:
        return "**Nobody was answered, so a histogram has nothing to say.**"
    worst = max(t.readings, key=lambda r: abs(r.error or 0.0))
    name = f"p{worst.q * 100:g}"
    low, high = worst.bucket_s
    said = f"Prometheus would show a {name} of {seconds(worst.read_s)}; it is {seconds(worst.true_s)}"
    off = "" if worst.error is None else f" ({worst.error:+.0%})".replace("%", f"{NBSP}%").replace("-", "−")
    if isfinite(high):
        why = f"All that it knows is how many lie between {seconds(low)} and {seconds(high)}."
    else:
        why = f"Above its last edge, {seconds(low)}, it knows nothing."
    return f"**{said}{off}.** {why}"


def averages_sentence(t: Terms) -> str:
    """Percentiles averaged over slices, replicas and runs."""
    if not t.averages:
        return ""
    words = {"slice": "slices of time", "replica": "replicas of a run", "run": "runs"}
    first = next(iter(t.averages.values()))
    told = [f"{seconds(a.mean_s)} over {a.parts:,} {words[name]}" for name, a in t.averages.items()]
    return (
        f"**The p99 of all who were answered is {seconds(first.true_s)}; the mean of the parts' p99s is "
        f"{listed(told)}.** "
        "Weights don't mend it: the slow requests of all parts may come from one. Add histograms, not percentiles."
    )


def omission_sentence(t: Terms) -> str:
    """A closed-loop tester's figures."""
    o = t.omission
    if o is None:
        return ""
    who, there = ("In the first run a", " there") if "run" in t.averages else ("A", "")
    first = (
        f"{who} load tester with {count(o.connections, 'connection')} that waits for its answers would report a p99 of "
        f"{seconds(o.tester.p99_s)}; everybody's is {seconds(o.everybody.p99_s)}{there}."
    )
    if o.omitted <= 0:
        return f"**{first}** It was there for every request."
    return (
        f"**{first}** It wasn't there for {percent(o.omitted, 2)} of the requests, those that came while its "
        "connections waited (coordinated omission). Send by the clock instead."
    )


def sure_sentence(t: Terms) -> str:
    """How many requests a percentile needs."""
    p99 = next((s for s in t.sure if s.q == 0.99), None)
    if p99 is None:
        return ""
    needs = f"**A p99 needs {p99.needs:,} requests before anything bounds it above**"
    if p99.high_s is None or p99.low_s is None:
        return f"{needs}; there are {t.answered:,}, so this run's could be anything above what was seen."
    ends = f"between {seconds(p99.low_s, 3)} and {seconds(p99.high_s, 3)}"
    return (
        f"{needs}; there are {t.answered:,}, which puts it {ends} if they were independent. "
        "They aren't within a run, so the spread over runs is wider."
    )
