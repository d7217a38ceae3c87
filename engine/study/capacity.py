"""How many requests a second one replica can complete: the same engine, saturated."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from engine.machine import ReplicaModel
from engine.scenario import Scenario
from engine.traffic import Trace

from .saturated import completion_rate

_KEEP = 256
_known: OrderedDict[str, float | None] = OrderedDict()
_lock = Lock()


def capacity_rps(s: Scenario, model: ReplicaModel, trace: Trace | None = None) -> float | None:
    """Completed requests per second of one replica that always has a queue, for this traffic's mix of lengths.

    Output tokens per second of saturated replicas, divided by the mean length of an answer. The replicas start in the
    middle of their work, with answers partly written, so that the measure needs no long run to settle. Requests that
    the replica would refuse as too long aren't part of the mix; ``None`` when no others are left. Doesn't depend on the
    rate, the arrival process, the fleet or the promise, and is remembered without them.
    """
    trace = trace if s.traffic.process == "trace" else None
    key = _key(s, trace)
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    value = completion_rate(s, model, trace)
    _keep(key, value)
    return value


def remember_capacity(s: Scenario, value: float | None, trace: Trace | None = None) -> None:
    """Take ``value`` for `capacity_rps` of this traffic's mix: what another process has measured."""
    _keep(_key(s, trace if s.traffic.process == "trace" else None), value)


def _keep(key: str, value: float | None) -> None:
    with _lock:
        _known[key] = value
        while len(_known) > _KEEP:
            _known.popitem(last=False)


def forget_capacities() -> None:
    """Empty the memory, so that the next answer is measured."""
    with _lock:
        _known.clear()


def _key(s: Scenario, trace: Trace | None) -> str:
    d = s.to_dict()
    t, machine = d["traffic"], [d[part] for part in ("model", "hardware", "parallelism", "performance", "batching")]
    replayed = None if trace is None else (trace.sha256, t["trace"], t["growth"] and d["run"]["horizon_s"])
    return repr((t["classes"], t["growth"], replayed, machine))
