"""What must hold of attempts: who tries again and how often, and that nothing refuses or routes unasked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from tests.reference.model import Codel, Outcome, Request, Row, Setup
from tests.reference.points import sync_s
from tests.reference.retries import tries_of_layer


def check_coupling(setup: Setup, requests: Sequence[Request], outcome: Outcome) -> None:
    """AssertionError names the first attempt that breaks a law."""
    of_request = [list(rows) for _, rows in groupby(outcome.requests, key=lambda row: row.request)]
    assert [rows[0].request for rows in of_request] == list(range(len(requests)))
    most = (setup.max_retries + 1) ** setup.retry_layers
    for rows in of_request:
        assert [row.attempt for row in rows] == list(range(len(rows))), rows
        assert len(rows) <= most, rows
        for failed, retry in pairwise(rows):
            _check_retry(setup, failed, retry)
        last = rows[-1]
        if setup.horizon_s is None and setup.retry_budget_ratio is None and may_retry(last):
            assert len(rows) == most, f"{last} was not tried again"
    issued = sorted((row for row in outcome.requests if row.order is not None), key=lambda row: row.order or 0)
    assert [row.arrival_s or 0.0 for row in issued] == sorted(row.arrival_s or 0.0 for row in issued)
    _check_budget(setup, issued)
    _check_reasons(setup, issued)
    _check_routable(setup, issued)


def may_retry(row: Row) -> bool:
    """Whether a client tries again after such an end, if it may."""
    return row.state == "timed_out" or (row.state == "rejected" and row.reason != "too_long")


def failed_at(setup: Setup, row: Row) -> float:
    """When a failed attempt's client learns of it."""
    wait = {"timeout": setup.timeout_s, "ttft_timeout": setup.ttft_timeout_s}.get(row.reason or "")
    if setup.on_timeout == "ignore" and wait is not None:
        return (row.arrival_s or 0.0) + wait
    assert row.left_s is not None, row
    return row.left_s


def _check_retry(setup: Setup, failed: Row, retry: Row) -> None:
    """It follows a failure, not before anybody noticed, and not later than the longest backoff after that."""
    assert may_retry(failed), f"{retry} follows {failed}"
    assert retry.arrival_s is not None, retry
    at, every_s = failed_at(setup, failed), sync_s(setup)
    assert every_s is not None
    assert retry.arrival_s >= at, f"{retry} came before the end of {failed}"
    assert failed.state != "rejected" or retry.arrival_s > at, f"{retry} came at the refusal of {failed}"
    longest = setup.backoff_s * 2.0 ** tries_of_layer(failed.attempt, setup.max_retries)
    assert retry.arrival_s <= at + max(longest, every_s) + 1e-9, f"{retry} came too late after {failed}"


def _check_budget(setup: Setup, issued: Sequence[Row]) -> None:
    """At every arrival: retries so far are at most one more than the ratio times first attempts before."""
    ratio, retries = setup.retry_budget_ratio, 0
    for row in issued:
        retries += row.attempt > 0
        first = sum(1 for other in issued if other.attempt == 0 and (other.arrival_s or 0.0) < (row.arrival_s or 0.0))
        assert ratio is None or row.attempt == 0 or retries <= ratio * first + 1, row


def _check_reasons(setup: Setup, issued: Sequence[Row]) -> None:
    """Only what is switched on refuses, and only with cause."""
    for row in issued:
        now = row.arrival_s or 0.0
        if row.reason == "throttled":
            assert setup.throttle is not None, row
            refused = [r for r in issued if r.state == "rejected" and r.left_s is not None and r.left_s < now]
            assert refused, f"{row} without a refusal before"
        if row.reason == "shed":
            assert setup.shed_ttft_s is not None, row
        if row.reason == "codel":
            assert isinstance(setup.discipline, Codel), row
            assert row.left_s is not None, row
            assert row.left_s - now >= setup.discipline.target_s, row


def _check_routable(setup: Setup, issued: Sequence[Row]) -> None:
    """Nobody is sent where nothing new is taken, and nobody is turned away while somebody takes."""
    for row in issued:
        now = row.arrival_s or 0.0
        intervals = setup.routable
        takes = [intervals is None or any(a <= now < b for a, b in intervals[i]) for i in range(setup.replicas)]
        assert row.replica is None or takes[row.replica], row
        assert row.reason != "no_replica" or not any(takes), row
