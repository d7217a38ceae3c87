"""What must hold of a fleet of two pools: each pool's part of an attempt, and that nothing is lost in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.reference.model import Outcome, Request, Row, Setup

Pairs = list[tuple[Request, Row]]


def read_part(row: Row, outstanding: bool = False) -> Row:
    """An attempt as the replica that reads its prompt sees it: over with its first token.

    `outstanding`: over only when the KV has come to the other pool.
    """
    if row.first_token_s is None:
        return row
    left: float | None = row.first_token_s
    if outstanding and row.left_s != row.first_token_s:
        left = row.landed_s
    return replace(row, token_times=row.token_times[:1], left_s=left)


def written_parts(pairs: Pairs, replica: int) -> Pairs:
    """Attempts as a replica that writes sees them, in the order in which they come; classes don't count there."""
    mine = [(request, row) for request, row in pairs if row.writer == replica]
    mine.sort(key=lambda pair: (pair[1].landed_s or 0.0, pair[1].order or 0))
    return [
        (replace(request, priority=0), replace(row, arrival_s=row.landed_s, scheduled_s=row.resumed_s, order=n))
        for n, (request, row) in enumerate(mine)
    ]


def check_handover(setup: Setup, requests: Sequence[Request], issued: Sequence[Row]) -> None:
    """Everybody who wants more than a first token sets out, comes after the KV's time, and goes on or leaves."""
    for row in issued:
        travels = row.first_token_s is not None and row.left_s != row.first_token_s
        if not travels:
            assert (row.landed_s, row.writer, row.resumed_s) == (None, None, None), row
            continue
        assert row.first_token_s is not None, row
        way = requests[row.request].prompt_tokens * setup.transfer_token_s + setup.transfer_latency_s
        if row.landed_s is None:
            assert row.state != "completed", row
            assert setup.horizon_s is not None, row
            assert row.first_token_s + way > setup.horizon_s, row
            continue
        assert row.landed_s == row.first_token_s + way, row
        if row.writer is None:
            assert row.state == "timed_out", row
            assert row.left_s == row.landed_s, row
            continue
        assert setup.replicas <= row.writer < setup.replicas + setup.decode_replicas, row
        if row.resumed_s is None:
            assert row.state in ("timed_out", "unfinished"), row
            assert len(row.token_times) == 1, row
        else:
            assert row.landed_s <= row.resumed_s, row
            assert all(at > row.resumed_s for at in row.token_times[1:]), row


def check_work(setup: Setup, requests: Sequence[Request], outcome: Outcome) -> None:
    """Those who read make first tokens and no others, and every other token is made by those who write."""
    issued = [row for row in outcome.requests if row.state is not None]
    until = outcome.horizon_s
    reading = [step for steps in outcome.steps[: setup.replicas] for step in steps if step.end <= until]
    writing = [step for steps in outcome.steps[setup.replicas :] for step in steps if step.end <= until]
    assert all(step.n_decode == 0 and step.kv_held_at_start == 0 and step.chunk_tokens == step.T for step in reading)
    assert all(step.n_decode == step.T == step.R and step.chunk_tokens == 0 and step.A == 0 for step in writing)
    assert sum(step.R for step in reading) == sum(row.first_token_s is not None for row in issued)
    assert sum(step.T for step in writing) == sum(max(len(row.token_times) - 1, 0) for row in issued)
    for steps in outcome.steps[setup.replicas :]:
        assert all(step.limited_by in ("none", "max_num_seqs", "kv") for step in steps)


def check_turns(setup: Setup, issued: Sequence[Row]) -> None:
    """Round robin: those who come take turns, whoever was sent where before."""
    if setup.routing == "round_robin":
        came = [row for row in issued if row.writer is not None]
        came.sort(key=lambda row: (row.landed_s or 0.0, row.order or 0))
        assert [(row.writer or 0) - setup.replicas for row in came] == [
            n % setup.decode_replicas for n in range(len(came))
        ]
