"""What the placement page's charts show, as tables."""

from __future__ import annotations

import pandas as pd

from engine.placement import Needs, Packing
from ui.packing_charts import alike, holds


def chips_table(needs: Needs, packing: Packing) -> pd.DataFrame:
    """Chips in use, those alike together."""
    rows = [(used, many, needs.parts(used)) for used, many in alike(packing)]
    hosts = {"host": [used.host + 1 for used, _, _ in rows]} if needs.terms.spread else {}
    return pd.DataFrame(
        {
            "chip": [needs.problem.chips[used.chip].type for used, _, _ in rows],
            "how many": [many for _, many, _ in rows],
            "holds": [holds(needs, used) for used, _, _ in rows],
            "weights (GB)": [parts.weights for _, _, parts in rows],
            "KV (GB)": [parts.kv for _, _, parts in rows],
            "activations, runtime (GB)": [parts.rest for _, _, parts in rows],
            "free (GB)": [parts.free for _, _, parts in rows],
        }
        | hosts
    )


def seats_table(needs: Needs, item: int) -> pd.DataFrame:
    """One model by itself on each type of chip."""
    found = [needs.alone(item, t) for t in range(len(needs.problem.chips))]
    return pd.DataFrame(
        {
            "chip": [chip.type for chip in needs.problem.chips],
            "chips for a replica": [None if one is None else one.tp for one in found],
            "conversations": [0 if one is None else one.seats for one in found],
            "weights (GB)": [None if one is None else one.parts.weights for one in found],
            "KV (GB)": [None if one is None else one.parts.kv for one in found],
            "activations, runtime (GB)": [None if one is None else one.parts.rest for one in found],
            "free (GB)": [None if one is None else one.parts.free for one in found],
        }
    )
