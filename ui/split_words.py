"""What the placement page says of splitting one model or copying it. Every figure is the engine's."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from engine.machine import (
    megatron_bytes,
    resolve_model,
    ring_attention_bytes,
    stage_boundary_bytes,
    typical_lengths,
    ulysses_bytes,
)
from engine.scenario import Scenario
from engine.study import Layout, LayoutOutcome, Pressure, Recommendation
from ui.words import SHORT, count, digits, percent, plain, seconds, sentence

MEANINGS = (
    "**Operators divided between machines** (`sp: operators`): `tp` chips do attention, as many the feed-forward "
    "parts; the whole input passes between them twice in every layer. Room for more KV, no more speed.",
    "**Activations sharded inside tensor parallel** (`sp: megatron`): norms and residuals by token. Saves activation "
    "memory; reduce-scatter and all-gather send what two all-reduces would.",
    "**Shards of the sequence swapped for heads** (`sp: ulysses`, over `cp` chips): all-to-all before and after "
    "attention. Sends less the more chips share it; needs heads to deal out; copies the weights.",
)
"""The three things that are called sequence parallel."""
_TOKENS = 4096
SENT = "a chip sends (MB)"
"""Heading of the table's column of numbers."""


def name(layout: Layout) -> str:
    """A layout in words: "4 copies of 2 chips (TP2)"."""
    copies = count(layout.replicas, "copy", "copies")
    if layout.chips == 1:
        return f"{copies} of one chip"
    return f"{copies} of {layout.chips} chips ({ways(layout)})"


def ways(layout: Layout) -> str:
    """How a copy is split: "TP4·CP2"; experts over chips with attention of their own: "EP8"."""
    sizes = (("TP", layout.tp), ("PP", layout.pp), ("CP", layout.cp), ("EP", layout.ep))
    return "·".join(f"{what}{size}" for what, size in sizes if size > 1)


def short(layout: Layout) -> str:
    """A label for a chart: "TP2 × 4", "8 copies", "TP8"."""
    if layout.chips == 1:
        return f"{layout.replicas} copies" if layout.replicas > 1 else "1 chip"
    return f"{ways(layout)} × {layout.replicas}" if layout.replicas > 1 else ways(layout)


def headline(found: Recommendation | None, accelerators: int, could: bool = False) -> str:
    """The layout to use. `could`: whether some layout can serve these requests, though none is recommended."""
    if found is None and could:
        return "No answer of two tokens or more comes, so there is no pace to compare."
    if found is None:
        return f"No layout of {count(accelerators, 'chip')} can serve this."
    if found.kept is False:
        come = "comes" if found.best.layout.replicas == 1 else "come"
        return (
            f"No layout of {count(accelerators, 'chip')} keeps the promise; {name(found.best.layout)} {come} nearest."
        )
    return f"Use {name(found.best.layout)}."


def pressure(found: Recommendation, scenario: Scenario) -> str:
    """What forces a split, or that nothing does."""
    plainest = found.plain
    copies, s = name(plainest.layout), "s" if plainest.layout.replicas == 1 else ""
    kept = "" if plainest.attainment is None else f" ({percent(plainest.attainment)} of requests keep the promise)"
    said: dict[Pressure, str] = {
        "none": f"Nothing presses: {copies} keep{s} the promise{kept}."
        if scenario.slo
        else "Nothing is promised, so nothing presses.",
        "memory": f"**The pressure is memory:** fewer than {plainest.layout.chips} chips don't hold the model.",
        "requests": f"**The pressure is too many requests:** {copies} can serve "
        f"{digits(plainest.capacity_rps or 0.0, 2)} a second{kept}.",
        "prompts": f"**The pressure is long prompts:** {copies} take{s} "
        f"{seconds(plainest.lone_first_word_s or 0.0)} to read one even when nobody else is there{kept}.",
        "pace": f"**The pressure is the pace:** on {copies} a user sees {digits(plainest.tokens_per_user or 0.0, 2)} "
        f"tokens a second{_promised(scenario)}{kept}.",
    }
    return said[found.pressure]


def _promised(scenario: Scenario) -> str:
    if not scenario.slo or scenario.slo[0].metric not in ("tpot", "max_itl"):
        return ""
    return f", and a {SHORT[scenario.slo[0].metric]} of {seconds(scenario.slo[0].threshold_s)} is promised"


def price(found: Recommendation) -> str:
    """What the choice gives up against the extremes."""
    best, said = found.best, []
    mine, most = best.tokens_per_gpu or 0.0, found.most.tokens_per_gpu or 0.0
    if found.most.layout != best.layout and most > 0 and 1 - mine / most > 0.005:
        said.append(f"{percent(1 - mine / most, 2)} of the throughput of {name(found.most.layout)}")
    pace, fast = best.tokens_per_user or 0.0, found.fastest.tokens_per_user or 0.0
    if found.fastest.layout != best.layout and fast > 1.005 * pace:
        said.append(
            f"the pace of {name(found.fastest.layout)}, {digits(fast, 2)} tokens a second for each user instead of "
            f"{digits(pace, 2)}"
        )
    if not said:
        return "It is the best in both, pace and throughput: nothing is given up."
    return f"The price: it gives up {' and '.join(said)}."


def frontier_sentence(best: Sequence[LayoutOutcome], tried: int) -> str:
    """What to read in the chart of so many layouts."""
    if not best:
        return "No layout produced a word."
    fast, most = best[0], best[-1]
    if tried == 1:
        return f"**Only {name(fast.layout)} can be used.**"
    if len(best) == 1:
        beat = "beats" if fast.layout.replicas == 1 else "beat"
        return f"**{name(fast.layout)} {beat} every other layout**, in pace and in tokens a chip."
    return (
        f"**From {short(fast.layout)} to {short(most.layout)}, pace is traded for throughput:** a user sees "
        f"{digits(fast.tokens_per_user or 0.0, 2)} to {digits(most.tokens_per_user or 0.0, 2)} tokens a second, a chip "
        f"gives {digits(fast.tokens_per_gpu or 0.0)} to {digits(most.tokens_per_gpu or 0.0)} at most. Hollow ones are "
        "beaten in both."
    )


def without_name(points: int) -> str:
    """Of those for whose name the chart has no room."""
    if not points:
        return ""
    return f"{points} {'stand' if points > 1 else 'stands'} too close to others for a name; the table has all."


def impossible(tried: Sequence[Layout], lost: Sequence[Layout] = ()) -> list[str]:
    """Layouts that can't be used, those with the same reason together; `lost`: those whose simulation broke off."""
    why: dict[str, list[str]] = {}
    for layout in lost:
        why.setdefault("the simulation broke off; change a setting to try again.", []).append(short(layout))
    for layout in tried:
        if layout.problem is not None:
            if layout.problem.reason == "is not available yet":
                reason = f"pipelines aren't simulated with {layout.problem.field} {layout.problem.value} yet."
            else:
                reason = f"{sentence(f'{layout.problem.value} {layout.problem.reason}'.strip())}"
            why.setdefault(reason, []).append(short(layout))
    return [f"**{', '.join(names)}:** {plain(reason)}" for reason, names in why.items()]


def outcomes_table(found: Sequence[LayoutOutcome]) -> pd.DataFrame:
    """All layouts that were simulated."""
    return pd.DataFrame(
        {
            "layout": [short(one.layout) for one in found],
            "tokens/s/user": [one.tokens_per_user for one in found],
            "tokens/s/GPU at most": [one.tokens_per_gpu for one in found],
            "can serve (requests/s)": [one.capacity_rps for one in found],
            "first word p95 (s)": [one.first_word_s for one in found],
            "in time (%)": [None if one.attainment is None else 100 * one.attainment for one in found],
            "KV of a copy (tokens)": [one.kv_capacity_tokens for one in found],
        }
    )


def sent_table(scenario: Scenario, devices: int) -> pd.DataFrame:
    """What each split divides, and what a chip sends for the scenario's mean prompt."""
    shape, tokens = resolve_model(scenario), _prompt(scenario)
    layers = shape.layers
    rows = (
        ("tensor (TP)", "weights, KV by heads", layers * megatron_bytes(shape, tokens, devices)),
        ("sharded activations (SP megatron)", "activations", layers * megatron_bytes(shape, tokens, devices)),
        ("context in a ring (CP)", "prompt, KV by tokens", layers * ring_attention_bytes(shape, tokens, devices)),
        ("context by heads (SP ulysses)", "prompt, KV by heads", layers * ulysses_bytes(shape, tokens, devices)),
        ("operators (SP operators)", "weights by operator", layers * stage_boundary_bytes(shape, tokens)),
        ("pipeline (PP)", "weights, KV by layers", stage_boundary_bytes(shape, tokens)),
        ("copies", "requests", 0.0),
    )
    return pd.DataFrame(
        {
            "split": [row[0] for row in rows],
            SENT: [round(row[2] / 1e6) for row in rows],
            "divides": [row[1] for row in rows],
        }
    )


def sent_sentence(scenario: Scenario, devices: int) -> str:
    """What the table is about."""
    return (
        f"Between {devices} chips, over all layers, for a prompt of {_prompt(scenario):,} tokens. Weights are divided "
        "by tensor and pipeline parallel only, and by operators."
    )


def _prompt(scenario: Scenario) -> int:
    lengths = typical_lengths(scenario)
    return _TOKENS if lengths is None else round(lengths[0])


def assumed(scenario: Scenario) -> list[str]:
    """What the comparison takes for granted."""
    lines = [
        "**Pace** is one over the median gap between tokens (TPOT), with the scenario's traffic dealt out to the "
        "copies of each layout; **tokens a chip** is what saturated copies write. At most two "
        "runs each, the same requests, no autoscaler.",
        "**A context split over chips** reads prompts in parallel and shares out KV; decoding is no faster.",
        "**A pipeline** is no faster for one request either: it gains by having a batch in every stage at a time. Its "
        "seats are shared out to them.",
    ]
    if resolve_model(scenario).moe is not None:
        lines.append(
            "**Experts** (EP) are spread over chips that each attend to their own requests (data-parallel attention). "
            "Over the chips of tensor parallel they are as fast as slices, so that isn't listed apart."
        )
    return lines
