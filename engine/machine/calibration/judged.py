"""Which points of a table are scored: those that a row maps to, less what physics or its neighbours contradict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.machine.calibration.prediction import Plan, plan_of, predict
from engine.machine.calibration.rows import LeftOut, Point, kv_reads, place_of_point, point_of
from engine.machine.calibration.table import Row
from engine.machine.constants import Constants, constants_for, shipped

BELOW_SMALLER = 0.8
"""A TPOT below this share of that at a smaller concurrency of the same deployment is a mistake in the table."""
FASTER_THAN_ROOFLINE = "beats the roofline"
CONTRADICTED = f"TPOT below {BELOW_SMALLER} of that at a smaller concurrency"
NO_ROOM = "weights or one request don't fit in memory"


@dataclass(frozen=True, slots=True)
class Judged:
    """Points to score with their plans, and how many rows were left out, by reason.

    `mapped`: rows of the kinds that the mapping covers, less those that it names as left out, whose model and
    accelerator are in the catalogue; `points` of them are predicted.
    """

    points: list[Point]
    plans: list[Plan]
    excluded: dict[str, int]
    mapped: int


# Reasons that say nothing against a row's being of a mapped kind, with model and accelerator known.
_STILL_MAPPED = (NO_ROOM, "model can't be split", "no ", "number of devices", "format of", "accelerator without")


def judge(rows: Iterable[Row], table: Mapping[str, Any] | None = None) -> Judged:
    """All points of a table, as the mapping decides. `table`: constants (of memory), the shipped ones by default."""
    excluded: Counter[str] = Counter()
    points: list[Point] = []
    plans: list[Plan] = []
    for row in rows:
        try:
            point = point_of(row)
            plan = _planned(point, table)
        except LeftOut as why:
            excluded[str(why)] += 1
        else:
            points.append(point)
            plans.append(plan)
    contradicted = _contradicted(points)
    if contradicted:
        excluded[CONTRADICTED] = len(contradicted)
    kept = [row for row in range(len(points)) if row not in contradicted]
    lost = sum(count for reason, count in excluded.items() if reason.startswith(_STILL_MAPPED))
    reasons = dict(sorted(excluded.items()))
    return Judged([points[row] for row in kept], [plans[row] for row in kept], reasons, len(kept) + lost)


def constants_of(point: Point, table: Mapping[str, Any] | None = None) -> Constants:
    """The constants of a point, shipped or from a table; a script in the engine's process has its own front end."""
    d, at, table = point.deployment, place_of_point(point), table or shipped()
    c = constants_for(d.model, d.accelerator, d.weight_dtype, point.engine, at.link != "scale_up", table)
    c = replace(c, eta_kv=c.eta_kv / kv_reads(point))
    if point.load != "static_batch":
        return c
    host = table["engines"][at.engine][at.kind]
    return replace(c, frontend_s=host["inprocess_s"] + host["launch_s"] * d.model.layers)


def _planned(point: Point, table: Mapping[str, Any] | None) -> Plan:
    c = constants_of(point, table)
    plan = plan_of(point, c)
    if plan is None:
        raise LeftOut(NO_ROOM)
    best = predict(plan, point.deployment, perfect(c))
    if (point.value > best) if plan.tokens is not None else (point.value < best):
        raise LeftOut(FASTER_THAN_ROOFLINE)
    return plan


def perfect(c: Constants) -> Constants:
    """Constants of the hardware's own limits: every rate at its peak and nothing lost between.

    Arithmetic is left out altogether: it may overlap with reading, and reading alone bounds a step from below.
    """
    shares = dict.fromkeys(("eta_c", "eta_c16", "eta_a", "eta_mla", "eta_link"), 1e9)
    peaks = dict.fromkeys(("eta_m", "eta_m16", "eta_kv", "block_fp8_compute", "block_fp8_reads"), 1.0)
    times = dict.fromkeys(("alpha_s", "ov_s", "layer_s", "moe_s", "seq_s", "frontend_s"), 0.0)
    return replace(c, **shares, **peaks, **times)


def _contradicted(points: Sequence[Point]) -> set[int]:
    """Positions of TPOTs far below one at a smaller concurrency, all else being equal."""
    series: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for row, point in enumerate(points):
        if point.metric == "tpot" and point.load == "closed_loop":
            series[(*point.configuration[:-1], point.deployment.step_tokens)].append(row)
    found: set[int] = set()
    for rows in series.values():
        rows.sort(key=lambda row: points[row].seqs)
        slowest: list[tuple[float, float]] = []  # (concurrency, value) of what is kept
        for row in rows:
            point = points[row]
            before = [value for seqs, value in slowest if seqs < point.seqs]
            if before and point.value < BELOW_SMALLER * max(before):
                found.add(row)
            else:
                slowest.append((point.seqs, point.value))
    return found
