"""How many requests a second one replica can complete: the same engine, saturated.

Of two pools the smaller one's capacity is the fleet's; shared out evenly over all replicas, so that replicas times
capacity is always what the fleet can complete.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from engine.machine import ReplicaModel
from engine.scenario import Scenario
from engine.traffic import Trace

from .pools import PoolRates, measured_rates
from .saturated import completion_rate, completion_rates

_KEEP = 256
_known: OrderedDict[str, float | PoolRates | None] = OrderedDict()
_lock = Lock()


def capacity_rps(s: Scenario, model: ReplicaModel, trace: Trace | None = None) -> float | None:
    """Completed requests per second of one replica that always has a queue, for this traffic's mix of lengths.

    Output tokens per second of saturated replicas, divided by the mean length of an answer. The replicas start in the
    middle of their work, with answers partly written, so that the measure needs no long run to settle. Requests that
    the replica would refuse as too long aren't part of the mix; ``None`` when no others are left. Doesn't depend on the
    rate, the arrival process, the fleet or the promise, and is remembered without them.

    With policy ``disaggregated`` what the fleet completes over all its replicas, those that read and those that write.
    """
    trace = trace if s.traffic.process == "trace" else None

    def measure() -> float | None:
        if s.batching.policy != "disaggregated":
            return completion_rate(s, model, trace)
        rates, pools = pool_rates(s, model, trace), s.batching.disaggregated
        return None if rates is None else rates.fleet_rps(pools.prefill_replicas, pools.decode_replicas) / s.replicas

    value = _remembered(_key(s, trace), measure)
    return None if value is None or isinstance(value, PoolRates) else float(value)


def measure_together(several: Sequence[tuple[Scenario, ReplicaModel]], trace: Trace | None = None) -> None:
    """Measure `capacity_rps` of machines that serve the same traffic, for less time than one after the other: it is
    remembered then. Those with policy ``disaggregated`` are left out."""
    missing: dict[str, tuple[Scenario, ReplicaModel]] = {}
    trace = trace if any(s.traffic.process == "trace" for s, _ in several) else None
    for s, model in several:
        key = _key(s, trace)
        with _lock:
            known = key in _known
        if not known and s.batching.policy != "disaggregated":
            missing[key] = s, model
    for key, value in zip(missing, completion_rates(list(missing.values()), trace), strict=True):
        _keep(key, value)


def pool_rates(s: Scenario, model: ReplicaModel, trace: Trace | None = None) -> PoolRates | None:
    """Requests per second that a saturated replica of each pool gets through; ``None`` with another policy, and when
    none of the mix fits.

    Doesn't depend on how many replicas the pools have, nor on the link between them, and is remembered without them.
    """
    if s.batching.policy != "disaggregated":
        return None
    trace = trace if s.traffic.process == "trace" else None
    usual = s.replace({"batching.disaggregated": {}})
    value = _remembered(f"pools {_key(usual, trace)}", lambda: measured_rates(s, model, trace))
    assert value is None or isinstance(value, PoolRates)
    return value


def _remembered(key: str, measure: Callable[[], float | PoolRates | None]) -> float | PoolRates | None:
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    value = measure()
    _keep(key, value)
    return value


def remember_capacity(s: Scenario, value: float | None, trace: Trace | None = None) -> None:
    """Take ``value`` for `capacity_rps` of this traffic's mix: what another process has measured."""
    _keep(_key(s, trace if s.traffic.process == "trace" else None), value)


def _keep(key: str, value: float | PoolRates | None) -> None:
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
