"""Guards over the whole catalogue: nothing is faster than its hardware, and more work never takes less time.

The floors are computed here from shapes and peaks alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from engine.catalog import Accelerator, Model, accelerators, models
from engine.machine.constants import Constants, constants_for, engines
from engine.machine.deployment import Deployment
from engine.machine.memory import memory
from engine.machine.parallel import link, split_sizes
from engine.machine.steptime import Term, analytic_terms

BYTES = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5}  # at least: scales come on top
STEP_TOKENS = 2048
# Tokens, requests, context tokens, attention pairs: one, some, many decoding; a prompt; a chunk after others; mixed.
STEPS = [
    (1, 1, 1.0, 0.0),
    (32, 32, 32 * 2000.0, 0.0),
    (256, 256, 256 * 8000.0, 0.0),
    (2048, 1, 0.0, 2048 * 2049 / 2),
    (512, 1, 30_000.0, 512 * 30_000.0 + 512 * 513 / 2),
    (1024 + 128, 129, 128 * 1000.0, 1024 * 1025 / 2),
]

Case = tuple[Deployment, Constants, tuple[Term, ...]]


def smallest_split(m: Model, device: Accelerator, dtype: str, engine: str) -> tuple[Deployment, Constants] | None:
    """The deployment on the fewest devices that hold the model; None when none do."""
    for tp in split_sizes(m, device):
        d = Deployment(m, device, dtype, "fp8" if dtype != "bf16" else "bf16", tp, 0.92, 256, STEP_TOKENS, None)
        joined = link(device, tp) if tp > 1 else None
        c = constants_for(m, device, dtype, engine, joined is not None and joined.pcie)
        if memory(d, c).fits:
            return d, c
    return None


@cache
def cases(dtype: str, engine: str = "") -> list[Case]:
    """Every model on every accelerator that has an arithmetic rate and can hold it; engines in turn, or one of them."""
    found = []
    known = [device for device in accelerators().values() if device.fp16_tflops is not None]
    for index, m in enumerate(models().values()):
        for number, device in enumerate(known):
            held = smallest_split(m, device, dtype, engine or engines()[(index + number) % 3])
            if held is not None:
                found.append((*held, analytic_terms(*held)))
    return found


def seconds(terms: tuple[Term, ...], step: tuple[int, int, float, float]) -> float:
    return sum(term.seconds(*step) for term in terms)


def layer_weights(m: Model) -> float:
    """Weights that one token passes, without embedding and head, from the shapes."""
    if m.mla is None:
        attention = 2 * m.hidden * m.head_dim * (m.heads + m.kv_heads)
    else:
        ranks, value = m.mla.kv_lora_rank, m.mla.v_head_dim
        queries = (m.mla.q_lora_rank or 0) * (m.hidden + m.heads * m.head_dim)
        up = ranks * m.heads * (m.head_dim - m.mla.rope_dim + value)
        attention = queries + m.hidden * (ranks + m.mla.rope_dim) + up + m.heads * value * m.hidden
    if m.moe is None:
        return float(m.layers * (attention + m.mlp_matrices * m.hidden * m.intermediate))
    sparse = m.layers - m.moe.dense_layers
    experts = sparse * 3 * m.hidden * m.moe.intermediate * (m.moe.top_k + m.moe.shared_experts)
    dense = m.moe.dense_layers * m.mlp_matrices * m.hidden * m.intermediate
    return float(m.layers * attention + experts + dense)


def floors(d: Deployment, step: tuple[int, int, float, float]) -> tuple[float, float]:
    """Seconds that arithmetic alone and reads alone take at peak, every unit and byte of the group busy."""
    tokens, requests, context, pairs = step
    m, device = d.model, d.accelerator
    sixteen = device.peak_flops("bf16") or 0.0
    fastest = max(sixteen, device.peak_flops(d.weight_dtype) or 0.0)
    full = m.layers - m.sliding_layers
    value = m.head_dim if m.mla is None else m.mla.v_head_dim
    width = m.head_dim + value if m.mla is None else 2 * m.mla.kv_lora_rank + m.mla.rope_dim
    products = 2 * tokens * layer_weights(m) / fastest + 2 * requests * m.vocab * m.hidden / sixteen
    prompts = 2 * full * m.heads * (m.head_dim + value) * pairs / sixteen
    decode = 0.0 if pairs else 2 * full * m.heads * width * context / sixteen
    kv = full * (2 * m.kv_heads * m.head_dim if m.mla is None else m.mla.kv_lora_rank + m.mla.rope_dim)
    holders = 1 if m.mla is not None else min(d.tp, m.kv_heads)
    weights = BYTES[d.weight_dtype] * (layer_weights(m) + m.vocab * m.hidden) / d.tp
    kv_bytes = BYTES[d.kv_dtype] * kv * context / holders
    return (products + prompts + decode) / d.tp, (weights + kv_bytes) / device.bandwidth_bytes_per_s


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp4"])
def test_no_step_is_faster_than_the_hardware(dtype: str) -> None:
    assert len(cases(dtype)) > 1000
    for d, _, terms in cases(dtype):
        for step in STEPS:
            arithmetic, reads = floors(d, step)
            assert seconds(terms, step) >= max(arithmetic, reads), (d.model.name, d.accelerator.name, step)


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp4"])
def test_more_work_never_takes_less_time(dtype: str) -> None:
    for d, _, terms in cases(dtype):
        for term in terms:
            where = (d.model.name, d.accelerator.name, term.name)
            assert term.base.shape == (STEP_TOKENS + 1,), where
            assert np.all(np.isfinite(term.base)), where
            assert term.base[0] >= 0, where
            assert min(term.seq_s, term.kv_token_s, term.pair_s) >= 0, where
        # Arithmetic and reads overlap: their sum grows, the share of either may not.
        assert np.all(np.diff(np.sum([term.base for term in terms], axis=0)) >= 0), where
        assert all(seconds(terms, (tokens, 1, 0.0, 0.0)) > 0 for tokens in (1, 100)), d.model.name


def neighbours() -> Iterator[tuple[Deployment, Deployment]]:
    """Each bf16 case on one device, and the same on two, four and eight where a link joins them."""
    for d, _, _ in cases("bf16", "vllm"):
        for tp in split_sizes(d.model, d.accelerator):
            if d.tp == 1 < tp <= 8:
                yield d, replace(d, tp=tp)


def test_n_devices_are_at_most_n_times_as_fast(constants_of: Callable[..., Constants]) -> None:
    pairs = list(neighbours())
    assert len(pairs) > 1000
    for one, many in pairs:
        alone, split = (analytic_terms(d, constants_of(d)) for d in (one, many))
        for step in STEPS:
            assert seconds(split, step) * many.tp >= seconds(alone, step) * (1 - 1e-12)


def test_fewer_bits_never_make_a_lone_request_slower(constants_of: Callable[..., Constants]) -> None:
    for d, _, terms in cases("bf16", "vllm"):
        previous = seconds(terms, (1, 1, 1000.0, 0.0))
        for dtype in ("fp8", "fp4"):
            narrow = replace(d, weight_dtype=dtype)
            now = seconds(analytic_terms(narrow, constants_of(narrow)), (1, 1, 1000.0, 0.0))
            assert now <= previous, (d.model.name, d.accelerator.name, dtype)
            previous = now
