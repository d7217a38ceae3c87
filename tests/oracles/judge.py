"""Runs a case, holds every row against its estimate, and lays the figures out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracles.estimate import Estimate
from tests.oracles.mapping import MAPPINGS, Queue
from tests.oracles.quantities import Traffic, growth, is_p99, quantity
from tests.oracles.rows import Case, Row
from tests.oracles.seen import watch
from tests.oracles.sizing import MEAN_WITHIN, P99_WITHIN, Plan, least_half_width, plan_saturated, relaxation_s

SATURATED_REQUESTS = 60_000
ROUNDING = 1e-12
"""Of what doesn't vary, relative to it."""


@dataclass(frozen=True)
class Verdict:
    """One row, what the engine makes of it, what a step may add, and whether it decides."""

    row: Row
    estimate: Estimate
    step: float
    compared: bool

    @property
    def passes(self) -> bool:
        """The rule: no farther from the estimate than its interval and one step reach."""
        beside = self.step + ROUNDING * abs(self.row.value)
        return self.estimate.low - beside <= self.row.value <= self.estimate.high + beside

    @property
    def sharp(self) -> bool:
        """Whether the half-width is what the full set asks for; less than a step need not be resolved."""
        q, p99 = quantity(self.row.quantity), is_p99(self.row.quantity)
        if not (q.mean or p99):
            return True
        within = (P99_WITHIN if p99 else MEAN_WITHIN) * max(self.row.value, q.smallest)
        return self.estimate.half_width <= max(within, self.step)

    def line(self) -> str:
        """The row's line of the table."""
        e, known = self.estimate, self.row.value
        relative = f"{e.half_width / known:9.2%}" if known else f"{'-':>9}"
        mark = ("" if self.passes else "  FAILS") if self.compared else "  reported only"
        return (
            f"{self.row.quantity:34}{e.value:>13.6g}{known:>13.6g}{e.value - known:>12.3g}{e.half_width:>12.3g}"
            f"{relative}{self.step:>11.2g}{mark}"
        )


HEADER = f"{'quantity':34}{'estimate':>13}{'oracle':>13}{'off by':>12}{'half-width':>12}{'relative':>9}{'one step':>11}"


def queue_of(case: Case) -> Queue:
    """The case's queue as a scenario."""
    return MAPPINGS[case.family](case.parameters)


def draws(queue: Queue) -> tuple[Row, ...]:
    """Rows about the random numbers themselves: estimates are corrected for their luck, so they must be right."""
    arrivals = Row("drawn arrivals a second", queue.rate_rps, "the scenario")
    services = Row("drawn steps a service", queue.steps, "the scenario")
    return (arrivals, services) if queue.squared_cvs[0] else (services,)


def judge(case: Case, plan: Plan, level: float) -> list[Verdict]:
    """Simulate a case by its plan and hold all its rows against it, each with an interval of error `level`."""
    queue = queue_of(case)
    seen = {Traffic.AS_GIVEN: watch(queue.document, plan)}
    assert not seen[Traffic.AS_GIVEN].unserved.sum(), "every counted request is served by the horizon"
    assert seen[Traffic.AS_GIVEN].counted.all(), "every seed has counted requests"
    asked = {quantity(row.quantity).traffic for row in case.rows}
    if Traffic.SATURATING in asked:
        seen[Traffic.SATURATING] = watch(queue.saturated(), plan_saturated(queue, SATURATED_REQUESTS, plan.first_seed))
    if Traffic.POISSON in asked:
        seen[Traffic.POISSON] = watch(queue.poisson(), plan)
    least = least_half_width(queue, case.wait_share, plan, level)
    verdicts = []
    for row in (*draws(queue), *case.rows):
        q = quantity(row.quantity)
        compared = row.compared and plan.end_s - plan.warmup_s >= q.relaxations * relaxation_s(queue) * (1.0 - 1e-9)
        estimate = q.read(seen[q.traffic], queue, level).no_narrower(least * growth(row.quantity) * row.value)
        verdicts.append(Verdict(row, estimate, q.step(queue, row.value), compared))
    return verdicts


def table(case: Case, plan: Plan, verdicts: Sequence[Verdict]) -> str:
    """The case's figures, a line a row."""
    load = queue_of(case).load
    title = f"{case.name}: load {load:.3f}, {plan.seeds} seeds of {plan.end_s - plan.warmup_s:.0f} s"
    return "\n".join([title, HEADER, *(v.line() for v in verdicts)])
