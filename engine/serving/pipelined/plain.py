"""Plain passes: nobody reads, comes or leaves, and every request of the lane gets its next token.

They need nothing of what policies know, so they are made where the lanes lie, without the bench: the next one of every
lane in a replica, in order of entry, up to the first that isn't plain or before which something else happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..lanes import Bools, Floats, Ints
from ..policy import MAX_NUM_SEQS
from .cycles import ALMOST
from .shelf import CTX, N_SLOT, NEXT_KEY, PART, STEP, any_lane

if TYPE_CHECKING:
    from .engine import Pipelined


@dataclass(slots=True)
class _Passes:
    """The passes of some lanes, (replicas, stages) in order of their turn; what is ``made`` is made. Times in
    seconds."""

    order: Ints
    made: Bools
    d: Floats
    end: Floats
    gate: Floats
    """(replicas,): as in the engine, the next two too, when they have been made."""
    last_end: Floats
    t: Floats


def go_on(e: Pipelined) -> None:
    """Make the plain passes that come next in every replica."""
    shelf = e.shelf
    shelf.clear()
    change = e.queue.next_change()
    busy, under_way = shelf.running > 0, shelf.end < np.inf
    left = shelf.columns[NEXT_KEY] - shelf.columns[STEP]  # steps until somebody leaves, one under way is over
    plain = busy & (shelf.columns[PART] < 0) & ~(under_way & ((shelf.joined > 0) | (left <= 0)))
    # Whether cycles can be skipped over, ``plan`` finds out when it is the turn of the lane that sets the pace. They
    # can't where somebody is done or joins before.
    may_skip = ~any_lane(plain != busy)[:, None] & (left > 1)
    if np.count_nonzero(e.queue.wait):
        plain &= _nobody_admitted(e, busy)
    turn = np.where(busy, np.where(under_way, shelf.end, shelf.since), np.inf)
    order = turn.argsort(axis=1, kind="stable")
    rows = np.arange(order.shape[0])
    if not np.count_nonzero(plain[rows, order[:, 0]]):
        return
    made = _passes(e, plain, may_skip, order, turn, change)
    row = any_lane(made.made)
    if np.count_nonzero(row):
        _end(e, plain & under_way & row[:, None] & (shelf.end <= made.t[:, None]))
        _start(e, made)
        e.blocked &= ~row


def _nobody_admitted(e: Pipelined, busy: Bools) -> Bools:
    """(replicas, stages): lanes which nobody joins, because nobody waits or no seat is left; where an empty lane may
    take somebody in, none."""
    shelf, waits = e.shelf, e.queue.wait
    all_taken = shelf.running.sum(axis=1) >= e.most
    full = (shelf.running >= e.seats[:, None]) | all_taken[:, None]
    return np.asarray(np.where(waits[:, None], full & ~any_lane(~busy)[:, None], True), np.bool_)


def _passes(e: Pipelined, plain: Bools, may_skip: Bools, order: Ints, turn: Floats, change: Floats) -> _Passes:
    """Those that come next, one lane after the other; ``turn``: when each lane's step ends, or the last has. Where
    whole cycles might be skipped, which ``may_skip``, they end before the lane that sets the pace."""
    s, shelf, p = e.s, e.shelf, e.stages
    stop = np.minimum(np.where(plain, np.inf, shelf.end).min(axis=1), np.minimum(e.queue.next_event(), s.hz))
    if e.patience is not None:
        leaves = np.minimum(np.where(shelf.running > 0, shelf.not_before, np.inf), shelf.due)
        stop = np.minimum(stop, leaves.min(axis=1))
    n = shelf.columns[N_SLOT]
    d = e.base.take(s.base_at[:, None] + n)
    if e.has_seq:
        d += s.seq_s[:, None] * n
    d += s.kv_s[:, None] * shelf.columns[CTX]
    longest = np.where(shelf.running > 0, d, 0.0).max(axis=1)
    at = np.arange(order.shape[0])[:, None] * p + order
    turn, d, may = turn.take(at), d.take(at), plain.take(at)
    since = np.where(turn < np.inf, turn, 0.0)
    if e.kv.bounded and e.kv.grows:
        may &= s.held[:, None] + np.cumsum(n.take(at), axis=1) <= s.cap[:, None]
    skips = may_skip.take(at) & (d * (1 + 2 * ALMOST) >= longest[:, None])
    made, ends = np.zeros(at.shape, np.bool_), np.zeros(at.shape)
    gate, last_end, t, go = e.gate, e.last_end, s.t, np.ones(s.lane.size, np.bool_)
    share = d / p
    for k in range(p):
        ready, alone, part = since[:, k], d[:, k], share[:, k]
        start = np.maximum(np.maximum(gate, ready), t)
        end = start + alone
        paced = skips[:, k] & (start - ready <= ALMOST * start) & (end <= change)
        paced &= last_end + part <= end + ALMOST * start
        if k + 1 < p:
            paced &= turn[:, k + 1] > start
        go = go & may[:, k] & (start < stop) & ~paced
        if not np.count_nonzero(go):
            break
        end = ready + (np.maximum(end, last_end + part) - ready)  # as the log's reader adds up
        made[:, k], ends[:, k] = go, end
        gate, last_end, t = np.where(go, start + part, gate), np.where(go, end, last_end), np.where(go, start, t)
    return _Passes(order, made, d, ends, gate, last_end, t)


def _end(e: Pipelined, ends: Bools) -> None:
    """The steps of some lanes (replicas, stages) end, and nobody leaves."""
    shelf = e.shelf
    lane = ends.nonzero()
    if not lane[0].size:
        return
    end = shelf.end[lane]
    e.note_gaps(shelf.slots[1][lane], shelf.running[lane], end - shelf.since[lane])
    shelf.since[lane], shelf.end[lane] = end, np.inf
    if e.patience is not None:
        shelf.due[lane] = shelf.not_before[lane]


def _start(e: Pipelined, p: _Passes) -> None:
    """The passes begin."""
    s, shelf = e.s, e.shelf
    row, column = p.made.nonzero()
    lane = row, p.order[row, column]
    d, end, n, t0 = p.d[row, column], p.end[row, column], shelf.running[lane], shelf.since[lane]
    none, ones = np.zeros(n.size, np.int64), np.ones(n.size, np.int64)
    limit = np.where(e.queue.wait[row], MAX_NUM_SEQS, 0).astype(np.int8)
    e.log.add(
        s.lane[row], t0, end - t0, none, ones, n, n, n, shelf.held[lane], limit, none, np.zeros(n.size),
        d / (end - t0),
    )  # fmt: skip
    if e.policy.spending is not None:
        whole = end <= s.hz[row]
        shelf.per_token[lane] += np.where(whole, d / n, 0.0)
        shelf.steps[lane] += whole
    shelf.columns[CTX][lane] += n
    shelf.columns[STEP][lane] += 1
    shelf.held[lane] += n
    np.add.at(s.held, row, n)
    shelf.joined[lane], shelf.end[lane], shelf.work_s[lane], shelf.due[lane] = 0, end, d, np.inf
    e.gate, e.last_end, s.t = p.gate, p.last_end, p.t
