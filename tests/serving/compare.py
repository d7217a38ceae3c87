"""Runs one reference case through the engine and says where the two differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from engine.machine import ReplicaModel
from engine.outcome.gaps import largest_gaps
from engine.scenario import Batching
from engine.serving import (
    LIMITS,
    REASONS,
    STATES,
    Deadlines,
    DecodePool,
    Fleet,
    FleetRun,
    Routing,
    StepLog,
    run_fleet,
    run_users,
)  # fmt: skip
from engine.traffic import Requests, Users
from tests.reference.invariants import check
from tests.reference.model import AdaptiveLifo, Codel, Outcome, Request, Setup, Step
from tests.reference.scenarios import has_exact_times
from tests.reference.simulator import simulate

TIMES = {
    "arrival_s": "arrival_s",
    "scheduled_s": "scheduled_s",
    "first_token_s": "first_token_s",
    "finish_s": "finish_s",
    "left_s": "left_s",
}
SUMS = ("stalled_s", "preempted_s")
WAITS = ("admitted_s", *SUMS)
"""Of requests that completed only."""
REL = 1e-9
"""Skipping over steps in closed form rounds differently from adding them up."""


def model_of(setup: Setup, requests: Sequence[Request] = ()) -> ReplicaModel:
    """The reference's setup as the engine's machine, its table long enough for the policy's largest step."""
    sizes = sorted((r.prompt_tokens + r.output_tokens for r in requests), reverse=True)
    largest = max([setup.max_num_batched_tokens, sum(sizes[: setup.max_num_seqs])])
    if not callable(setup.base):
        largest = min(largest, len(setup.base) - 1)
    base = [setup.base(t) if callable(setup.base) else setup.base[t] for t in range(largest + 1)]
    return ReplicaModel(
        base=np.array(base, dtype=np.float64),
        seq_s=setup.seq_s,
        kv_token_s=setup.kv_token_s,
        prefill_pair_s=setup.prefill_pair_s,
        frontend_s=0.0,
        kv_capacity_tokens=setup.kv_capacity_tokens,
        context_limit=setup.context_limit,
        weights_bytes=0.0,
        kv_bytes_per_token=1.0,
        accelerators=1,
        stages=setup.stages,
    )


def assert_equal(setup: Setup, requests: Sequence[Request], seed: int) -> None:
    """Engine and reference give the same, and the reference keeps its own laws; ``seed`` is for the message."""
    expected = simulate(setup, requests)
    check(setup, requests, expected)
    assert not differences(setup, requests, expected, has_exact_times(setup)), (seed, setup)


def fleet_of(setup: Setup, requests: Sequence[Request] = ()) -> Fleet:
    """The reference's setup as the engine's fleet."""
    batching = Batching.model_validate(
        {
            "policy": setup.policy,
            "kv_policy": setup.kv_policy,
            "max_num_seqs": setup.max_num_seqs,
            "max_num_batched_tokens": setup.max_num_batched_tokens,
            "watermark": setup.watermark,
            "reserve_output_tokens": setup.reserve_output_tokens,
            "batch_wait_s": setup.batch_wait_s,
        }
    )
    decode = None
    if setup.decode_replicas:
        decode = DecodePool(setup.decode_replicas, setup.transfer_token_s, setup.transfer_latency_s)
    never, order = math.inf, setup.discipline
    return Fleet(
        model_of(setup, requests),
        batching,
        replicas=setup.replicas,
        max_outstanding=setup.max_outstanding,
        max_queued_tokens=setup.max_queued_tokens,
        rate_limit=setup.rate_limit,
        deadlines=Deadlines(setup.timeout_s or never, setup.ttft_timeout_s or never, setup.queue_timeout_s or never),
        ignores_clients=setup.on_timeout == "ignore",
        horizon_s=setup.horizon_s,
        keep_waits=True,
        routing=Routing(setup.routing),
        decode=decode,
        shed_ttft_s=setup.shed_ttft_s,
        codel=(order.target_s, order.interval_s) if isinstance(order, Codel) else None,
        lifo_after_s=order.after_s if isinstance(order, AdaptiveLifo) else None,
    )


def requests_of(requests: Sequence[Request]) -> tuple[Requests, list[int]]:
    """The requests in order of arrival, and their places in the list given."""
    order = sorted(range(len(requests)), key=lambda i: requests[i].arrival_s)
    chosen = [requests[i] for i in order]
    prompt = np.array([r.prompt_tokens for r in chosen], dtype=np.int32)
    cached = np.array([r.cached_prefix_tokens for r in chosen], dtype=np.int32)
    made = Requests(
        arrival_s=np.array([r.arrival_s for r in chosen], dtype=np.float64),
        prompt_tokens=prompt,
        output_tokens=np.array([r.output_tokens for r in chosen], dtype=np.int32),
        cached_prefix_tokens=np.minimum(cached, prompt - 1),
        class_id=np.zeros(len(chosen), np.int16),
        priority=np.array([r.priority for r in chosen], dtype=np.int32),
        class_names=("all",),
        notes=(),
    )
    return made, order


def users_of(requests: Sequence[Request], horizon_s: float) -> Users:
    """The closed loop's requests, user after user."""
    order = sorted(range(len(requests)), key=lambda i: (requests[i].user, i))
    chosen = [requests[i] for i in order]
    who = np.array([r.user for r in chosen])
    count = int(who.max()) + 1
    start = np.searchsorted(who, np.arange(count + 1))
    prompt = np.array([r.prompt_tokens for r in chosen], np.int32)
    cached = np.array([r.cached_prefix_tokens for r in chosen], np.int32)
    return Users(
        first_s=np.array([chosen[i].arrival_s for i in start[:-1]]),
        start=start.astype(np.int64),
        think_s=np.array([r.think_s for r in chosen]),
        prompt_tokens=prompt,
        output_tokens=np.array([r.output_tokens for r in chosen], np.int32),
        cached_prefix_tokens=np.minimum(cached, prompt - 1),
        class_id=np.zeros(len(chosen), np.int16),
        priority=np.array([r.priority for r in chosen], np.int32),
        class_names=("all",),
    )


def run_engine(setup: Setup, cases: Sequence[Sequence[Request]]) -> tuple[FleetRun, StepLog]:
    """Serve several lists of requests as the seeds of one run."""
    pieces: list[StepLog] = []
    if cases[0] and cases[0][0].user is not None:
        users = [users_of(case, setup.horizon_s or math.inf) for case in cases]
        run = run_users(fleet_of(setup, [r for c in cases for r in c]), users, setup.backoff_s, pieces.append)
        return run, StepLog.joined(pieces)
    run = run_fleet(
        fleet_of(setup, [r for c in cases for r in c]), [requests_of(c)[0] for c in cases], 1, pieces.append
    )
    return run, StepLog.joined(pieces)


def same(a: float | None, b: float, exact: bool) -> bool:
    """Equal times; absent ones are ``None`` here and ``nan`` there."""
    if a is None or math.isnan(b):
        return a is None and math.isnan(b)
    return a == b if exact else math.isclose(a, b, rel_tol=REL, abs_tol=1e-12)


def differences(setup: Setup, requests: Sequence[Request], expected: Outcome, exact: bool) -> list[str]:
    """Every request and step in which the engine and the reference differ, in words; empty when equal."""
    run, log = run_engine(setup, [requests])
    a = run.attempts
    if requests and requests[0].user is not None:
        issued = [i for i, row in enumerate(expected.requests) if row.order is not None]
        order = sorted(issued, key=lambda i: expected.requests[i].order)
        if len(order) != a.arrival_s.size:
            return [f"expected {len(order)} requests, got {a.arrival_s.size}"]
    else:
        _, order = requests_of(requests)
    return run_differences(run, log, order, expected, exact)


def run_differences(run: FleetRun, log: StepLog, order: Sequence[int], expected: Outcome, exact: bool) -> list[str]:
    """What a run of one seed and the reference differ in; the engine's attempt i is row ``order[i]`` there."""
    a, gaps, found = run.attempts, largest_gaps(run, log), []
    for i, j in enumerate(order):
        row = expected.requests[j]
        got = {
            "replica": int(a.replica[i]) if a.replica[i] >= 0 else None,
            "state": STATES[a.state[i]],
            "reason": REASONS[a.reason[i]] or None,
            "preemptions": int(a.preemptions[i]),
        }
        times = {name: float(getattr(a, name)[i]) for name in TIMES} | {"max_itl_s": float(gaps[i])}
        if row.state == "completed" and run.stages == 1:
            times |= {name: float(getattr(a, name)[i]) for name in WAITS}
        if a.handover is not None:
            got["writer"] = int(a.handover.replica[i]) if a.handover.replica[i] >= 0 else None
            times |= {name: float(getattr(a.handover, name)[i]) for name in ("landed_s", "resumed_s")}
        found += [
            f"request {row.request} attempt {row.attempt} {name}: expected {getattr(row, name)}, got {value}"
            for name, value in got.items()
            if getattr(row, name) != value
        ]
        found += [
            f"request {row.request} attempt {row.attempt} {name}: expected {getattr(row, name)}, got {value}"
            for name, value in times.items()
            if not same(getattr(row, name), value, exact and name not in SUMS)
        ]
    if not same(expected.horizon_s, float(run.horizon_s[0]), exact):
        found.append(f"horizon: expected {expected.horizon_s}, got {run.horizon_s[0]}")
    return found + _step_differences(run, log, expected, exact)


def _step_differences(run: FleetRun, log: StepLog, expected: Outcome, exact: bool) -> list[str]:
    """Compares the unfolded step log of every replica, and all gaps between tokens as one bag."""
    found, gaps = [], sorted(run.stall_gaps.tolist())
    for replica, steps in enumerate(expected.steps):
        if run.stages > 1:
            found += _pass_differences(log, replica, steps, exact)
        got = [step for i in np.flatnonzero(log.lane == replica) for step in _unfold(log, i)]
        if run.stages == 1 and len(got) != len(steps):
            found.append(f"replica {replica}: expected {len(steps)} steps, got {len(got)}")
        for n, (want, have) in enumerate(zip(steps, got, strict=False) if run.stages == 1 else ()):
            facts = (want.T, want.R, want.kv_held_at_start, want.limited_by)
            if facts != have[3:] or not same(want.start, have[0], exact) or not same(want.end, have[1], exact):
                found.append(f"replica {replica} step {n}: expected {(want.start, want.end, *facts)}, got {have}")
                break
        gaps += [end - start for start, end, decoding, *_ in got if end <= run.horizon_s[0] for _ in range(decoding)]
    wanted = sorted(expected.gaps)
    if len(gaps) != len(wanted) or not np.allclose(sorted(gaps), wanted, rtol=1e-6, atol=1e-9):
        found.append(f"gaps: expected {wanted}, got {sorted(gaps)}")
    return found


def _pass_differences(log: StepLog, replica: int, steps: Sequence[Step], exact: bool) -> list[str]:
    """A pipeline's steps in order of their ends, which is that of their starts; and how long its stages worked."""
    entries = np.flatnonzero((log.lane == replica) & (log.share > 0))
    got = sorted((step[1:] for i in entries for step in _unfold(log, i)), key=lambda step: step[0])
    if len(got) != len(steps):
        return [f"replica {replica}: expected {len(steps)} steps, got {len(got)}"]
    for n, (want, have) in enumerate(zip(steps, got, strict=True)):
        facts = (want.T, want.R, want.kv_held_at_start, want.limited_by)
        if facts != have[2:] or not same(want.end, have[0], exact):
            return [f"replica {replica} step {n}: expected {(want.end, *facts)}, got {have}"]
    busy = float((log.busy(log.t1 - log.t0))[log.lane == replica].sum())
    alone = sum(step.alone_s for step in steps)
    return [] if math.isclose(busy, alone, rel_tol=REL) else [f"replica {replica}: worked {alone} s, got {busy} s"]


def _unfold(log, i):  # type: ignore[no-untyped-def]
    """The k steps of one log entry."""
    k, t, d, slope = int(log.k[i]), float(log.t0[i]), float(log.d[i]), float(log.slope[i])
    edges = [t + (j * d + slope * (0.5 * j * (j - 1))) for j in range(k + 1)]
    before = float(log.before[i]) if log.before.size else 0.0
    for j, (start, end) in enumerate(pairwise(edges)):
        held = int(log.held[i]) + j * int(log.tokens[i])
        limit = LIMITS[int(log.limit[i])]
        yield (
            start - before, end, int(log.decoding[i]), int(log.tokens[i]), int(log.worked[i]), held, limit,
        )  # fmt: skip
