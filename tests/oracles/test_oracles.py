"""The engine reproduces queues whose answers are known exactly, from M/M/1 to continuous batching itself.

Every row passes when |estimate - oracle| <= half-width + one step in the quantity's unit. Half-widths come from the
spread over seeds, at 1 % for all rows of a run together. CI takes some queues with a budget that shows what a few
seconds can show; the full set, under `accept`, every queue, and asks for half-widths of 3 % of means and 6 % of p99.
`pytest -rP` shows the figures.
"""

from __future__ import annotations

import pytest

from tests.oracles.judge import draws, judge, queue_of, table
from tests.oracles.mapping import ARRIVALS, MAPPINGS
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
    "MMcK K=5 c=1 lam=0.8 mu=1.0",
    "MMcK K=20 c=4 lam=4.8 mu=1.0",
    "ErlangB a=6 c=8",
    "ErlangB a=45 c=50",
    "MDc D=1.0 c=2 lam=1.6",
    "MDc D=1.0 c=10 lam=9.0",
    "MG1 lam=0.5 mean=1.0 service=erlang4",
    "MG1 lam=0.8 mean=1.0 service=uniform_0_2",
    "MG1 lam=0.8 mean=1.0 service=lognormal_scv1",
    "MG1 lam=0.5 mu1=1.7745966692414834 mu2=0.2254033307585166 p=0.8872983346207417 scv=4 service=H2_balanced_means",
    "GIM1 ca2=2.0 interarrival=gamma lam=0.5 mu=1.0 shape=0.5",
    "GIM1 ca2=0.25 interarrival=gamma lam=0.8 mu=1.0 shape=4.0",
    "GIM1 ca2=0.0 interarrival=deterministic lam=0.8 mu=1.0",
    "MM1_priority discipline=nonpreemptive priority, 2 classes lam1=0.3 lam2=0.4 mu=1.0",
    "MMc_plus_D c=1 lam=1.2 mu=1.0 patience=5.0",
    "MMc_plus_D c=10 lam=8 mu=1.0 patience=0.2",
    "MMPP2_M_c c=1 lam1=1.6 lam2=0.4 mu=1.25 r12=0.1 r21=0.1",
    "Bulk_M_D_1B_1 B=8 a=1.0 b=0.0 lam=3.0",
    "Bulk_M_D_1B_1 B=16 a=0.5 b=0.02 lam=10.0",
    "ContBatch_CTMC_K B=64 K=64 a=0.02 b=0.0005 lam=8.0 mean_tokens=200",
    "ContBatch_CTMC_K B=64 K=96 a=0.02 b=0.0005 lam=6.5 mean_tokens=200",
    "RoundRobin_N_expo_servers N=2 mu=1.0 policy=round_robin rho=0.9",
    "RoundRobin_N_expo_servers N=4 mu=1.0 policy=round_robin rho=0.7",
)
CI_REQUESTS, LEAST_REQUESTS = 200_000, 500_000
"""Counted requests of each queue in CI, and of each in the full set at least."""

CASES = [case for case in cases() if case.family != ARRIVALS]
CI_CASES = [case for case in CASES if case.name in IN_CI]


def rows_of(chosen: list[Case]) -> int:
    """How many rows may decide in a run of these cases, those about the draws included."""
    return sum(len(case.compared) + len(draws(queue_of(case))) for case in chosen)


def full_plan(case: Case, level: float) -> Plan:
    """The full set's plan for a case."""
    queue = queue_of(case)
    if queue.most is None and not in_limits(queue):
        return plan_elsewhere(queue, seed_of(case.name))
    return plan(queue, max(requests_needed(queue, case.wait_share, level), LEAST_REQUESTS), seed_of(case.name))


@pytest.mark.parametrize("case", CI_CASES, ids=lambda case: case.name)
def test_rows_within_their_half_widths(case: Case) -> None:
    level, chosen = level_of(rows_of(CI_CASES)), plan(queue_of(case), CI_REQUESTS, seed_of(case.name))
    verdicts = judge(case, chosen, level)
    print(table(case, chosen, verdicts))
    assert not [v.line() for v in verdicts if v.compared and not v.passes]


@pytest.mark.accept
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_rows_within_narrow_half_widths(case: Case) -> None:
    level = level_of(rows_of(CASES))
    chosen = full_plan(case, level)
    verdicts = judge(case, chosen, level)
    print(table(case, chosen, verdicts))
    assert not [v.line() for v in verdicts if v.compared and not v.passes]
    if in_limits(queue_of(case)):
        assert not [v.line() for v in verdicts if v.compared and not v.sharp], "too wide to show much"


def test_every_row_can_be_read() -> None:
    assert len(CI_CASES) == len(IN_CI)
    assert {case.family for case in CI_CASES} == {case.family for case in CASES} == set(MAPPINGS)
    assert all(row.source.startswith(("exact", "limit")) for case in cases() for row in case.rows)
    assert all(quantity(row.quantity) for case in CASES for row in case.rows)
