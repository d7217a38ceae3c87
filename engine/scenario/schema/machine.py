"""What the requests run on: model, accelerator, how they are split, how long a step takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Tag

from engine.scenario.errors import Problem
from engine.scenario.fields import HOUR, Section, Table, kind_of, only_numbers, param, section, tag
from engine.scenario.schema.text import Text

_DTYPES = {
    "bf16": "16 bit",
    "fp16": "16 bit",
    "fp8": "8 bit, floating point",
    "int8": "8 bit, whole numbers",
    "fp4": "4 bit, floating point",
    "int4": "4 bit, whole numbers",
}
_KV_DTYPES = {name: _DTYPES[name] for name in ("bf16", "fp16", "fp8", "int8", "fp4")}


class Model(Section):
    """The language model that is served."""

    name: Text = param(
        "Llama-3.1-70B",
        label="Model",
        shortest=1,
        longest=120,
        flag="--model",
        help="A name from the catalogue of models; any name with custom columns.",
        why="a well-known open model that needs more than one accelerator",
    )
    weight_dtype: Literal["bf16", "fp16", "fp8", "int8", "fp4", "int4"] = param(
        "fp8",
        label="Weights",
        choices=_DTYPES,
        flag="--quantization",
        help="How a weight is stored: it decides memory, time to read it, and peak arithmetic.",
        why="usual in production on Hopper and later",
    )
    kv_dtype: Literal["bf16", "fp16", "fp8", "int8", "fp4"] = param(
        "fp8",
        label="KV cache",
        choices=_KV_DTYPES,
        flag="--kv-cache-dtype",
        help="How the memory of a conversation is stored: it decides how many fit.",
        why="goes with weights at 8 bit",
    )
    custom: Table | None = param(
        None,
        label="Your own model",
        null="from the catalogue",
        help="Columns of the model catalogue by name (layers, hidden, heads, ...), for a model that it lacks.",
        why="the catalogue knows the model",
    )


class Hardware(Section):
    """The accelerators, all of one kind."""

    accelerator: Text = param(
        "H100-SXM-80GB",
        label="Accelerator",
        shortest=1,
        longest=120,
        help="A name from the catalogue of accelerators; any name with custom columns.",
        why="the most common one in public measurements",
    )
    price_per_gpu_hour: float | None = param(
        None,
        label="Price",
        unit="USD per accelerator and hour",
        low=0.0,
        high=10_000.0,
        step=0.1,
        usual=(0.0, 20.0),
        null="the catalogue's price",
        help="What an hour of one accelerator costs you.",
        why="prices differ fourfold between providers: type yours",
    )
    custom: Table | None = param(
        None,
        label="Your own accelerator",
        null="from the catalogue",
        help="Columns of the accelerator catalogue by name (memory_gb, ...), for one that it lacks.",
        why="the catalogue knows the accelerator",
    )


def _ways(label: str, what: str, flag: str | None, default: int = 1, why: str = "not split this way") -> Any:
    return param(
        default, label=label, unit="ways", low=1, high=1024, step=1, usual=(1, 16), flag=flag, help=what, why=why
    )


class Parallelism(Section):
    """How one copy of the model is spread over accelerators."""

    tp: int = _ways(
        "Tensor parallel",
        "Accelerators that share every layer's matrices.",
        "--tensor-parallel-size",
        4,
        "room for weights and many conversations, all inside one machine",
    )
    pp: int = _ways(
        "Pipeline parallel",
        "Stages that hold successive layers, each a group of tp accelerators; batches follow one another through them.",
        "--pipeline-parallel-size",
    )
    cp: int = _ways("Context parallel", "Accelerators that share a long prompt.", "--prefill-context-parallel-size")
    sp: Literal["none", "megatron", "ulysses", "operators"] = param(
        "none",
        label="Sequence parallel",
        choices={
            "none": "off",
            "megatron": "norms and dropout split by token",
            "ulysses": "attention split by head, the rest by token",
            "operators": "attention and feed-forward parts on devices of their own",
        },
        help="Three different things carry this name.",
        why="off, as in most deployments",
    )
    ep: int = _ways(
        "Expert parallel",
        "Accelerators over which experts are spread: those of tp, or with tp 1 as many that each attend to their own "
        "requests (data-parallel attention).",
        "--enable-expert-parallel",
        why="a slice of every expert on each, as without the flag",
    )


def _scale(what: str) -> Any:
    return param(
        1.0,
        label=f"{what} correction",
        unit="times",
        low=0.01,
        high=100.0,
        step=0.01,
        usual=(0.5, 2.0),
        help="Measured over predicted, from one point of your own deployment.",
        why="no correction without a measurement",
    )


class Scale(Section):
    """One-point calibration."""

    tpot: float = _scale("Gap between words (TPOT)")
    prefill: float = _scale("Prompt reading")


class Analytic(Section):
    """Step times from the model's and accelerator's own figures, with constants fitted on public measurements."""

    kind: Literal["analytic"] = tag("analytic", "from the figures of model and accelerator")
    engine: Literal["vllm", "tensorrt_llm", "sglang"] = param(
        "vllm",
        label="Engine",
        choices={"vllm": "vLLM", "tensorrt_llm": "TensorRT-LLM", "sglang": "SGLang"},
        help="Whose overheads are assumed.",
        why="the most widely used",
    )
    scale: Scale = section(
        Scale(), label="Correction", help="Fits the model to one measurement of yours.", why="no correction"
    )
    overrides: Annotated[Table, AfterValidator(only_numbers)] = param(
        Table({}),
        label="Constants",
        help="Constants of the step-time model to replace, by name.",
        why="the fitted ones",
    )


def _seconds(label: str, per: str, help: str) -> Any:
    return param(
        0.0,
        label=label,
        unit=f"s per {per}",
        low=0.0,
        high=HOUR,
        log=True,
        help=help,
        why="0 unless measured",
    )


class Linear(Section):
    """Step times from a measured profile: overhead + max(weights, token * T) + seq * R + kv * C + pairs * A."""

    kind: Literal["linear"] = tag("linear", "from a measured profile")
    overhead_s: float = _seconds("Overhead", "step", "What every step takes, whatever it does.")
    weights_s: float = _seconds("Reading the weights", "step", "Shortest time of a step's matrix products.")
    token_s: float = _seconds("Computing a token", "token", "Matrix products, per token worked on.")
    seq_s: float = _seconds("Handling a request", "request and step", "Host's work, per request worked on.")
    kv_token_s: float = _seconds("Reading the context", "token of context", "Attention's reads, per token of context.")
    prefill_pair_s: float = _seconds("Attention in prompts", "pair of tokens", "Attention's arithmetic inside prompts.")

    def rules(self) -> Iterator[Problem]:
        if not self.overhead_s + max(self.weights_s, self.token_s) > 0.0:
            yield Problem(
                "",
                "",
                "overhead_s + max(weights_s, token_s) is 0: steps would take no time",
                "give at least one of the three a value above 0",
            )


Performance = Annotated[
    Annotated[Analytic, Tag("analytic")] | Annotated[Linear, Tag("linear")],
    Discriminator(kind_of("kind", "analytic")),
]
