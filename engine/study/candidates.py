"""Changes of one thing that somebody in a scenario's situation could make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any, Literal

from engine.machine import ReplicaModel
from engine.scenario import Analytic, Scenario

Kind = Literal[
    "replicas", "readers", "writers", "answers", "cap", "queue_timeout", "chunk", "seats", "weights",
    "fewer_replicas", "fewer_readers", "fewer_writers", "traffic", "users", "stricter",
]  # fmt: skip
"""replicas, readers and writers (of two pools), answers (shorter), cap (on a replica's requests), queue_timeout, chunk
(a step's tokens), seats, weights (their type); of kept promises: fewer_replicas, fewer_readers and fewer_writers,
traffic and users (more of them), stricter (a shorter time promised)."""

SHORTER = 0.75
"""Of the answers' length."""
MORE_TRAFFIC = 1.25
MORE_USERS = 2
"""Users that wait for their answers slow themselves down, so twice as many aren't twice the load."""
_POOLS: dict[Kind, str] = {
    "readers": "batching.disaggregated.prefill_replicas",
    "writers": "batching.disaggregated.decode_replicas",
}
_FEWER: dict[Kind, Kind] = {"readers": "fewer_readers", "writers": "fewer_writers"}
_FROM_FIRST_TOKEN = ("tpot", "max_itl")
"""Metrics that a smaller group and smaller chunks make better."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A scenario with a promise, what one of its replicas can do, and whether the promise is kept."""

    scenario: Scenario
    model: ReplicaModel
    capacity_rps: float | None
    kept: bool
    kept_s: float | None
    """The time within which the promised share has what is promised."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One change: what `Scenario.replace` takes, and the setting's value before and after, for a label."""

    kind: Kind
    changes: dict[str, Any]
    before: float | str | None
    after: float | str
    leaves_room: bool = False
    """Whether it is worth a word when it does no harm."""


def candidates(now: Situation) -> Iterator[Candidate]:
    """Every change that makes sense, several of a kind where the best value can only be found by trying."""
    yield from _replicas(now)
    yield from _answers(now)
    yield from _caps(now)
    yield from _queue_timeout(now)
    yield from _steps(now)
    yield from _weights(now)
    if now.kept:
        yield from _room(now)


def _replicas(now: Situation) -> Iterator[Candidate]:
    if now.scenario.batching.policy == "disaggregated":
        for kind, path in _POOLS.items():
            have = getattr(now.scenario.batching.disaggregated, path.rpartition(".")[2])
            more = have + max(1, round(have / 8))
            yield Candidate(kind, {path: more}, have, more)
        return
    have = now.scenario.fleet.replicas
    more = have + max(1, round(have / 8))
    yield Candidate("replicas", with_spare(now.scenario, more - have), have, more)


def with_spare(s: Scenario, count: int) -> dict[str, Any]:
    """The changes that add so many replicas for good; the autoscaler keeps its room above them. Two pools keep their
    proportions."""
    if s.batching.policy == "disaggregated":
        pools = s.batching.disaggregated
        more = round(count * pools.prefill_replicas / s.replicas)
        return {
            _POOLS["readers"]: pools.prefill_replicas + more,
            _POOLS["writers"]: pools.decode_replicas + count - more,
        }
    changes: dict[str, Any] = {"fleet.replicas": s.fleet.replicas + count}
    if count and s.autoscaler.policy != "none":
        least = max(s.autoscaler.min_replicas, s.fleet.replicas) + count
        changes |= {
            "autoscaler.min_replicas": least,
            "autoscaler.max_replicas": max(s.autoscaler.max_replicas, least),
        }
    return changes


def _answers(now: Situation) -> Iterator[Candidate]:
    """A quarter off every answer; the distributions that have one figure for it."""
    traffic = now.scenario.traffic
    if traffic.process == "trace":
        return
    changes: dict[str, Any] = {}
    for index, kind in enumerate(traffic.classes):
        length = kind.output_tokens
        for name in ("mean", "value"):
            if hasattr(length, name):
                shorter = getattr(length, name) * SHORTER
                path = f"traffic.classes.{index}.output_tokens.{name}"
                changes[path] = max(1, round(shorter)) if name == "value" else max(1.0, float(f"{shorter:.4g}"))
    if changes:
        yield Candidate("answers", changes, 1.0, SHORTER)


def _caps(now: Situation) -> Iterator[Candidate]:
    """Little's law: who finds N others at a replica that completes C a second waits about N / C.

    For the first word only those count that wait, beyond the seats that work at once.
    """
    objective, rate = now.scenario.slo[0], now.capacity_rps
    if not rate or objective.metric in _FROM_FIRST_TOKEN:
        return
    whole, seats = objective.metric == "e2e", _seats(now)
    if now.scenario.batching.policy == "disaggregated":  # who reads doesn't keep whom it has read
        rate, seats = rate * now.scenario.replicas / now.scenario.batching.disaggregated.prefill_replicas, 0.0
    room = rate * objective.threshold_s
    sizes = (0.5 * room, 0.9 * room) if whole else (seats + 0.3 * room, seats + 0.9 * room)
    have = now.scenario.admission.max_outstanding
    for size in sorted({max(1, int(size)) for size in sizes}):
        if have is None or size < have:
            yield Candidate("cap", {"admission.max_outstanding": size}, have, size)


def _seats(now: Situation) -> float:
    """How many a replica works on at once when it is full: by its setting, or by memory at the mean length."""
    seats = float(now.scenario.batching.max_num_seqs)
    lengths = [(kind.weight, _mean(kind.prompt_tokens), _mean(kind.output_tokens)) for kind in
               now.scenario.traffic.classes]  # fmt: skip
    total = sum(weight for weight, _, _ in lengths)
    held = sum(weight * (prompt + answer / 2) for weight, prompt, answer in lengths) / total
    room = now.model.kv_capacity_tokens
    return seats if room is None or not held else min(seats, room / held)


def _mean(length: Any) -> float:
    """The mean of a distribution of lengths, before it is cut."""
    for name in ("mean", "value"):
        if hasattr(length, name):
            return float(getattr(length, name))
    if hasattr(length, "low"):
        return float(length.low + length.high) / 2
    return float(sum(v * w for v, w in zip(length.values, length.weights, strict=True)) / sum(length.weights))


def _queue_timeout(now: Situation) -> Iterator[Candidate]:
    """Drop who is late already: what is left of the promise after the wait is for the prompt."""
    objective, have = now.scenario.slo[0], now.scenario.admission.queue_timeout_s
    if objective.metric not in ("ttft", "queue") or objective.threshold_s <= 0:
        return
    limit = float(f"{0.8 * objective.threshold_s:.2g}")
    if have is None or limit < have:
        yield Candidate("queue_timeout", {"admission.queue_timeout_s": limit}, have, limit)


def _steps(now: Situation) -> Iterator[Candidate]:
    """Smaller steps, which are shorter: of fewer tokens, and for the gaps between words of fewer requests."""
    batching, between = now.scenario.batching, now.scenario.slo[0].metric in _FROM_FIRST_TOKEN
    if batching.policy == "chunked":
        for part in (2, 4) if between else (2,):
            size = batching.max_num_batched_tokens // part
            if size >= batching.max_num_seqs:
                changes = {"batching.max_num_batched_tokens": size}
                yield Candidate("chunk", changes, batching.max_num_batched_tokens, size)
    if between and batching.max_num_seqs > 1:
        size = batching.max_num_seqs // 2
        yield Candidate("seats", {"batching.max_num_seqs": size}, batching.max_num_seqs, size)


def _weights(now: Situation) -> Iterator[Candidate]:
    """Half as many bytes to read a step, and room for more conversations."""
    model = now.scenario.model
    if isinstance(now.scenario.performance, Analytic) and model.weight_dtype in ("bf16", "fp16", "fp32"):
        yield Candidate("weights", {"model.weight_dtype": "fp8"}, model.weight_dtype, "fp8")


def _smaller_pools(now: Situation) -> Iterator[Candidate]:
    for kind, path in _POOLS.items():
        have = getattr(now.scenario.batching.disaggregated, path.rpartition(".")[2])
        if have > 1:
            fewer = have - max(1, round(have / 8))
            yield Candidate(_FEWER[kind], {path: fewer}, have, fewer, leaves_room=True)


def _room(now: Situation) -> Iterator[Candidate]:
    """What a kept promise leaves room for."""
    have, traffic = now.scenario.replicas, now.scenario.traffic
    if now.scenario.batching.policy == "disaggregated":
        yield from _smaller_pools(now)
    elif have > 1:
        fewer = have - max(1, round(have / 8))
        changes: dict[str, Any] = {"fleet.replicas": fewer}
        if now.scenario.autoscaler.policy != "none":
            changes["autoscaler.min_replicas"] = min(now.scenario.autoscaler.min_replicas, fewer)
        yield Candidate("fewer_replicas", changes, have, fewer, leaves_room=True)
    if traffic.process == "closed":
        # Who finds no seat would wait, which a promise about the gaps between words doesn't notice.
        users = min(traffic.closed.users * MORE_USERS, now.scenario.batching.max_num_seqs * have)
        if users > traffic.closed.users:
            yield Candidate("users", {"traffic.closed.users": users}, traffic.closed.users, users, leaves_room=True)
    elif traffic.process != "trace":
        rate = float(f"{traffic.rate_rps * MORE_TRAFFIC:.3g}")
        yield Candidate("traffic", {"traffic.rate_rps": rate}, traffic.rate_rps, rate, leaves_room=True)
    threshold, kept_s = now.scenario.slo[0].threshold_s, now.kept_s
    if kept_s is not None and 0.0 < kept_s < 0.9 * threshold:
        digits = 10 ** (floor(log10(kept_s)) - 1)
        shorter = float(f"{min(threshold, ceil(1.05 * kept_s / digits) * digits):.2g}")
        yield Candidate("stricter", {"slo.0.threshold_s": shorter}, threshold, shorter, leaves_room=True)
