"""The engine reproduces queues whose answers are known exactly: M/M/1, M/D/1, M/M/c, and continuous batching itself.

Every row passes when |estimate - oracle| <= half-width + one step in the quantity's unit. Half-widths come from the
spread over seeds, at 1 % for all rows of a run together. CI takes some queues with a budget that shows what a few
seconds can show; the full set, under `accept`, every queue, and asks for half-widths of 3 % of means and 6 % of p99.
`pytest -rP` shows the figures.
"""

from __future__ import annotations

import pytest

from tests.oracles.judge import draws, judge, queue_of, table
from tests.oracles.mapping import MAPPINGS
from tests.oracles.quantities import quantity
from tests.oracles.rows import Case, cases
from tests.oracles.sizing import Plan, in_limits, level_of, plan, plan_elsewhere, requests_needed, seed_of

IN_CI = (
    "MM1 lam=0.5 mu=1.0",
    "MD1 D=1.0 lam=0.7",
    "MD1 D=1.0 lam=0.9",
    "MMc c=2 lam=1.6 mu=1.0",
    "MMc c=8 lam=6.4 mu=1.0",
    "MMc c=50 lam=45.0 mu=1.0",
    "ContBatch_CTMC B=32 a=0.02 b=0.0005 lam=1.8 mean_tokens=200",
    "ContBatch_CTMC B=16 a=0.03 b=0.001 lam=0.6 mean_tokens=500",
)
CI_REQUESTS, LEAST_REQUESTS = 200_000, 500_000
"""Counted requests of each queue in CI, and of each in the full set at least."""

CI_CASES = [case for case in cases() if case.name in IN_CI]


def rows_of(chosen: list[Case]) -> int:
    """How many rows decide in a run of these cases, those about the draws included."""
    return sum(len(case.compared) + len(draws(queue_of(case))) for case in chosen)


def full_plan(case: Case, level: float) -> Plan:
    """The full set's plan for a case."""
    queue = queue_of(case)
    if not in_limits(queue):
        return plan_elsewhere(queue, seed_of(case.name))
    return plan(queue, max(requests_needed(queue, case.known("P_wait"), level), LEAST_REQUESTS), seed_of(case.name))


@pytest.mark.parametrize("case", CI_CASES, ids=lambda case: case.name)
def test_rows_within_their_half_widths(case: Case) -> None:
    level, chosen = level_of(rows_of(CI_CASES)), plan(queue_of(case), CI_REQUESTS, seed_of(case.name))
    verdicts = judge(case, chosen, level)
    print(table(case, chosen, verdicts))
    assert not [v.line() for v in verdicts if v.row.compared and not v.passes]


@pytest.mark.accept
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_all_rows_within_narrow_half_widths(case: Case) -> None:
    level = level_of(rows_of(list(cases())))
    chosen = full_plan(case, level)
    verdicts = judge(case, chosen, level)
    print(table(case, chosen, verdicts))
    assert not [v.line() for v in verdicts if v.row.compared and not v.passes]
    if in_limits(queue_of(case)):
        assert not [v.line() for v in verdicts if v.row.compared and not v.sharp], "too wide to show much"


def test_every_row_can_be_read() -> None:
    assert len(CI_CASES) == len(IN_CI)
    assert {case.family for case in CI_CASES} == {case.family for case in cases()} == set(MAPPINGS)
    for case in cases():
        assert all(row.source.startswith(("exact", "limit")) for row in case.rows)
        assert all(quantity(row.quantity) for row in case.rows)
