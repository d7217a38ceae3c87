"""Each part of the step time against a hand calculation, with constants that don't change when they are fitted anew."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from engine.catalog import models, weight_bytes
from engine.machine.constants import Constants, constants_for
from engine.machine.deployment import Deployment
from engine.machine.parallel import link
from engine.machine.steptime import Term, analytic_terms, peak, step_parts, weights_read
from engine.scenario import Scale

Deploy = Callable[..., Deployment]
ConstantsOf = Callable[..., Constants]


PCIE = {"alpha_s": 51e-6, "eta_link": 0.48}
HOST = {"ov_s": 1.5e-3, "layer_s": 25e-6, "moe_s": 6e-6, "seq_s": 6.7e-6, "frontend_s": 0.024, "launch_s": 0.0}
ENGINE = HOST | {"arithmetic": 1.0, "reads": 1.0, "kv": 1.0}
FAMILY = {"eta_kv": 0.94, "eta_a": 0.64, "moe": 1.0}
TABLE = {
    "shared": {
        "eta_mla": 0.37,
        "overlap": 1.0,
        "moe_touched": 0.86,
        "moe_compute": 1.5,
        "weight_only_compute": 1.0,
        "block_fp8_compute": 0.54,
        "block_fp8_reads": 0.8,
        "logits_bytes": 32.0,
        "driver_share": 0.01,
        "runtime_gib": 0.35,
        "comm_gib": 0.25,
    },
    "links": {
        "scale_up": {"alpha_s": 4.7e-6, "eta_link": 0.48},
        "pcie_direct": PCIE,
        "pcie_nccl": PCIE,
        "pcie_host": PCIE,
    },
    "families": {
        "hopper": FAMILY | {"eta_c": {"16": 0.69, "8": 0.60, "4": 0.60}, "eta_m": {"16": 0.84, "8": 0.74, "4": 0.56}},
        "ampere": FAMILY | {"eta_c": {"16": 0.70, "8": 0.61, "4": 0.61}, "eta_m": {"16": 0.76, "8": 0.68, "4": 0.51}},
        "ada": FAMILY | {"eta_c": {"16": 0.59, "8": 0.51, "4": 0.51}, "eta_m": {"16": 0.89, "8": 0.79, "4": 0.59}},
    },
    "devices": {},
    "engines": {"vllm": {"dense": ENGINE | {"moe_s": 0.0}, "moe": ENGINE, "mla": ENGINE}},
}


@pytest.fixture
def constants_of() -> ConstantsOf:
    """constants_of(deployment): of the table above."""

    def build(d: Deployment) -> Constants:
        joined = link(d.accelerator, d.tp) if d.tp > 1 else None
        pcie = joined is not None and joined.pcie
        return constants_for(d.model, d.accelerator, d.weight_dtype, "vllm", pcie, TABLE)

    return build


def parts_of(d: Deployment, c: Constants, *step: float, scale: Scale | None = None) -> dict[str, float]:
    tokens, requests, context, pairs = step
    return step_parts(analytic_terms(d, c, scale), int(tokens), int(requests), context, pairs)


def by_name(terms: tuple[Term, ...]) -> dict[str, Term]:
    return {term.name: term for term in terms}


LAYERS_8B = 32 * (41_943_040 + 176_160_768)  # weights of Llama-3.1-8B's layers
HEAD_8B = 128_256 * 4096
NORMS_8B = 65 * 4096


def test_a_decode_step_of_a_dense_model_on_one_device(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Llama-3.1-8B", "H100-SXM-80GB")
    parts = parts_of(d, constants_of(d), 64, 64, 64_000, 0)
    assert parts == pytest.approx(
        {
            "compute": 64 * 2 * (LAYERS_8B + HEAD_8B) / (989e12 * 0.69),
            "attention": 0.0,
            "weights": 2 * (LAYERS_8B + HEAD_8B + NORMS_8B) / (3350e9 * 0.84),
            "kv": 64_000 * 131_072 / (3350e9 * 0.94),
            "communication": 0.0,
            "overhead": 1.5e-3 + 32 * 25e-6 + 64 * 6.7e-6,
        },
        rel=1e-9,
    )


def test_a_mixed_step_split_over_eight_devices(deploy: Deploy, constants_of: ConstantsOf) -> None:
    # Llama-3.1-70B at fp8: 80 layers of 8192 x (2 x 8192 + 2 x 1024) and 3 x 8192 x 28672; head at 16 bits.
    d = deploy("Llama-3.1-70B", "H100-SXM-80GB", tp=8, weight_dtype="fp8", kv_dtype="fp8")
    layers, head = 80 * (8192 * 18432 + 3 * 8192 * 28672), 128_256 * 8192
    tokens, requests, context, pairs = 1056, 33, 32_000, 1024 * 1025 / 2
    parts = parts_of(d, constants_of(d), tokens, requests, context, pairs)
    assert parts == pytest.approx(
        {
            "compute": 1056 * 2 * layers / (8 * 1979e12 * 0.60) + 33 * 2 * head / (8 * 989e12 * 0.69),
            "attention": 4 * 80 * 64 * 128 * pairs / (8 * 989e12 * 0.64),
            "weights": (layers / 0.74 + 2 * (head + 161 * 8192) / 0.84) / (8 * 3350e9),
            "kv": 32_000 * 163_840 / (8 * 3350e9 * 0.94),
            "communication": 160 * (4.7e-6 * 3 + 2 * 7 / 8 * 1056 * 8192 * 2 / (450e9 * 0.48)),
            "overhead": 1.5e-3 + 80 * 25e-6 + 33 * 6.7e-6,
        },
        rel=1e-9,
    )


def test_an_all_reduce_over_pcie_has_the_same_latency_for_any_number(deploy: Deploy, constants_of: ConstantsOf) -> None:
    for tp in (2, 4, 8):
        d = deploy("Llama-3.1-8B", "L40S", tp=tp)
        volume = 2 * (tp - 1) / tp * 10 * 4096 * 2 / (32e9 * 0.48)
        parts = parts_of(d, constants_of(d), 10, 10, 0, 0)
        assert parts["communication"] == pytest.approx(64 * (51e-6 + volume), rel=1e-9)


def test_experts_touched_grow_from_k_to_all(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Mixtral-8x7B", "H100-SXM-80GB", tp=2)
    c = constants_of(d)
    experts = 2.0 * 32 * 8 * 3 * 4096 * 14336
    read = by_name(analytic_terms(d, c))["weights"].base * (2 * 3350e9 * 0.84)
    rest = read[1] - experts * 2 / 8  # one token touches exactly two of eight, however skewed the routing
    assert rest == pytest.approx(2 * (32 * 41_943_040 + 32_000 * 4096 + NORMS_8B + 32 * 8 * 4096), rel=1e-9)
    assert read[16] - rest == pytest.approx(experts * 0.86 * (1 - 0.75**16), rel=1e-9)
    assert read[2048] - rest == pytest.approx(experts * 0.86, rel=1e-9)


def test_experts_compute_slower_than_one_matrix(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Mixtral-8x7B", "H100-SXM-80GB", tp=2)
    c = constants_of(d)
    experts, attention, router = 2 * 32 * 3 * 4096 * 14336, 32 * 41_943_040, 32 * 8 * 4096
    per_token = by_name(analytic_terms(d, c))["compute"].base[1]
    assert per_token == pytest.approx(2 * (1.5 * experts + attention + router) / (2 * 989e12 * 0.69), rel=1e-9)


def test_moe_layers_cost_host_time(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("DeepSeek-V3", "H200-SXM-141GB", tp=8, weight_dtype="fp8")
    overhead = by_name(analytic_terms(d, constants_of(d)))["overhead"]
    assert overhead.base[1] == pytest.approx(1.5e-3 + 61 * 25e-6 + 58 * 6e-6, rel=1e-12)


def test_latent_kv_is_read_by_every_device_and_computed_together(deploy: Deploy, constants_of: ConstantsOf) -> None:
    for tp in (1, 4, 8):
        d = deploy("DeepSeek-V3", "H200-SXM-141GB", tp=tp, weight_dtype="fp8", kv_dtype="bf16")
        slope = by_name(analytic_terms(d, constants_of(d)))["kv"].kv_token_s
        read, compute = 576 * 2 / (4800e9 * 0.94), 2 * 128 * (2 * 512 + 64) / (tp * 989e12 * 0.37)
        assert slope == pytest.approx(61 * (read + compute), rel=1e-9)


def test_data_parallel_attention_reads_its_own_kv_and_all_of_attention(
    deploy: Deploy, constants_of: ConstantsOf
) -> None:
    d = deploy("Mixtral-8x7B", "H100-SXM-80GB", tp=4)
    apart = replace(d, attention_dp=True, ep=4)
    together, separate = (by_name(analytic_terms(one, constants_of(d))) for one in (d, apart))
    more = 3 * 2 * 32 * 41_943_040 / (4 * 3350e9 * 0.84)
    assert separate["weights"].base[9] - together["weights"].base[9] == pytest.approx(more, rel=1e-9)
    assert separate["communication"].base[9] == pytest.approx(together["communication"].base[9] / 2, rel=1e-9)
    latent = replace(deploy("DeepSeek-V3", "H200-SXM-141GB", tp=8, weight_dtype="fp8"), attention_dp=True, ep=8)
    slope = by_name(analytic_terms(latent, constants_of(latent)))["kv"].kv_token_s
    alone = by_name(analytic_terms(replace(latent, tp=1), constants_of(latent)))["kv"].kv_token_s
    assert slope == pytest.approx(alone / 8, rel=1e-9)


def test_arithmetic_and_reads_overlap(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Llama-3.1-8B", "H100-SXM-80GB")
    apart, half, fully = (
        by_name(analytic_terms(d, replace(constants_of(d), overlap=overlap))) for overlap in (1.0, 2.0, 200.0)
    )
    for tokens in (1, 100, 2000):
        compute, weights = (apart[name].base[tokens] for name in ("compute", "weights"))
        together = [terms["compute"].base[tokens] + terms["weights"].base[tokens] for terms in (half, fully)]
        assert together[0] == pytest.approx(math.hypot(compute, weights), rel=1e-9)
        assert together[1] == pytest.approx(max(compute, weights), rel=1e-2)
        assert half["compute"].base[tokens] / half["weights"].base[tokens] == pytest.approx(compute / weights, rel=1e-9)


def test_block_fp8_is_slower_than_plain_fp8(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("DeepSeek-V3", "H200-SXM-141GB", tp=8, weight_dtype="fp8")
    plain = replace(d, model=replace(d.model, native_dtype="bf16"))
    block, usual = (by_name(analytic_terms(one, constants_of(one))) for one in (d, plain))
    router_s = 2 * 58 * 256 * 7168 / (8 * 989e12 * 0.69)  # stays at 16 bits
    slower = (block["compute"].base[1] - router_s) / (usual["compute"].base[1] - router_s)
    assert slower == pytest.approx(1 / 0.54, rel=1e-9)
    head_s = 2 * (129_280 * 7168 + 58 * 256 * 7168 + 123 * 7168) / (8 * 4800e9 * 0.84)
    slower = (block["weights"].base[1] - head_s) / (usual["weights"].base[1] - head_s)
    assert slower == pytest.approx(1 / 0.8, rel=1e-9)


@pytest.mark.parametrize(
    ("device", "dtype", "peak_tflops"),
    [
        ("H100-SXM-80GB", "bf16", 989),
        ("H100-SXM-80GB", "fp8", 1979),
        ("H100-SXM-80GB", "fp4", 989),
        ("H100-SXM-80GB", "int4", 989),
        ("A100-SXM4-80GB", "fp8", 312),
        ("A100-SXM4-80GB", "int8", 624),
        ("B200-SXM-180GB", "fp4", 9000),
        ("B300-SXM-270GB", "int8", 2250),  # its int8 units are slower than its 16-bit ones
        ("T4", "fp8", 65),
    ],
)
def test_weights_are_only_stored_narrow_without_units_for_them(
    device: str, dtype: str, peak_tflops: float, deploy: Deploy
) -> None:
    assert peak(deploy("Llama-3.1-8B", device), dtype) == peak_tflops * 1e12


def test_weight_only_formats_read_less_and_compute_the_same(deploy: Deploy, constants_of: ConstantsOf) -> None:
    wide, narrow = (deploy("Llama-3.1-8B", "A100-SXM4-80GB", weight_dtype=dtype) for dtype in ("bf16", "fp8"))
    first, second = (by_name(analytic_terms(d, constants_of(d))) for d in (wide, narrow))
    assert first["compute"].base[1] == second["compute"].base[1]
    unpacking = by_name(analytic_terms(narrow, replace(constants_of(narrow), weight_only_compute=0.5)))
    assert unpacking["compute"].base[1] == pytest.approx(2 * first["compute"].base[1], rel=1e-9)
    assert unpacking["compute"].seq_s == first["compute"].seq_s, "the head stays at 16 bits"
    reads = LAYERS_8B / 0.68 + 2 * (HEAD_8B + NORMS_8B) / 0.76
    assert second["weights"].base[1] == pytest.approx(reads / 2039e9, rel=1e-9)


def test_an_untied_input_embedding_is_looked_up_not_read(deploy: Deploy, constants_of: ConstantsOf) -> None:
    # Tied or not, a step reads vocabulary x hidden once: for the head.
    for name, layer in (("Llama-3.2-3B", 3072 * (2 * 4096 + 3 * 8192)), ("Llama-3.1-8B", 41_943_040 + 176_160_768)):
        d = deploy(name, "H100-SXM-80GB")
        one = d.model
        read = by_name(analytic_terms(d, constants_of(d)))["weights"].base[1] * 3350e9 * 0.84
        by_hand = one.layers * layer + one.vocab * one.hidden + (2 * one.layers + 1) * one.hidden
        assert read == pytest.approx(2 * by_hand, rel=1e-9)


def test_a_window_that_requests_outgrow_costs_the_same_for_each(deploy: Deploy, constants_of: ConstantsOf) -> None:
    below, above = (deploy("Gemma-3-27B", "H100-SXM-80GB", context_tokens=context) for context in (1000.0, 8000.0))
    short, long = (by_name(analytic_terms(d, constants_of(d))) for d in (below, above))
    layer_s = 2 * 16 * 128 * 2 / (3350e9 * 0.94)
    assert (short["kv"].kv_token_s, short["kv"].seq_s) == pytest.approx((62 * layer_s, 0.0), rel=1e-9)
    assert (long["kv"].kv_token_s, long["kv"].seq_s) == pytest.approx((10 * layer_s, 52 * 1024 * layer_s), rel=1e-9)
    # At a context of one window both readings are the same: no jump when traffic crosses it.
    assert short["kv"].seconds(1, 1, 1024, 0) == pytest.approx(long["kv"].seconds(1, 1, 1024, 0), rel=1e-9)
    assert short["attention"].pair_s == pytest.approx(62 / 10 * long["attention"].pair_s, rel=1e-9)
    pair_s = long["attention"].pair_s / 10
    assert long["attention"].base[100] == pytest.approx(100 * 52 * 1024 * pair_s, rel=1e-9)


def test_scale_multiplies_its_own_parts(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Llama-3.1-70B", "H100-SXM-80GB", tp=4, weight_dtype="fp8")
    step = (600, 100, 90_000, 500 * 501 / 2)
    plain = parts_of(d, constants_of(d), *step)
    slow_prompts = parts_of(d, constants_of(d), *step, scale=Scale(prefill=2.0))
    slow_words = parts_of(d, constants_of(d), *step, scale=Scale(tpot=2.0))
    assert slow_prompts["attention"] == pytest.approx(2 * plain["attention"], rel=1e-12)
    for name in ("weights", "kv", "overhead"):
        assert slow_prompts[name] == plain[name]
        assert slow_words[name] == pytest.approx(2 * plain[name], rel=1e-12)
    both = parts_of(d, constants_of(d), *step, scale=Scale(tpot=2.0, prefill=2.0))
    assert both == pytest.approx({name: 2 * seconds for name, seconds in plain.items()}, rel=1e-12)
    for name, seconds in plain.items():
        total = slow_prompts[name] + slow_words[name]
        assert math.isclose(total, 3 * seconds, rel_tol=1e-12, abs_tol=0)


def test_reads_are_never_more_than_the_weights(deploy: Deploy, constants_of: ConstantsOf) -> None:
    for name in models():
        for dtype in ("bf16", "fp8", "fp4"):
            d = deploy(name, "H100-SXM-80GB", weight_dtype=dtype)
            narrow, wide = weights_read(d, constants_of(d), np.arange(1.0, 3000.0, 100.0))
            assert min(narrow[0], narrow[-1]) > 0
            assert wide >= 0
            assert narrow[-1] + wide <= weight_bytes(d.model, dtype).total * (1 + 1e-12)


def test_a_model_published_in_mxfp4_reads_the_rest_at_sixteen_bits(deploy: Deploy, constants_of: ConstantsOf) -> None:
    # gpt-oss-20b: 24 layers, 4 of 32 experts of 3 x 2880 x 2880, 64 heads and 8 KV heads of 64, head 201,088 x 2880.
    d = deploy("gpt-oss-20b", "H100-SXM-80GB", weight_dtype="fp4")
    narrow, wide = weights_read(d, constants_of(d), np.array([1.0]))
    assert narrow[0] == pytest.approx(24 * 4 * 3 * 2880 * 2880 * 17 / 32, rel=1e-9)
    rest = 24 * 2880 * 64 * (2 * 64 + 2 * 8) + 201_088 * 2880 + 24 * 32 * 2880 + 49 * 2880
    assert wide == pytest.approx(2 * rest, rel=1e-9)
