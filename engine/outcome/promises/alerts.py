"""When each burn-rate alert would have sounded in a run, and how late.

An alert knows of a request when its time is measured: a refusal at once, a first word when it comes, a last one when it
comes, and never what is still under way. It counts where a histogram can, at the edge of a bucket. Before the run's
counted part all is taken to have been well, with as many requests a second as in it.

Trouble begins where bad requests start to outnumber what the alert allows for good: the lowest point of
bad - allowed * valid before it sounds (the change point of a CUSUM chart; Page, Biometrika 41, 1954).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.outcome.objectives import Scored
from engine.outcome.places import first_rows, last_rows
from engine.outcome.result import Result
from engine.outcome.spread import Floats
from engine.scenario import Objective
from engine.serving import REJECTED, TIMED_OUT

from .burn_rate import RULES, Rule, consumed, detected_after, error_share

LEAST_REQUESTS = 10
"""Requests that a short window holds on average, or its share of bad ones says nothing."""
_LOOKS = (1000, 4000)
"""Times that an alert is looked at in a run, at least and at most; in between five times in a short window."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One rule, scaled to the promise's window, in all runs; seconds."""

    rule: Rule
    error_share: float
    """Share of bad requests above which it sounds; above 1 it never can."""
    consumed: float
    """Of the budget, after a long window at just that share."""
    in_short: float
    """Requests that its short window holds on average."""
    fired: int
    """Runs in which it sounded."""
    runs: int
    at_s: float | None
    """When, by the run's clock; the median of those runs."""
    late_s: float | None
    """After trouble had begun; their median."""
    otherwise_s: float | None
    """Where it never sounded: after how long it would at the run's mean pace; ``None``: never."""

    @property
    def usable(self) -> bool:
        """Whether its short window holds enough requests to tell."""
        return self.in_short >= LEAST_REQUESTS

    @property
    def possible(self) -> bool:
        """Whether any traffic could make it sound."""
        return self.error_share <= 1.0


@dataclass(frozen=True, slots=True)
class Events:
    """What an alert sees of one run, by when it is seen, and when trouble came in; all (n,), seconds."""

    seen_s: Floats
    bad: NDArray[np.bool_]
    asked_s: Floats


def alerts(result: Result, objective: Objective, scored: Scored) -> tuple[Alert, ...]:
    """Every rule, the most urgent first; none where no bad request is allowed or nothing counts."""
    length = result.run.horizon_s - result.warmup_s
    counted = scored.valid & result.counted
    if objective.target >= 1 or not counted.any() or not (length > 0).all():
        return ()
    events = _events(result, objective, scored)
    rate = float(counted.sum() / length.sum())
    bad_share = float((counted & ~scored.good).sum() / counted.sum())
    return tuple(_alert(rule.scaled(objective.window_s), events, objective, result, rate, bad_share) for rule in RULES)


def _alert(
    rule: Rule, events: list[Events], objective: Objective, result: Result, rate: float, bad_share: float
) -> Alert:
    allowed, start = error_share(rule.burn, objective.target), result.warmup_s
    in_short, fired = rate * rule.short_s, np.full((2, len(events)), np.nan)
    if in_short >= LEAST_REQUESTS and allowed <= 1:
        for i, (run, end) in enumerate(zip(events, result.run.horizon_s.tolist(), strict=True)):
            at = sounds_at(run, rule, allowed, rate, start, end)
            if at is not None:
                fired[:, i] = at, at - _began(run, allowed, at)
    known = fired[:, ~np.isnan(fired[0])]
    some = known.shape[1] > 0
    return Alert(
        rule=rule,
        error_share=allowed,
        consumed=consumed(rule.burn, rule.long_s, objective.window_s),
        in_short=in_short,
        fired=known.shape[1],
        runs=len(events),
        at_s=float(np.median(known[0])) if some else None,
        late_s=float(np.median(known[1])) if some else None,
        otherwise_s=None if some else detected_after(rule.burn, objective.target, rule.long_s, bad_share),
    )


def sounds_at(run: Events, rule: Rule, allowed: float, rate: float, start: float, end: float) -> float | None:
    """When both windows are first worse than ``allowed``, looking often enough; ``None``: never from start to end.

    ``rate`` is that of the good requests, a second, before ``start``.
    """
    order = np.argsort(run.seen_s, kind="stable")
    seen = run.seen_s[order]
    bad = np.concatenate([[0], np.cumsum(run.bad[order])])
    least, most = ((end - start) / many for many in reversed(_LOOKS))
    step = min(max(rule.short_s / 5, least), most)
    looks = start + step * np.arange(1, int((end - start) / step + 1e-9) + 1)
    now = np.searchsorted(seen, looks, side="right")
    sounding = np.ones(looks.size, np.bool_)
    for window in (rule.long_s, rule.short_s):
        since = looks - window
        before = np.searchsorted(seen, since, side="right")
        valid = now - before + rate * np.maximum(start - since, 0.0)
        sounding &= (bad[now] - bad[before] > allowed * valid) & (valid > 0)
    return float(looks[np.argmax(sounding)]) if sounding.any() else None


def _began(run: Events, allowed: float, until: float) -> float:
    """When trouble began, of what was seen by ``until``."""
    known = run.seen_s <= until
    order = np.argsort(run.asked_s[known], kind="stable")
    asked, bad = run.asked_s[known][order], run.bad[known][order]
    excess = np.concatenate([[0.0], np.cumsum(bad - allowed)])
    low = int(np.flatnonzero(excess <= excess.min() + 1e-12)[-1])
    return float(asked[min(low, asked.size - 1)])


def _events(result: Result, objective: Objective, scored: Scored) -> list[Events]:
    """What can be seen of every run's requests that count."""
    a = result.run.attempts
    first = first_rows(a) if objective.measured_at == "client" else np.arange(a.arrival_s.size)
    last = last_rows(a) if objective.measured_at == "client" else first
    seen = seen_s(result, objective)[last]
    chosen = (scored.valid & result.counted)[first] & ~np.isnan(seen)
    mine = np.flatnonzero(chosen)
    at, bad, asked, seed = seen[mine], ~scored.good[first[mine]], a.arrival_s[first[mine]], a.seed_index[first[mine]]
    bounds = np.searchsorted(seed, np.arange(a.seeds + 1)).tolist()
    return [Events(at[i:j], bad[i:j], asked[i:j]) for i, j in pairwise(bounds)]


def seen_s(result: Result, objective: Objective) -> Floats:
    """(attempts,): when each one's time, or that it has none, is known to who measures; ``nan``: never in the run."""
    a = result.run.attempts
    known = {"ttft": a.first_token_s, "queue": a.scheduled_s}.get(objective.metric, a.finish_s)
    lost = (a.state == REJECTED) | (a.state == TIMED_OUT)
    return np.where(lost, a.left_s, known)
