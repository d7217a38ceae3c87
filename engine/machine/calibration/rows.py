"""From a published row to what the model has to predict, or why the row is left out.

Nothing here looks at a prediction: what is left out is decided by what the row says (and, in `judged`, by physics).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from engine.catalog import Accelerator, Model
from engine.machine.calibration.names import (
    find_accelerator,
    find_engine,
    find_kv_dtype,
    find_model,
    find_weight_dtype,
)
from engine.machine.calibration.table import Row
from engine.machine.constants import Place, place_of
from engine.machine.deployment import Deployment
from engine.machine.parallel import link, tensor_problems

Metric = Literal["tpot", "output_tok_s", "ttft_low_load", "batch_latency"]
METRICS: tuple[Metric, ...] = ("tpot", "output_tok_s", "ttft_low_load", "batch_latency")
Load = Literal["closed_loop", "static_batch", "offline_max"]

LOW_LOAD = 4
"""Requests at once up to which a first token waits for its own prompt rather than for others."""
INFERENCEMAX_SHARE = 0.9
"""InferenceMAX draws lengths evenly from 0.8 to 1 of the nominal ones."""
BUDGET = 8192
"""Tokens a step, where a row doesn't say: what vLLM, TensorRT-LLM and SGLang take on large accelerators."""
UTILIZATION = 0.92
WIDEST = 16
"""Devices over which one copy of a model is split at most, but for expert parallelism."""
MOST_SEQS = {"vllm": 256, "vllm_2024": 256, "vllm_2024_rocm": 256, "vllm_0_7": 256, "vllm_2023": 256, "sglang": 1024}
MOST_SEQS_OTHERWISE = 2048
"""Requests at once that an engine takes by default; TensorRT-LLM's benchmarks are built for 2,048."""

# What each metric of the table becomes: our metric, and how the value gets its unit (seconds, or tokens a second).
_TPOT = {"tpot_ms_mean", "tpot_ms_p50", "tpot_ms_unspec", "tpot_ms_static", "itl_ms_mean", "itl_ms_p50"}
_TTFT = {"ttft_ms_mean", "ttft_ms_p50", "ttft_ms_unspec", "ttft_ms_static"}
_RATES = {"output_tok_s_total", "output_tok_s_per_gpu", "total_tok_s", "total_tok_s_per_gpu", "req_s"}
_LATENCIES = {"batch_latency_s", "total_tok_s"}  # of a static batch, its rate over all tokens is its latency
_BATCH_ONE = {"decode_tok_s_bs1"}
_LOADS: dict[str, Load] = {
    "closed_loop": "closed_loop",
    "static_batch": "static_batch",
    "offline_max": "offline_max",
}


class LeftOut(Exception):
    """A row that isn't predicted; the message is the reason, the same for all rows of a kind."""


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement to predict. `value` in seconds, or output tokens a second of the whole group.

    `prompt`, `output`: mean tokens of a request. `seqs`: requests at once (offline: at most). `engine`: our name of the
    host constants. `waves`: the closed loop's requests are in step with each other: an engine that reads prompts first
    gets all of them at once again when all answers are of one length, and has them end together.
    """

    line: int
    source: str
    metric: Metric
    load: Load
    model: Model
    accelerator: Accelerator
    engine: str
    published_engine: str
    deployment: Deployment
    prompt: float
    output: float
    seqs: float
    value: float
    waves: bool

    @property
    def dense(self) -> bool:
        """Whether the model has no experts."""
        return self.model.moe is None

    @property
    def deployment_key(self) -> tuple[str, str, str, str, int]:
        """Source, model, accelerator, engine, devices: what has equal weight."""
        return (self.source, self.model.name, self.accelerator.name, self.published_engine, self.deployment.tp)

    @property
    def block(self) -> tuple[str, str, str, str]:
        """Source, accelerator, model, engine: what is held out together."""
        return (self.source, self.accelerator.name, self.model.name, self.published_engine)

    @property
    def configuration(self) -> tuple[object, ...]:
        """All that a prediction depends on, but for the metric."""
        d = self.deployment
        formats = (d.weight_dtype, d.kv_dtype, d.ep, d.attention_dp)
        return (*self.deployment_key, self.engine, *formats, self.load, self.prompt, self.output, self.seqs)


def place_of_point(point: Point) -> Place:
    """Where a point's constants stand."""
    d = point.deployment
    joined = link(d.accelerator, d.tp) if d.tp > 1 else None
    return place_of(d.model, d.accelerator, d.weight_dtype, point.engine, joined is not None and joined.pcie)


def kv_reads(point: Point) -> float:
    """How often KV is read: vLLM's first attention kernel for AMD read it again for every query head that shares it."""
    m = point.model
    return m.heads / m.kv_heads if point.engine == "vllm_2024_rocm" else 1.0


def metric_of(row: Row) -> Metric:
    """What a row measures, in our terms. Raises LeftOut where the mapping has no place for metric and load."""
    if row.source_group.lower().startswith("mlperf") or row.load_kind == "server_sla":
        raise LeftOut("MLPerf: no tp, batch or input length")
    if row.load_kind == "open_loop_rate":
        raise LeftOut("open-loop or finite burst: needs the event engine")
    if row.load_kind not in _LOADS:
        raise LeftOut("load kind without a mapping")
    if row.load_kind == "offline_max" and "handed over at once" in row.notes:
        raise LeftOut("open-loop or finite burst: needs the event engine")
    if "_p9" in row.metric:
        raise LeftOut("tail percentile: needs the event engine")
    offline = row.load_kind == "offline_max"
    if row.metric in _LATENCIES and row.load_kind == "static_batch":
        return "batch_latency"
    if row.metric in _RATES:
        return "output_tok_s"
    if row.metric in _BATCH_ONE or (row.metric in _TPOT and not offline):
        return "tpot"
    if row.metric in _TTFT:
        together = row.concurrency if row.load_kind == "closed_loop" else row.batch
        if offline or together is None or together > LOW_LOAD:
            raise LeftOut(f"TTFT above {LOW_LOAD} requests at once: queueing, needs the event engine")
        return "ttft_low_load"
    raise LeftOut("metric without a mapping")


def point_of(row: Row) -> Point:
    """The point of a row. Raises LeftOut with the reason."""
    metric = metric_of(row)
    found, device = find_model(row.model), find_accelerator(row.gpu)
    if device is None:
        raise LeftOut("accelerator not in the catalogue")
    if found is None:
        raise LeftOut("model not in the catalogue")
    if (row.pp or 1) > 1:
        raise LeftOut("pipeline parallel: not part of the fit")
    if row.value is None or row.value <= 0:
        raise LeftOut("no value above 0")
    prompt, output = _lengths(row, metric)
    engine = find_engine(row.engine, row.engine_version, row.date, device)
    load: Load = "static_batch" if '"static"' in row.notes else _LOADS[row.load_kind]
    seqs = _together(row, engine)
    d = _deployment(row, found, device, prompt, output, seqs)
    if d.attention_dp and load == "offline_max":  # the limit is each rank's
        seqs *= d.tp
    value = _value(row, metric, d.tp, prompt, output, seqs)
    return Point(
        line=row.line,
        source=row.source_group,
        metric=metric,
        load=load,
        model=found,
        accelerator=device,
        engine=engine,
        published_engine=row.engine,
        deployment=d,
        prompt=prompt,
        output=output,
        seqs=seqs,
        value=value,
        waves=engine == "sglang" and not _varied(row),
    )


def _lengths(row: Row, metric: Metric) -> tuple[float, float]:
    """Mean prompt and answer, tokens."""
    prompt, output = row.input_len, row.output_len
    if row.metric in _BATCH_ONE:  # decoding from next to nothing
        prompt = 1.0 if prompt is None else prompt
    if metric == "ttft_low_load" and output is None:
        output = 1.0
    if prompt is None or output is None or prompt < 1 or output < 1:
        raise LeftOut("no prompt or answer length")
    share = INFERENCEMAX_SHARE if _varied(row) else 1.0
    return max(1.0, prompt * share), max(1.0, output * share)


def _varied(row: Row) -> bool:
    """Whether lengths are drawn, not all the same."""
    return "inferencemax" in row.source_group.lower()


def _together(row: Row, engine: str) -> float:
    """Requests at once; offline: at most."""
    if row.load_kind == "offline_max":
        return float(MOST_SEQS.get(engine, MOST_SEQS_OTHERWISE))
    stated = row.concurrency if row.load_kind == "closed_loop" else row.batch
    if stated is None and row.metric in _BATCH_ONE:
        stated = 1.0
    if stated is None or stated < 1:
        raise LeftOut("no batch or concurrency")
    return float(stated)


def _group(row: Row) -> int:
    """Devices over which the model is spread: tp, or the group of the experts where attention is data-parallel."""
    pipelined = max(row.pp or 1.0, 1.0)
    devices = row.tp if row.tp is not None else None if row.n_gpus is None else row.n_gpus / pipelined
    if devices is None:
        raise LeftOut("no number of devices")
    widest = max(devices, row.ep or 1.0) if row.n_gpus is None else max(devices, min(row.ep or 1.0, row.n_gpus))
    if widest < 1 or widest != int(widest):
        raise LeftOut("number of devices isn't a whole number")
    return int(widest)


def _deployment(row: Row, m: Model, device: Accelerator, prompt: float, output: float, seqs: float) -> Deployment:
    weight_dtype = find_weight_dtype(row.dtype_weights, m)
    if weight_dtype is None:
        raise LeftOut("format of the weights isn't known")
    if device.fp16_tflops is None:
        raise LeftOut("accelerator without an arithmetic rate")
    tp = _group(row)
    # TensorRT-LLM's older tables say of all their MoE rows how they were run; their newer ones, of each.
    separate = tp > 1 and ((row.dp_attention or 0) > 1 or (m.moe is not None and "enables attention DP" in row.notes))
    problems = tensor_problems(m, device, tp)
    if problems and not (separate and tp <= (device.scale_up_domain or 1)):
        raise LeftOut("model can't be split over so many devices")
    if tp > WIDEST and (row.ep or 1) <= 1:
        raise LeftOut("disaggregated: prefill and decode workers counted together")
    stated = re.search(r"max-num-batched-tokens (\d+)", row.notes)
    return Deployment(
        model=m,
        accelerator=device,
        weight_dtype=weight_dtype,
        kv_dtype=find_kv_dtype(row.dtype_kv, weight_dtype),
        tp=tp,
        gpu_memory_utilization=UTILIZATION,
        max_num_seqs=max(1, int(seqs)),
        step_tokens=(int(stated[1]) if stated else BUDGET) * (tp if separate else 1),
        context_tokens=prompt + output / 2,
        ep=int(row.ep or 1) if m.moe else 1,
        attention_dp=separate,
    )


def _value(row: Row, metric: Metric, tp: int, prompt: float, output: float, seqs: float) -> float:
    """The value in seconds or in output tokens a second of the whole group."""
    value = row.value or 0.0
    if row.metric in _BATCH_ONE:
        return 1.0 / value
    if metric in ("tpot", "ttft_low_load"):
        return value / 1000.0
    if metric == "batch_latency":
        return value if row.metric == "batch_latency_s" else seqs * (prompt + output) / value
    if row.metric.endswith("_per_gpu"):
        value *= tp
    if row.metric == "req_s":
        return value * output
    return value * output / (prompt + output) if row.metric.startswith("total_tok_s") else value
