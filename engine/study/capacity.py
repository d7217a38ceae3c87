"""How many requests a second one replica can complete: the same engine, saturated."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import numpy as np

from engine.machine import ReplicaModel
from engine.scenario import Scenario
from engine.serving import UNLIMITED, Fleet, FleetRun, run_fleet
from engine.traffic import Requests, Trace, generate

LANES = 8
_KEEP = 256
_known: OrderedDict[str, float | None] = OrderedDict()
_lock = Lock()


def capacity_rps(s: Scenario, model: ReplicaModel, trace: Trace | None = None) -> float | None:
    """Completed requests per second of one replica that always has a queue, for this traffic's mix of lengths.

    Eight saturated replicas each get all their requests at once. Their rate is taken from when the group first turned
    over to when the last request was admitted, so neither the filling nor the draining counts. ``None`` when no
    request of the mix fits. Doesn't depend on the rate, the arrival process, the fleet or the promise, and is
    remembered without them.
    """
    key = _key(s)
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    value = _measure(s, model, trace)
    with _lock:
        _known[key] = value
        while len(_known) > _KEEP:
            _known.popitem(last=False)
    return value


def forget_capacities() -> None:
    """Empty the memory, so that the next answer is measured."""
    with _lock:
        _known.clear()


def _key(s: Scenario) -> str:
    d = s.to_dict()
    t = d["traffic"]
    return repr(
        (t["classes"], t["trace"], d["model"], d["hardware"], d["parallelism"], d["performance"], d["batching"])
    )


def _measure(s: Scenario, model: ReplicaModel, trace: Trace | None) -> float | None:
    group = min(s.batching.max_num_seqs, _seats(s, model, trace))
    count = int(np.clip(4 * group, 200, 1600))
    full = [_mix(s, 1 + i, count, trace) for i in range(LANES)]
    run = run_fleet(Fleet(model, s.batching), full, 1)
    rates = [_steady_rate(run, i, group) for i in range(LANES)]
    known = [rate for rate in rates if rate is not None]
    return float(np.mean(known)) if known else None


def _mix(s: Scenario, seed: int, count: int, trace: Trace | None) -> Requests:
    """``count`` requests with the scenario's lengths; their times don't matter."""
    run = s.run.model_copy(update={"horizon_s": 604_800.0 if trace is not None else float(count) * 4})
    traffic = (
        s.traffic if trace is not None else s.traffic.model_copy(update={"rate_rps": 1.0, "process": "deterministic"})
    )
    r = generate(traffic, run, seed, trace)
    pick = np.arange(count) if trace is None else np.random.default_rng(seed).integers(r.arrival_s.size, size=count)
    columns = ("prompt_tokens", "output_tokens", "cached_prefix_tokens", "class_id", "priority")
    return Requests(np.zeros(count), **{c: getattr(r, c)[pick] for c in columns}, class_names=r.class_names, notes=())


def _seats(s: Scenario, model: ReplicaModel, trace: Trace | None) -> int:
    """Conversations that fit in KV at their mean length, half of the answer written."""
    if model.kv_capacity_tokens is None:
        return UNLIMITED
    r = _mix(s, 1, 500, trace)
    mean = float(np.mean(r.prompt_tokens - r.cached_prefix_tokens + r.output_tokens / 2))
    return max(1, int(model.kv_capacity_tokens / mean))


def _steady_rate(run: FleetRun, seed: int, group: int) -> float | None:
    a = run.attempts
    part = slice(int(a.seed_start[seed]), int(a.seed_start[seed + 1]))
    finish = np.sort(a.finish_s[part])
    finish = finish[~np.isnan(finish)]
    if finish.size < 2:
        return None
    end = float(np.nanmax(a.scheduled_s[part]))
    first = min(group, finish.size // 4)
    last = int(np.searchsorted(finish, end, side="right")) - 1
    if last - first < finish.size // 8:  # everything fits at once: the whole run is one group
        return float(finish.size / finish[-1])
    return float((last - first) / (finish[last] - finish[first]))
