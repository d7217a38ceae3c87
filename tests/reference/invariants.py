"""What must hold of every outcome, whatever the setup: read from the rows and steps alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from tests.reference.coupling_laws import check_coupling
from tests.reference.model import AdaptiveLifo, Outcome, Request, Row, Setup, Step
from tests.reference.pipeline_laws import check_passes
from tests.reference.pool_laws import check_handover, check_turns, check_work, read_part, written_parts

STATES = {"completed", "rejected", "timed_out", "unfinished"}
GATEWAY = ("throttled", "rate_limited", "no_replica")
REASONS: dict[str, set[str | None]] = {
    "completed": {None},
    "unfinished": {None},
    "rejected": {"throttled", "rate_limited", "no_replica", "too_long", "queue_full", "shed", "codel"},
    "timed_out": {"timeout", "ttft_timeout", "queue_timeout"},
}


def check(setup: Setup, requests: Sequence[Request], outcome: Outcome) -> None:
    """AssertionError names the first request or step that breaks a law."""
    issued = [row for row in outcome.requests if row.state is not None]
    missing = [requests[row.request] for row in outcome.requests if row.state is None]
    assert all(request.user is not None for request in missing), "an open request vanished"
    assert sum(sum(row.state == state for row in issued) for state in STATES) == len(issued)
    assert sorted(row.order for row in issued if row.order is not None) == list(range(len(issued)))
    for row in issued:
        _check_row(setup, requests[row.request], row, outcome.horizon_s, f"{row}")
        _check_deadlines(setup, row, outcome.horizon_s, f"{row}")
    check_coupling(setup, requests, outcome)
    _check_rate_limit(setup, issued)
    for replica, steps in enumerate(outcome.steps[: setup.replicas]):
        pairs = [(requests[row.request], row) for row in issued if row.replica == replica]
        pairs.sort(key=lambda pair: pair[1].order or 0)
        there = [row for _, row in pairs]
        if setup.policy == "disaggregated":
            there = [read_part(row, outstanding=True) for row in there]
            pairs = [(request, read_part(row)) for request, row in pairs]
        if setup.stages > 1:
            check_passes(setup, steps, outcome.horizon_s)
        else:
            _check_steps(setup, steps, outcome.horizon_s)
        _check_tokens(pairs, steps, outcome.horizon_s)
        _check_queue(setup, pairs, steps)
        _check_outstanding(setup, there)
    if setup.policy == "disaggregated":
        _check_pools(setup, requests, outcome, issued)
    assert sorted(outcome.gaps) == sorted(gap for row in issued for gap in row.gaps)


def _check_queue(setup: Setup, pairs: list[tuple[Request, Row]], steps: list[Step]) -> None:
    accepted = [(q, r) for q, r in pairs if r.state != "rejected" or r.reason == "codel"]
    _check_order(setup, accepted)
    if setup.stages == 1:
        _check_never_idle(setup, [r for _, r in accepted], steps)


def _check_pools(setup: Setup, requests: Sequence[Request], outcome: Outcome, issued: list[Row]) -> None:
    check_handover(setup, requests, issued)
    check_turns(setup, issued)
    check_work(setup, requests, outcome)
    pairs = [(requests[row.request], row) for row in issued]
    for replica in range(setup.replicas, setup.replicas + setup.decode_replicas):
        steps = outcome.steps[replica]
        _check_steps(setup, steps, outcome.horizon_s)
        _check_queue(replace(setup, discipline=None), written_parts(pairs, replica), steps)


def output_of(setup: Setup, request: Request) -> int:
    """Tokens that the request is served with."""
    limit = setup.reserve_output_tokens
    return request.output_tokens if limit is None else min(limit, request.output_tokens)


def _check_row(setup: Setup, request: Request, row: Row, horizon: float, what: str) -> None:
    assert row.reason in REASONS[row.state or ""], what
    assert row.arrival_s is not None, what
    assert (row.replica is None) == (row.reason in GATEWAY), what
    assert setup.horizon_s is None or row.arrival_s < setup.horizon_s, what
    assert (row.finish_s is not None) == (row.state == "completed"), what
    if row.state != "timed_out" or setup.on_timeout == "abort":
        assert (row.left_s is None) == (row.state == "unfinished"), what
    order = [row.arrival_s, row.scheduled_s, row.first_token_s, *row.token_times[1:], row.left_s, horizon]
    present = [at for at in order if at is not None]
    assert present == sorted(present), what
    assert row.token_times[:1] == ([] if row.first_token_s is None else [row.first_token_s]), what
    assert len(set(row.token_times)) == len(row.token_times), what
    if row.first_token_s is not None:
        assert row.scheduled_s is not None, what
        assert row.scheduled_s < row.first_token_s, what
    output = output_of(setup, request)
    if row.state == "completed":
        assert len(row.token_times) == output, what
        assert row.finish_s == row.left_s == row.token_times[-1], what
    else:
        late = row.state == "timed_out" and row.left_s is not None
        assert len(row.token_times) < output or late, what
    if row.state == "rejected":
        assert row.left_s == row.arrival_s or row.reason == "codel", what
        assert row.scheduled_s is None, what
    if setup.kv_policy == "reserve":
        assert row.preemptions == 0, what


def _check_deadlines(setup: Setup, row: Row, horizon: float, what: str) -> None:
    arrival = row.arrival_s or 0.0
    waits = {
        "timeout": setup.timeout_s,
        "ttft_timeout": setup.ttft_timeout_s,
        "queue_timeout": setup.queue_timeout_s,
    }
    if row.state == "completed":
        met = {"timeout": row.finish_s, "ttft_timeout": row.first_token_s, "queue_timeout": row.scheduled_s}
        for reason, at in met.items():
            wait = waits[reason]
            assert at is not None, what
            assert wait is None or at < arrival + wait, what
    if row.state == "timed_out":
        wait = waits[row.reason or ""]
        assert wait is not None, what
        assert arrival + wait <= (horizon if row.left_s is None else row.left_s), what
        if row.scheduled_s is None and setup.on_timeout == "abort":
            assert row.left_s == arrival + wait, what


def _check_rate_limit(setup: Setup, issued: list[Row]) -> None:
    """No window of time lets more through than the burst and what dripped in meanwhile."""
    if setup.rate_limit is None:
        assert all(row.reason != "rate_limited" for row in issued)
        return
    rate, burst = setup.rate_limit
    times = sorted(row.arrival_s or 0.0 for row in issued if row.reason not in ("throttled", "rate_limited"))
    for i, first in enumerate(times):
        for j in range(i, len(times)):
            assert j - i + 1 <= burst + rate * (times[j] - first) + 1e-9


def _check_steps(setup: Setup, steps: list[Step], horizon: float) -> None:
    for before, after in pairwise(steps):
        assert before.end <= after.start, f"{before} overlaps {after}"
        assert before.end <= horizon, before
    for step in steps:
        assert step.start < horizon, step
        assert 0 < step.R <= step.running <= setup.max_num_seqs, step
        assert step.R <= step.T, step
        assert step.n_decode <= step.R, step
        tokens, worked_on = step.T, step.R
        if setup.policy == "chunked":
            assert tokens <= setup.max_num_batched_tokens, step
            assert worked_on == step.running, step
        if setup.policy in ("prefill_first", "disaggregated"):
            assert tokens <= setup.max_num_batched_tokens or worked_on == 1, step
        if setup.kv_capacity_tokens is not None:
            assert step.kv_held_at_start + step.T <= setup.kv_capacity_tokens, step
        base = setup.base(step.T) if callable(setup.base) else setup.base[step.T]
        duration = base + setup.seq_s * step.R + setup.kv_token_s * step.C + setup.prefill_pair_s * step.A
        assert step.end == step.start + duration, step
        assert (step.limited_by == "none") == (step.waiting_after_admission == 0), step
        assert (step.limited_by == "max_num_seqs") == (
            step.waiting_after_admission > 0 and step.running == setup.max_num_seqs
        ), step


def _check_tokens(pairs: list[tuple[Request, Row]], steps: list[Step], horizon: float) -> None:
    """Every gap was made by a step, and every token worked on belongs to a request."""
    done = [step for step in steps if step.end <= horizon]
    rows = [row for _, row in pairs]
    assert sum(step.n_decode for step in done) == sum(len(row.gaps) for row in rows)
    least = 0
    for request, row in pairs:
        if row.token_times:
            cached = min(request.cached_prefix_tokens, request.prompt_tokens - 1)
            least += request.prompt_tokens - cached + len(row.token_times) - 1
    worked = sum(step.T for step in done)
    assert least <= worked
    if all(row.preemptions == 0 and (row.token_times or row.scheduled_s is None) for row in rows):
        assert least == worked


def _check_order(setup: Setup, accepted: list[tuple[Request, Row]]) -> None:
    """Nobody gets its first turn while somebody more urgent, or of its class and earlier, has had none and waits.

    With adaptive LIFO a class may be overtaken in, by who comes later, once its oldest has waited long enough.
    """
    for request, row in accepted:
        if row.scheduled_s is None:
            continue
        overtaken = []
        for other_request, other in accepted:
            ahead = (other_request.priority, other.order or 0) < (request.priority, row.order or 0)
            if not ahead or (other.arrival_s or 0.0) > row.scheduled_s:
                continue
            ended = other.scheduled_s if other.scheduled_s is not None else other.left_s
            if ended is None or ended > row.scheduled_s:
                overtaken.append((other_request, other))
        if isinstance(setup.discipline, AdaptiveLifo) and overtaken:
            assert all(other_request.priority == request.priority for other_request, _ in overtaken), f"{row}"
            oldest = min(other.arrival_s or 0.0 for _, other in overtaken)
            assert row.scheduled_s - oldest >= setup.discipline.after_s, f"{row} was too early a newcomer"
        else:
            assert not overtaken, f"{row} overtook {overtaken}"


def _check_never_idle(setup: Setup, rows: list[Row], steps: list[Step]) -> None:
    """A replica pauses only when nobody is there (a static group may be waited for)."""
    if setup.policy == "static" and setup.batch_wait_s > 0:
        return
    edges = [(0.0, steps[0].start if steps else float("inf"))]
    edges += [(before.end, after.start) for before, after in pairwise(steps)]
    for begin, end in edges:
        for row in rows:
            left = float("inf") if row.left_s is None else row.left_s
            # With a horizon, a request arriving after the last step's start may never see one start.
            if begin < end < float("inf"):
                assert not (max(begin, row.arrival_s or 0.0) < min(end, left)), f"idle {begin}..{end} with {row}"


def _check_outstanding(setup: Setup, rows: list[Row]) -> None:
    """The cap, recounted at each arrival: departures of that instant are gone, earlier arrivals of it are there.

    What CoDel drops at that instant is there, too: it goes when the next step starts.
    """
    if setup.max_outstanding is None:
        if setup.max_queued_tokens is None:
            assert all(row.reason != "queue_full" for row in rows)
        return
    accepted: list[Row] = []
    for row in rows:
        now = row.arrival_s or 0.0
        there = sum(1 for other in accepted if _is_there(other, now))
        if row.reason not in ("too_long", "queue_full"):
            assert there < setup.max_outstanding, row
            if row.reason != "shed":
                accepted.append(row)
        elif row.reason == "queue_full" and setup.max_queued_tokens is None:
            assert there >= setup.max_outstanding, row


def _is_there(row: Row, now: float) -> bool:
    """Whether an accepted request counts for an arrival at `now`, dropped by a step's start at that instant or not."""
    return row.left_s is None or row.left_s > now or (row.left_s == now and row.reason == "codel")
