"""Predictions as sums of products: for every point, how much of each price it pays.

A step's time is a sum of terms, each an amount (operations, bytes, layers) times a price (one over a share, or
seconds). So a plan's seconds are linear in the prices, and the amounts are found by asking the app's own step time for
its answer at prices of 0 and 1. Fitting needs no other copy of the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.catalog import is_sixteen_bit
from engine.machine.calibration.prediction import Plan
from engine.machine.calibration.rows import Point, kv_reads, place_of_point
from engine.machine.constants import constants_for
from engine.machine.deployment import Deployment
from engine.machine.steptime import analytic_terms, computes_natively, is_block_fp8

Floats = NDArray[np.float64]
Path = tuple[str, ...]
_FREE = math.inf
"""A share this large makes a price of nothing."""

SHARES = ("eta_c", "eta_c16", "eta_m", "eta_m16", "eta_kv", "eta_a", "eta_mla", "eta_link")
TIMES = ("alpha_s", "ov_s", "layer_s", "moe_s", "seq_s")
STEPS = 4
"""Kinds of steps of a plan, at most."""
ARITHMETIC, READS = slice(0, 4), slice(4, 6)
"""Prices of matrix products, whose arithmetic and reads overlap."""


@dataclass(frozen=True, slots=True)
class Price:
    """A price as the product of constants (`times`) over the product of others (`over`), by their paths."""

    times: tuple[Path, ...]
    over: tuple[Path, ...]
    share: bool
    """Whether what it divides by is a share, which the app cuts to at most 1."""


@dataclass(frozen=True, slots=True)
class Features:
    """`amounts` (points, STEPS, prices of a point): what each step of each point pays of each of its prices."""

    amounts: Floats
    prices: list[tuple[Price, ...]]
    log_measured: Floats
    tokens: Floats
    """(points,): tokens of a throughput, nan where the prediction is the seconds themselves."""


def features_of(points: list[Point], plans: list[Plan], table: dict[str, Any]) -> Features:
    """The features of points. Of `table` only what isn't a price matters (`moe_touched`, memory)."""
    alike: dict[tuple[Deployment, str], list[int]] = {}
    for row, point in enumerate(points):
        alike.setdefault((_plain(point.deployment), point.engine), []).append(row)
    amounts = np.zeros((len(points), STEPS, len(_prices(points[0]))))
    for rows in alike.values():
        found = _amounts(points[rows[0]], np.concatenate([plans[row].steps for row in rows]), table)
        begin = 0
        for row in rows:
            end = begin + len(plans[row].steps)
            amounts[row, : end - begin, :-2] = found[begin:end]
            begin = end
            amounts[row, 0, -2:] = plans[row].frontends * points[row].model.layers, plans[row].frontends
    return Features(
        amounts,
        [_prices(point) for point in points],
        np.log([point.value for point in points]),
        np.array([np.nan if plan.tokens is None else plan.tokens for plan in plans]),
    )


def _plain(d: Deployment) -> Deployment:
    """A deployment without what its step time doesn't depend on."""
    context = d.context_tokens if d.model.sliding_window is not None else None
    return replace(d, max_num_seqs=1, step_tokens=1, context_tokens=context)


def _amounts(point: Point, steps: Floats, table: dict[str, Any]) -> Floats:
    """(steps, prices less 2): seconds of each step of a point's deployment at a price of 1.

    Prices in order: arithmetic in the weights' format, at 16 bits, on weights stored narrower, of experts;
    reads in the weights' format, at 16 bits; the head; the rest of SHARES; TIMES.
    """
    d, at = point.deployment, place_of_point(point)
    c = constants_for(d.model, d.accelerator, d.weight_dtype, point.engine, at.link != "scale_up", table)
    nothing = dict.fromkeys(SHARES, _FREE) | dict.fromkeys(TIMES, 0.0) | {"frontend_s": 0.0}
    plain = {"block_fp8_compute": 1.0, "block_fp8_reads": 1.0, "weight_only_compute": 1.0}
    plain |= {"moe_compute": 0.0, "overlap": 1.0}
    count, tokens, requests, context, pairs = steps.T

    def seconds(**one: float) -> tuple[Floats, Floats]:
        """Of each step: what depends on its tokens alone, and the rest."""
        terms = analytic_terms(d, replace(c, **(nothing | plain | one)), tokens=tokens)
        base = np.sum([term.base for term in terms], axis=0)
        slopes = [term.seq_s * requests + term.kv_token_s * context + term.pair_s * pairs for term in terms]
        return count * base, count * np.sum(slopes, axis=0)

    def whole(**one: float) -> Floats:
        base, rest = seconds(**one)
        return base + rest

    free = whole()  # attention's arithmetic while writing, hidden behind the reads
    own = "eta_c" if _narrow_arithmetic(point) else "eta_c16"
    narrow, (wide, head) = seconds(eta_c=1.0)[0], seconds(eta_c16=1.0)
    usual = narrow if own == "eta_c" else wide
    experts = np.zeros_like(wide)
    if d.model.moe is not None:
        experts = seconds(**{own: 1.0, "moe_compute": 1.0})[0] - usual
    stored = np.zeros_like(wide)
    if not computes_natively(d, d.weight_dtype):  # at 16 bits, of which what is stored in fewer is slower
        kept, _ = seconds(eta_c16=1.0, weight_only_compute=_FREE)
        stored, wide = wide - kept, kept
    products = [narrow, wide, stored, experts, seconds(eta_m=1.0)[0], seconds(eta_m16=1.0)[0], head - free]
    others = [whole(**{name: 1.0}) - free for name in (*SHARES[4:], *TIMES)]
    if d.model.mla is None:
        others[0] = others[0] + free
    others[0] = others[0] * kv_reads(point)
    amounts = np.transpose([*products, *others])
    return np.where(amounts > 1e-15, amounts, 0.0)


def _narrow_arithmetic(point: Point) -> bool:
    """Whether the weights are multiplied by units for fewer bits than 16."""
    d = point.deployment
    return not is_sixteen_bit(d.weight_dtype) and computes_natively(d, d.weight_dtype)


def _prices(point: Point) -> tuple[Price, ...]:
    """The prices of a point, in the order of its amounts."""
    d, at = point.deployment, place_of_point(point)
    family, host = ("families", at.family), ("engines", at.engine, at.kind)

    def share(*over: Path, times: tuple[Path, ...] = ()) -> Price:
        return Price(times, over, True)

    own = ("devices", d.accelerator.name)
    arithmetic, reads = ((*host, "arithmetic"), (*own, "arithmetic")), ((*host, "reads"), (*own, "reads"))
    block = is_block_fp8(d)
    slower = (("shared", "block_fp8_compute"),) if block else ()
    if not computes_natively(d, d.weight_dtype):
        slower = (("shared", "weight_only_compute"),)
    experts = ((*family, "eta_c", at.width if _narrow_arithmetic(point) else "16"), *arithmetic, *slower)
    found = [
        share((*family, "eta_c", at.width), *arithmetic, *slower),
        share((*family, "eta_c", "16"), *arithmetic),
        share((*family, "eta_c", "16"), *arithmetic, *slower),
        share(*experts, times=(("shared", "moe_compute"), (*family, "moe"))),
        share((*family, "eta_m", at.width), *reads, *((("shared", "block_fp8_reads"),) if block else ())),
        share((*family, "eta_m", "16"), *reads),
        share((*family, "eta_c", "16"), *arithmetic),
        share((*family, "eta_kv"), (*host, "kv"), *reads),
        share((*family, "eta_a"), *arithmetic),
        share(("shared", "eta_mla")),
        share(("links", at.link, "eta_link")),
        Price((("links", at.link, "alpha_s"),), (), False),
        *(Price(((*host, name),), (), False) for name in TIMES[1:]),
        Price(((*host, "launch_s"),), (), False),
        Price(((*host, "inprocess_s" if point.load == "static_batch" else "frontend_s"),), (), False),
    ]
    return tuple(found)
