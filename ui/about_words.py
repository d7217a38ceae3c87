"""The About page's texts and tables. No Streamlit here."""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from engine.machine import Constants, Memory, Off, Worked, constants, deployment, largest_step, published
from engine.scenario import Analytic, Scenario
from engine.study import RecordedRun
from ui.about_charts import SIDES
from ui.words import NBSP, count, digits, percent, seconds

NOT_MODELLED = (
    "**The network** between caller and server; **failures** of machines, and slow ones among good ones.",
    "**What answers are worth**: a model that fits and is fast may still be the wrong one.",
    "**Speculative decoding, LoRA adapters, pictures and sound**, and answers that call tools in the middle.",
    "**Other work on the same devices**, throttling by heat or power, cold caches after a start.",
    "**Text**: a prompt is its number of tokens. Shared beginnings count only where the scenario states them.",
    "**Kernels one by one**: a step is a sum of smooth terms; real engines pad batches and switch kernels in jumps.",
)
PROBABLY = (
    "A verdict says **probably** when it would turn if every step took longer or shorter by the median error of the "
    "class on the screen. It isn't simulated again for that: each request's time in the queue changes with the backlog "
    "that the run's own arrivals leave to a faster or slower fleet, the rest of its time in proportion. Where refusals "
    "bound the queue, or the next request waits for the last answer, all of it changes in proportion, and the share "
    "that is served with the capacity."
)
GLOSSARY = (
    ("First word (TTFT)", "From sending the request to the first token of the answer: queue, prompt, front end."),
    ("Gap between words (ITL)", "Time between two successive tokens of one answer; a stall is a long one."),
    ("Average gap (TPOT)", "Time from the first token to the last over the tokens after the first; decoding only."),
    ("Last word (E2E)", "From sending the request to the last token of the answer."),
    ("Queue time", "From arrival until the first step that works on the request."),
    ("Goodput", "Requests completed a second that kept every promise."),
    ("KV cache", "What attention keeps of every token of a conversation, in device memory; it grows with each token."),
    ("Seats", "Concurrent sequences: conversations that are worked on at once. KV memory or `max_num_seqs` caps them."),
    ("Prefill, decode", "Reading a prompt, many tokens a step; writing an answer, one token a step and conversation."),
    ("Chunked prefill", "Long prompts are read in pieces, beside answers being written, so that these don't stall."),
    ("Token budget", "The most tokens that a step may work on (`max_num_batched_tokens`)."),
    ("Preemption", "A conversation gives up its KV when memory runs full, and starts its reading again later."),
    ("Promise (SLO)", "A time that a share of requests must keep: first word within 2 s for 95 %."),
    ("Attainment", "The share of requests that kept the promise; what is missing to 100 % burns the error budget."),
    ("Replica", "One copy of the model on its devices. Tensor parallel: every matrix is split over these."),
    ("Capacity", "Requests a second that a replica completes when it always has a queue, for this mix of lengths."),
    ("Burstiness (CV)", "How uneven gaps between arrivals are: 0 is clockwork, 1 Poisson, more comes in clumps."),
)
LATENCIES = (
    ("TTFT", "first token − arrival + front end"),
    ("ITL", "one token − the token before"),
    ("TPOT", "(last token − first token) / (answer tokens − 1)"),
    ("E2E", "last token − arrival + front end"),
    ("Queue time", "first step that worked on it − arrival"),
)
_PARTS = {
    "compute": ("Matrix products", "2 × active weights × T / (devices × peak × share reached)"),
    "attention": ("Attention in prompts", "2 × heads × (key + value width) × layers × A / (devices × peak × share)"),
    "weights": ("Reading the weights", "bytes of weights / (devices × bandwidth × share), once for everybody"),
    "kv": ("Reading the context", "KV bytes a token × C / (devices × bandwidth × share)"),
    "communication": ("Between devices", "all-reduces × (latency + activations × T / link rate)"),
    "overhead": ("Host", "a step's own + layers × a layer's + R × a conversation's"),
}


def step_table(worked: Worked) -> pd.DataFrame:
    """The parts of both steps in milliseconds, with the formula of each."""
    rows = [
        (name, formula, _ms(worked.writing.parts[part]), _ms(worked.reading.parts[part]))
        for part, (name, formula) in _PARTS.items()
        if part in worked.writing.parts
    ]
    rows.append(("A step", "the sum", _ms(worked.writing.seconds), _ms(worked.reading.seconds)))
    return pd.DataFrame(rows, columns=["part", "how", "writing, ms", "writing and reading, ms"])


def steps_sentence(worked: Worked) -> str:
    """What the two steps are."""
    w, r = worked.writing, worked.reading
    read = r.tokens - w.tokens
    rate = w.requests / w.seconds
    return (
        f"With all {count(worked.seats, 'seat')} taken (capped by {worked.capped_by}) and "
        f"{worked.context_tokens:,.0f} tokens of context each, a step that writes a word for everybody takes "
        f"**{seconds(w.seconds)}**: {digits(rate, 2)} tokens a second. A step that also reads {read:,} tokens of a "
        f"prompt takes **{seconds(r.seconds)}**: that is how long everybody else's next word has to wait."
    )


def memory_table(m: Memory) -> pd.DataFrame:
    """What one device holds, GB."""
    rows = (
        ("Device", m.device),
        ("Usable (gpu_memory_utilization)", m.usable),
        ("Weights", m.weights),
        ("Activations of the largest step", m.activations),
        ("Runtime and communication", m.runtime),
        ("Left for KV", m.kv),
    )
    return pd.DataFrame([(name, round(size / 1e9, 2)) for name, size in rows], columns=["on one device", "GB"])


def memory_sentence(m: Memory) -> str:
    """How many tokens of context fit."""
    return (
        f"A token of context takes {m.kv_per_token / 1e3:,.1f}{NBSP}kB of KV on each device, "
        f"2 × layers × KV heads × head width × bytes (less with latent attention or sliding windows); "
        f"{m.kv / 1e9:,.1f}{NBSP}GB are left for it: **{m.kv_capacity_tokens:,} tokens** a replica."
    )


def constants_table(scenario: Scenario) -> pd.DataFrame:
    """Every constant of the scenario's deployment: value, whether it is the scenario's own, meaning."""
    own = scenario.performance.overrides if isinstance(scenario.performance, Analytic) else {}
    found = constants(scenario, deployment(scenario, largest_step(scenario.batching)))
    rows = [
        (one.name, digits(getattr(found, one.name), 4), "yours" if one.name in own else _source(one.name),
         one.metadata["text"])
        for one in fields(Constants)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["constant", "value", "from", "what it is"])


_MEMORY = {"logits_bytes", "driver_share", "runtime_gib", "comm_gib"}
_LINKS = {"eta_link", "alpha_s"}
_HOST = {"ov_s", "layer_s", "moe_s", "seq_s", "frontend_s"}


def _source(name: str) -> str:
    if name in _MEMORY:
        return "start-up logs of vLLM"
    if name in _LINKS:
        return "fit, by kind of link"
    if name in _HOST:
        return "fit, by engine and model class"
    return "fit, by accelerator family" if name.startswith("eta_") and name != "eta_mla" else "fit, for all alike"


def scatter_sentence(off: Off | None, median: float) -> str:
    """What to read in the scatter."""
    if off is None:
        return "**No published measurement of this choice.** Take away a filter."
    lean = (
        "neither high nor low"
        if abs(off.signed) < 0.5
        else f"{'high' if off.signed > 0 else 'low'} by " + _pc(abs(off.signed))
    )
    return (
        f"**Half of the predictions are within {_pc(off.median)} of what was measured, nine in ten within "
        f"{_pc(off.p90)}.** In the middle they are {lean}. The band is ±{_pc(median * 100)}, the median error of the "
        "deployment on your screen."
    )


def classes_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Errors on what was left out of the fit, by class of measurement; in percent."""
    return pd.DataFrame(
        {
            "class": row["class"],
            "median": row.get("median_ape"),
            "95 % interval": " to ".join(f"{end:g}" for end in row.get("ci95", ())),
            "90th percentile": row.get("p90_ape"),
            "signed": row.get("signed_median"),
            "points": row.get("n"),
            "deployments": row.get("deployments"),
            "at most": " / ".join(f"{end:g}" for end in row.get("must", ())),
            "goal": " / ".join(f"{end:g}" for end in row.get("goal", ())),
        }
        for row in rows
    )


def run_sentence(run: RecordedRun) -> str:
    """What to read in a recorded run's curves."""
    end = run.figures["makespan"]
    fitted, predicted = (end[side] / end["recorded"] - 1 for side in ("fitted", "predicted"))  # type: ignore[index]
    return (
        (
            f"**The real server was done after {seconds(end['recorded'], 3)}.** With step times fitted to it: "
            f"{fitted:+.1%}; with nothing fitted, from the figures of model and hardware: {predicted:+.0%}."
        )
        .replace("%", f"{NBSP}%")
        .replace("-", "−")
    )


def run_table(run: RecordedRun) -> pd.DataFrame:
    """Figures of the three sides."""
    rows = [
        {
            "seconds": name,
            "real": found["recorded"],
            **{SIDES[side]: f"{found[side]:.1f} ({found[side] / found['recorded'] - 1:+.1%})" for side in SIDES
               if side != "recorded"},
        }
        for name, found in run.figures.items()
    ]  # type: ignore[misc]  # fmt: skip
    return pd.DataFrame(rows)


def sources_sentence() -> str:
    """How many measurements there are, and whose."""
    points = published()
    known = sum(p.known for p in points)
    deployments, sources = len({p.deployment for p in points}), len({p.source for p in points})
    left = len(points) - known
    alone = f" {left:,} of them aren't shown: nothing else of their family or engine was left to learn from."
    return (
        f"{len(points):,} published measurements of {deployments:,} deployments from {sources} sources. Each was "
        "predicted by constants that were fitted without its whole block (source, accelerator, model, engine)."
        + (alone if left else "")
    )


def versions() -> list[tuple[str, str]]:
    """What this runs on."""
    project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    return [
        ("Headroom", project["project"]["version"]),
        ("scenario schema", str(Scenario().to_dict()["schema"])),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("Streamlit", version("streamlit")),
        ("Plotly", version("plotly")),
    ]


def _ms(value: float) -> str:
    return digits(value * 1e3) if value else "0"


def _pc(value: float) -> str:
    return percent(value / 100, 2) if value < 1 else f"{value:.0f}{NBSP}%"
