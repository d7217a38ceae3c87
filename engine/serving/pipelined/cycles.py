"""Skips over whole cycles of a pipeline in closed form, while nothing changes but the contexts' lengths.

Say L is the lane with the longest step, and its turn has come. Lanes without a step have no requests; the others are
under way and have entered in the order k = 1, 2, ... after L's last step. A step of lane k takes D_k, d_k = D_k / p in
each stage. As long as D_L stays the longest,

* L never waits: its j-th step from now starts when the one before ends, since sum(d_k) <= (p - 1) d_L;
* the others enter behind it without a gap, at start_L + d_L + d_1 + ... + d_(k-1), and leave behind it without a gap,
  at end_L + d_1 + ... + d_k: that they could be through in D_k doesn't help them, because D_k - d_k <= D_L - d_L.

So a cycle lasts D_L, which grows by a constant from one to the next, and everything else follows from it. That holds
from the first cycle on if no lane is so late that it misses its turn, which is what `_in_step` looks at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..clock import end_of, steps_to
from ..lanes import Bools, Floats, Ints
from ..policy import KV, MAX_NUM_SEQS
from ..work import Work
from .shelf import CTX, N_SLOT, NEXT_KEY, PART, STEP, any_lane

if TYPE_CHECKING:
    from .engine import Pipelined

ALMOST = 1e-13
"""Relative: what two ways of adding up the same steps differ by."""
_MOST = 2**24


@dataclass(slots=True)
class Cycles:
    """``m`` cycles of the replicas ``i``, in which it is the turn of ``lane``; the other lanes in order of entry.

    Arrays are (replicas of i,), those of the others (replicas of i, stages) with ``there`` false where there is none.
    """

    nth: Ints
    """Places of the replicas among those that were asked about."""
    i: Ints
    lane: Ints
    n: Ints
    d: Floats
    slope: Floats
    limit: NDArray[np.int8]
    order: Ints
    there: Bools
    n_k: Ints
    d_k: Floats
    slope_k: Floats
    end_k: Floats
    m: Ints

    def at(self, which: Bools) -> Cycles:
        """Those of some of the replicas."""
        if np.count_nonzero(which) == which.size:
            return self
        return Cycles(*(getattr(self, name)[which] for name in self.__slots__))


def plan(
    e: Pipelined, w: Work, i: Ints, lane: Ints, begun: Bools, alone_s: Floats, limit: NDArray[np.int8]
) -> Cycles | None:
    """Cycles that begin now in replicas ``i``, those where a step has ``begun`` that takes ``alone_s`` (replicas,)
    seconds; ``None``: nowhere."""
    s, shelf = e.s, e.shelf
    plain = begun & (w.n[i] > 0) & (s.part[i] < 0) & (s.t[i] - shelf.since[i, lane] <= ALMOST * s.t[i])
    if w.chunks is not None:
        plain &= w.chunks.q[i] == 0
    if w.preempted is not None:
        plain &= ~w.preempted[i]
    nth = plain.nonzero()[0]
    nth = nth[_all_decode(e, i[nth], lane[nth])] if nth.size else nth
    nth = nth[_nobody_comes(e, w, i[nth], limit[i[nth]])] if nth.size else nth
    if not nth.size:
        return None
    i, lane = i[nth], lane[nth]
    c = _laid_out(e, w, nth, i, lane, alone_s, limit)
    c = c.at(_in_step(e, c))
    if c.i.size:
        c.m = _how_many(e, c)
        c = c.at(c.m >= 1)
    return c if c.i.size else None


def _all_decode(e: Pipelined, i: Ints, lane: Ints) -> Bools:
    """(replicas of i,): where all lanes but ``lane`` that have requests are under way, and no prompt is read."""
    shelf = e.shelf
    restless = np.where(shelf.end[i] < np.inf, shelf.joined[i], shelf.running[i]) > 0
    restless |= shelf.columns[PART].take(i, axis=0) >= 0
    restless[np.arange(i.size), lane] = False
    return ~any_lane(restless)


def _laid_out(
    e: Pipelined, w: Work, nth: Ints, i: Ints, lane: Ints, alone_s: Floats, limit: NDArray[np.int8]
) -> Cycles:
    """What the lanes of replicas ``i`` do in a cycle."""
    s, shelf = e.s, e.shelf
    ends = shelf.end[i]
    ends[np.arange(i.size), lane] = np.inf
    order = ends.argsort(axis=1, kind="stable")
    at = (i * e.stages)[:, None] + order

    def by_entry(values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(-1).take(at)

    end_k = ends[np.arange(i.size)[:, None], order]
    there = end_k < np.inf
    n_k = np.where(there, by_entry(shelf.columns[N_SLOT]), 0)
    slope_k = s.kv_s[i][:, None] * n_k
    return Cycles(
        nth=nth,
        i=i,
        lane=lane,
        n=w.n[i],
        d=alone_s[i],
        slope=s.kv_s[i] * w.n[i],
        limit=limit[i],
        order=order,
        there=there,
        n_k=n_k,
        d_k=np.where(there, by_entry(shelf.work_s) + slope_k, 0.0),
        slope_k=slope_k,
        end_k=np.where(there, end_k, -np.inf),
        m=np.zeros(i.size, np.int64),
    )


def _nobody_comes(e: Pipelined, w: Work, i: Ints, limit: NDArray[np.int8]) -> Bools:
    """(replicas of i,): where nobody who waits can be admitted by any lane before something changes."""
    s = e.s
    seats = limit == MAX_NUM_SEQS
    closed: Bools = ~e.queue.wait[i] | (limit == KV) | (seats & (s.inside[i] >= e.most[i]))
    j = (~closed & seats).nonzero()[0]  # this lane's seats are taken, others have some left
    if j.size and e.kv.bounded:
        request, size, _ = e.queue.heads(i[j])
        closed[j] = ~e.kv.fits(w, i[j], request, size)
    return closed


def _in_step(e: Pipelined, c: Cycles) -> Bools:
    """Where this lane's step is the longest, and all lanes have ended theirs when it is their turn again."""
    t, p = e.s.t[c.i], e.stages
    almost = ALMOST * t
    turn = (t + c.d / p)[:, None] + (np.cumsum(c.d_k, axis=1) - c.d_k) / p
    ready = (c.end_k <= turn + almost[:, None]).all(axis=1) & (e.last_end[c.i] + c.d / p <= t + c.d + almost)
    return np.asarray(ready & (c.d_k.max(axis=1) <= c.d * (1 + ALMOST)), np.bool_)


def _how_many(e: Pipelined, c: Cycles) -> Ints:
    """(replicas of i,): cycles before an answer is complete, KV runs out, another step is the longest, or somebody
    comes or has to leave."""
    s, shelf = e.s, e.shelf
    rows = c.i[:, None]
    left = np.where(c.there, (shelf.columns[NEXT_KEY] - shelf.columns[STEP])[rows, c.order], _MOST).min(axis=1)
    m: Ints = np.minimum(np.minimum(s.next_key[c.i] - s.step[c.i] - 1, left), _MOST)
    if e.kv.bounded and e.kv.grows:
        m = np.minimum(m, (s.cap[c.i] - s.held[c.i]) // (c.n + c.n_k.sum(axis=1)))
    faster = c.slope_k - c.slope[:, None]
    overtakes = np.where(faster > 0, (c.d[:, None] - c.d_k) / np.maximum(faster, 1e-300), float(_MOST)).min(axis=1)
    m = np.minimum(m, 1 + np.minimum(overtakes, _MOST).astype(np.int64))
    none = m < 1
    m = np.maximum(m, 1)
    hard = s.hz[c.i]
    if e.patience is not None:
        hard = np.minimum(hard, e.patience.not_before[c.i])
        hard = np.minimum(hard, np.where(c.there, shelf.not_before[rows, c.order], np.inf).min(axis=1))
    t = s.t[c.i]
    for target, reached in ((e.queue.next_change()[c.i], np.greater), (hard, np.greater_equal)):
        j = (end_of(t, c.d, c.slope, m) >= target).nonzero()[0]
        if j.size:
            near = np.maximum(target[j], t[j])
            steps, end = steps_to(t[j], c.d[j], c.slope[j], np.maximum(m[j], 1), near)
            m[j] = np.minimum(m[j], steps - reached(end, near))
    return np.where(none, 0, m)


def skip(e: Pipelined, w: Work, c: Cycles) -> None:
    """Make the cycles; the lanes whose turn it is lie on the bench, and it is their turn again afterwards."""
    s, i, m, t = e.s, c.i, c.m, e.s.t[c.i]
    end = end_of(t, c.d, c.slope, m)
    none, ones = np.zeros(i.size, np.int64), np.ones(i.size)
    held = e.shelf.held[i, c.lane] + e.shelf.gained(i)
    e.log.add(s.lane[i], t, c.d, c.slope, m, c.n, c.n, c.n, held, c.limit, none, np.zeros(i.size), ones)
    e.note_gaps(s.rid[i], c.n, c.d + (m - 1) * c.slope)
    if e.policy.spending is not None:
        seconds, until = np.zeros((2, s.lane.size))
        k, tokens = np.zeros((2, s.lane.size), np.int64)
        seconds[i], until[i], k[i], tokens[i] = end - t, end, m, c.n
        e.policy.spending.advance(w, seconds, tokens, k, until)
    s.held[i] += m * c.n
    s.ctx[i] += m * c.n
    s.step[i] += m


def skip_others(e: Pipelined, c: Cycles) -> None:
    """The other lanes make as many steps, of which the last is under way; those on the bench are settled already."""
    s, shelf, i, p = e.s, e.shelf, c.i, e.stages
    t, last = s.t[i], c.m - 1
    begin = end_of(t, c.d, c.slope, last)  # of the last cycle
    end = end_of(t, c.d, c.slope, c.m)
    e.gate[i] = begin + (c.d + last * c.slope) / p + (c.d_k + last[:, None] * c.slope_k).sum(axis=1) / p
    shelf.since[i, c.lane] = s.t[i] = e.last_end[i] = end
    first = (t + c.d)[:, None] + np.cumsum(c.d_k, axis=1) / p
    gap = (c.d + c.slope)[:, None] + np.cumsum(c.slope_k, axis=1) / p
    row, column = c.there.nonzero()
    if not row.size:
        return
    j, k = i[row], c.order[row, column]
    n, d, slope_k, m = c.n_k[row, column], c.d_k[row, column], c.slope_k[row, column], c.m[row]
    under_way, e1, g, slope = c.end_k[row, column], first[row, column], gap[row, column], c.slope[row]
    em = end_of(e1, g, slope, m - 1)
    before = np.where(m > 1, end_of(e1, g, slope, np.maximum(m - 2, 0)), under_way)
    later = (m - 1) * d + slope_k * (0.5 * m * (m - 1))
    _log_first(e, c, row, (j, k), under_way, e1, d / (e1 - under_way))
    x = (m > 1).nonzero()[0]
    if x.size:
        _log_later(e, c, row[x], (j[x], k[x]), e1[x], g[x], later[x] / (em[x] - e1[x]))
    largest = np.maximum(under_way - shelf.since[j, k], np.where(m > 1, e1 - under_way, 0.0))
    e.note_gaps(shelf.slots[1, j, k], n, np.maximum(largest, np.where(m > 2, g + (m - 3) * slope, 0.0)))
    if e.policy.spending is not None:
        whole = em <= s.hz[j]
        work = np.where(whole, d + later, later + d - (d + (m - 1) * slope_k))
        shelf.per_token[j, k] += work / n
        shelf.steps[j, k] += np.where(whole, m, m - 1)
    shelf.columns[CTX, j, k] += m * n
    shelf.columns[STEP, j, k] += m
    shelf.held[j, k] += m * n
    np.add.at(s.held, j, m * n)
    shelf.end[j, k], shelf.since[j, k], shelf.work_s[j, k] = em, before, d + (m - 1) * slope_k
    np.maximum.at(e.last_end, j, em)


def _log_first(
    e: Pipelined, c: Cycles, row: Ints, lane: tuple[Ints, Ints], last: Floats, end: Floats, share: Floats
) -> None:
    """The first step of the cycles of each other lane, from the end of the one under way on."""
    n = e.shelf.running[lane]
    none, zeros = np.zeros(n.size, np.int64), np.zeros(n.size)
    e.log.add(
        e.s.lane[lane[0]], last, end - last, zeros, none + 1, n, n, n, e.shelf.held[lane], _limits(e, c, row, n), none,
        zeros, share,
    )  # fmt: skip


def _log_later(
    e: Pipelined, c: Cycles, row: Ints, lane: tuple[Ints, Ints], begin: Floats, gap: Floats, share: Floats
) -> None:
    """The steps after it, whose ends lie as far apart as those of the lane that sets the pace, and a little more."""
    n = e.shelf.running[lane]
    none, zeros = np.zeros(n.size, np.int64), np.zeros(n.size)
    e.log.add(
        e.s.lane[lane[0]], begin, gap, c.slope[row], c.m[row] - 1, n, n, n, e.shelf.held[lane] + n,
        _limits(e, c, row, n), none, zeros, share,
    )  # fmt: skip


def _limits(e: Pipelined, c: Cycles, row: Ints, n: Ints) -> NDArray[np.int8]:
    """Why somebody waits while the other lanes' steps run: as for this lane, but for seats of their own."""
    i = c.i[row]
    inside = e.s.inside[i]
    seats = np.minimum(-(-e.most[i] // e.stages), e.most[i] - (inside - n))
    return np.where(c.limit[row] == 0, 0, np.where(n >= seats, MAX_NUM_SEQS, KV)).astype(np.int8)
