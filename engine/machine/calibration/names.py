"""What published tables call models, accelerators, engines and number formats, and what we call them.

The one place where names are matched. A name that isn't known is None: the row is left out and counted, not guessed.
Whatever precedes a model's slash (its publisher) is ignored.
"""

from __future__ import annotations

import re
from functools import cache

from engine.catalog import Accelerator, Model, accelerators, is_sixteen_bit, models

_MODEL_ALIASES = {
    # Releases with the shapes of one that the catalogue has.
    "deepseekr10528": "DeepSeek-R1",
    "deepseekv30324": "DeepSeek-V3",
    "deepseekv31": "DeepSeek-V3",
    "qwen205b": "Qwen2.5-0.5B",
    "kimik20905": "Kimi-K2",
    "kimik2thinking": "Kimi-K2",
    "qwen330ba3b2507": "Qwen3-30B-A3B",
    "qwen3235ba22b2507": "Qwen3-235B-A22B",
    "qwen3235ba22bthinking2507": "Qwen3-235B-A22B",
    "mistral7bv01": "Mistral-7B",
    "mistral7bv02": "Mistral-7B-v0.3",
    "llama3370b": "Llama-3.3-70B",
    "metallama38b": "Llama-3-8B",
    "metallama370b": "Llama-3-70B",
    "metallama318b": "Llama-3.1-8B",
    "metallama3170b": "Llama-3.1-70B",
    "metallama31405b": "Llama-3.1-405B",
    "commandr": "Command-R+ (104B)",
    "commandrplus": "Command-R+ (104B)",
    "llama4scout": "Llama-4-Scout-17B-16E",
    "llama4maverick": "Llama-4-Maverick-17B-128E",
}
_MODEL_ENDINGS = ("instruct", "chat", "it", "hf", "base", "fp8", "fp4", "nvfp4", "awq", "gptq", "int4", "int8", "bf16")
_ACCELERATOR_ALIASES = {
    # Argonne's A100 are Polaris' (four of 40 GB a node): Chitty-Venkata et al., arXiv:2411.00136, table 1.
    "a10040or80gbnotstatedperrow": "A100-SXM4-40GB",
    "a100": "A100-SXM4-80GB",
    "a10080gb": "A100-SXM4-80GB",
    "a10040gb": "A100-SXM4-40GB",
    "a100sxm480gb": "A100-SXM4-80GB",
    "a800": "A800-SXM4-80GB",
    "h100": "H100-SXM-80GB",
    "h100sxm": "H100-SXM-80GB",
    "h100pcie": "H100-PCIe-80GB",
    "h100nvl": "H100-NVL-94GB",
    "h200": "H200-SXM-141GB",
    "h200sxm": "H200-SXM-141GB",
    "h20": "H20-96GB",
    "b200": "B200-SXM-180GB",
    "b200sxm": "B200-SXM-180GB",
    "b300": "B300-SXM-270GB",
    "a6000": "RTX A6000",
    "4090": "RTX 4090",
    "3090": "RTX 3090",
    "5090": "RTX 5090",
    "rtxpro6000": "RTX PRO 6000 Blackwell",
    "a10": "A10G",
}
_ENGINES = (
    # First match wins. What a harness or a prototype adds to a name tells engines of an older generation apart.
    (r"splitwise", "vllm_2023"),
    (r"deepspeed|optimum|habana", "deepspeed_gaudi"),
    (r"lmdeploy|turbomind", "lmdeploy"),
    (r"llama\.?cpp|ollama|gguf", "llama_cpp"),
    (r"tensorrt|trt-?llm", "tensorrt_llm"),
    (r"sglang", "sglang"),
    (r"vllm", "vllm"),
)
OTHER_ENGINE = "vllm"
"""An engine that we have no constants of its own for is taken to behave as the most widely used one does."""


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


@cache
def _plain_models() -> dict[str, Model]:
    known = {_plain(name): one for name, one in models().items()}
    return known | {alias: models()[name] for alias, name in _MODEL_ALIASES.items()}


@cache
def _plain_accelerators() -> dict[str, Accelerator]:
    known = {_plain(name): one for name, one in accelerators().items()}
    return known | {alias: accelerators()[name] for alias, name in _ACCELERATOR_ALIASES.items()}


def find_model(name: str) -> Model | None:
    """The catalogue's model of a published name; None when there is none."""
    plain, known = _plain(name.rsplit("/", maxsplit=1)[-1]), _plain_models()
    while plain not in known:
        ending = next((one for one in _MODEL_ENDINGS if plain.endswith(one) and plain != one), None)
        if ending is None:
            return None
        plain = plain.removesuffix(ending)
    return known[plain]


def find_accelerator(name: str) -> Accelerator | None:
    """The catalogue's accelerator of a published name; None when there is none."""
    plain = _plain(name)
    known = _plain_accelerators()
    return known.get(plain) or known.get(plain.removeprefix("nvidia").removeprefix("amd").removeprefix("intel"))


def find_engine(name: str, version: str, date: str, device: Accelerator) -> str:
    """The set of host constants that fits an engine's name, version and date; never None.

    vLLM before 0.8 (its first scheduler), TensorRT-LLM before 0.17 and what isn't dated later than 2024 are older
    generations, with constants of their own; so is the first vLLM on AMD's.
    """
    text = name.lower()
    found = next((engine for pattern, engine in _ENGINES if re.search(pattern, text)), OTHER_ENGINE)
    number = re.match(r"\D*(\d+)\.(\d+)", version)
    release = (int(number[1]), int(number[2])) if number else None
    years = [int(year) for year in re.findall(r"\b20[12]\d\b", date)]
    dated = bool(years) and min(years) <= 2024
    if found == "vllm":
        old = "vllm_2024_rocm" if device.vendor == "AMD" else "vllm_2024"
        if release is not None and (0, 7) <= release < (0, 8):
            return "vllm_0_7"
        return old if (release < (0, 7) if release else dated) else found
    if found == "tensorrt_llm":
        return "tensorrt_llm_2024" if (release < (0, 17) if release else dated) else found
    return found


_WEIGHTS = (
    (r"q4|w4a16|int4|uint4|awq|gptq", "int4"),
    (r"mxfp4|nvfp4|fp4|w4a4", "fp4"),
    (r"fp8|w8a8-fp|e4m3", "fp8"),
    (r"int8|w8a8|q8|w8a16", "int8"),
    (r"fp16|float16|half", "fp16"),
    (r"bf16|bfloat16|auto|not stated|unknown", "bf16"),
)


def find_weight_dtype(text: str, model: Model) -> str | None:
    """Our name for the format of the weights; None when the text names none that we know.

    "mixed" and blank are the model's own format. Models published in MXFP4 are served in it whatever a table says of
    the arithmetic.
    """
    if model.native_dtype.startswith("mxfp4"):
        return "fp4"
    plain = text.strip().lower()
    if plain in ("", "nan", "none", "mixed", "native"):
        return "fp8" if model.native_dtype.startswith("fp8") else "bf16"
    return next((dtype for pattern, dtype in _WEIGHTS if re.search(pattern, plain)), None)


def find_kv_dtype(text: str, weight_dtype: str) -> str:
    """The format of KV: 8 bit only where it is stated, else 16."""
    plain = text.lower()
    if re.search(r"fp8|e4m3|e5m2", plain):
        return "fp8"
    return "int8" if "int8" in plain else weight_dtype if is_sixteen_bit(weight_dtype) else "bf16"
