"""Memory of an accelerator, against engines' start-up logs (tests/truth) and by hand."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.catalog import Model, kv_bytes_per_token, model, model_from_columns, parameters, weight_bytes
from engine.machine.constants import Constants
from engine.machine.deployment import Deployment
from engine.machine.memory import GIB, memory, weights_per_accelerator
from engine.machine.steptime import reduced_bytes

TRUTH = Path(__file__).parents[1] / "truth"
Deploy = Callable[..., Deployment]
ConstantsOf = Callable[..., Constants]


def rows(name: str) -> list[dict[str, str]]:
    with (TRUTH / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("row", rows("loaded_weights.csv"), ids=lambda row: f"{row['model']} tp{row['tp']}")
def test_weights_are_those_that_engines_load(row: dict[str, str], deploy: Deploy) -> None:
    d = deploy(row["model"], "H100-SXM-80GB", tp=int(row["tp"]), weight_dtype=row["weight_dtype"])
    expected = float(row["gib_per_accelerator"])
    assert weights_per_accelerator(d) / GIB == pytest.approx(expected, rel=float(row["tolerance"]))


@pytest.mark.parametrize("row", rows("kv_sizes.csv"), ids=lambda row: row["model"])
def test_kv_sizes_are_the_published_ones(row: dict[str, str], deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy(row["model"], "H100-SXM-80GB", tp=int(row["tp"]), kv_dtype=row["kv_dtype"])
    size = int(row["tokens"]) * memory(d, constants_of(d)).kv_per_token
    assert size / GIB == pytest.approx(float(row["gib_per_accelerator"]), rel=float(row["tolerance"]))


def test_kv_capacity_is_a_real_engines(deploy: Deploy, constants_of: ConstantsOf) -> None:
    # casys-kaist/LLMServingSim@5daddb21, bench RTX4090_Llama-3.1-8B: vLLM 0.19.0, bf16, gpu_memory_utilization 0.9,
    # max_num_seqs 256, max_num_batched_tokens 2048, num_kv_tokens 41408.
    d = deploy("Llama-3.1-8B", "RTX 4090", gpu_memory_utilization=0.9, step_tokens=2048)
    assert memory(d, constants_of(d)).kv_capacity_tokens == pytest.approx(41_408, rel=0.01)


def test_kv_capacity_of_a_quantised_70b_on_one_80_gb_device(deploy: Deploy, constants_of: ConstantsOf) -> None:
    # vllm-project/vllm pull request 12569: a w8a8 70B, gpu_memory_utilization 0.98, 1381 blocks of 16 tokens. Little is
    # left after the weights, so a few per cent of memory decide: within a third, where decimal GB would leave nothing.
    d = deploy("Llama-3.1-70B", "H100-SXM-80GB", weight_dtype="int8", gpu_memory_utilization=0.98, step_tokens=8192)
    assert memory(d, constants_of(d)).kv_capacity_tokens == pytest.approx(1381 * 16, rel=0.33)


VECTOR_MODELS = {
    "7B": model("Llama-2-7B"),
    "13B": model("Llama-2-13B"),
    "34B": model_from_columns(
        {"layers": 48, "hidden": 8192, "intermediate": 22016, "heads": 64, "kv_heads": 8, "vocab": 32000}, "34B"
    ),
    "70B": model("Llama-2-70B"),
}


def vector(row: dict[str, str], deploy: Deploy, constants_of: ConstantsOf) -> float:
    """Our figure for one row of tests/truth/tensor_parallel.csv."""
    one: Model = VECTOR_MODELS[row["model"]]
    words = row["parallelism"].split()
    numbers = {key: int(word[len(key) :]) for word in words for key in ("tp", "tokens") if word.startswith(key)}
    dtype = "int8" if "8bit" in words else "fp16"
    d = deploy("Llama-2-7B", "H100-SXM-80GB", model=one, tp=numbers.get("tp", 1), weight_dtype=dtype, kv_dtype=dtype)
    sizes, parts = weight_bytes(one, dtype), parameters(one)
    # The vectors quantise everything; a checkpoint keeps these parts at two bytes.
    kept = parts.embedding + parts.lm_head + parts.norms if dtype == "int8" else 0
    return {
        "params": lambda: parts.total,
        "weight_bytes_total": lambda: sizes.total - kept,
        "weight_bytes_per_rank_ideal": lambda: weights_per_accelerator(d) - kept / d.tp,
        "kv_bytes_per_token": lambda: kv_bytes_per_token(one, dtype),
        "kv_bytes_per_token_per_rank": lambda: memory(d, constants_of(d)).kv_per_token,
        "tp_bytes_sent_per_rank_per_forward": lambda: reduced_bytes(d) * numbers["tokens"],
    }[row["quantity"]]()


@pytest.mark.parametrize(
    "row", rows("tensor_parallel.csv"), ids=lambda row: f"{row['model']} {row['parallelism']} {row['quantity']}"
)
def test_tensor_parallel_vectors(row: dict[str, str], deploy: Deploy, constants_of: ConstantsOf) -> None:
    ideal = row["quantity"] == "weight_bytes_per_rank_ideal"  # norms, copied to every rank, are left out there
    assert vector(row, deploy, constants_of) == pytest.approx(float(row["value"]), rel=3e-3 if ideal else 1e-12)


def test_kv_heads_are_copied_when_there_are_fewer_than_devices(deploy: Deploy, constants_of: ConstantsOf) -> None:
    # Qwen3-30B-A3B has 4 KV heads: 48 layers of 2 x 128 elements a head.
    per_token = {}
    for tp in (1, 2, 4, 8):
        d = deploy("Qwen3-30B-A3B", "H100-SXM-80GB", tp=tp)
        per_token[tp] = memory(d, constants_of(d)).kv_per_token
    assert per_token == {1: 98304, 2: 49152, 4: 24576, 8: 24576}


def test_key_and_value_projections_are_copied_with_their_heads(deploy: Deploy) -> None:
    # One head's projections: 48 layers x 2 x 2048 x 128; everything else of attention is divided by 8.
    d = deploy("Qwen3-30B-A3B", "H100-SXM-80GB", tp=8)
    parts = parameters(d.model)
    pairs = 48 * 2 * 2048 * 4 * 128
    copied = parts.router + parts.norms
    by_hand = (parts.total - copied - pairs) / 8 + copied + pairs / 4
    assert weights_per_accelerator(d) == pytest.approx(2 * by_hand, rel=1e-12)


def test_latent_kv_is_on_every_device(deploy: Deploy, constants_of: ConstantsOf) -> None:
    for tp in (1, 8):
        d = deploy("DeepSeek-V3", "H200-SXM-141GB", tp=tp, weight_dtype="fp8", kv_dtype="fp8")
        assert memory(d, constants_of(d)).kv_per_token == 61 * 576


def test_capacity_is_what_the_rest_leaves(deploy: Deploy, constants_of: ConstantsOf) -> None:
    d = deploy("Llama-3.1-70B", "H100-SXM-80GB", tp=4, weight_dtype="fp8", kv_dtype="fp8")
    m = memory(d, constants_of(d))
    assert m.device == 80 * GIB
    assert m.usable == 0.92 * 80 * GIB
    assert m.kv == m.usable - m.weights - m.activations - m.runtime
    assert m.kv_capacity_tokens == int(m.kv / (2 * 80 * 2 * 128))
    assert m.fits


def test_activations_by_hand(deploy: Deploy, constants_of: ConstantsOf) -> None:
    c = constants_of(deploy("Llama-3.1-8B", "H100-SXM-80GB"))
    stream = 2 * 2048 * 4096 * 2
    few = memory(deploy("Llama-3.1-8B", "H100-SXM-80GB", max_num_seqs=8), c)
    assert few.activations == stream + 2048 * 3 * 14336 * 2  # the gate is wider than eight rows of logits
    many = memory(deploy("Llama-3.1-8B", "H100-SXM-80GB", max_num_seqs=1024), c)
    assert many.activations == stream + 1024 * 128_256 * 32


def test_memory_never_shrinks_with_batch_and_never_grows_with_devices(
    deploy: Deploy, constants_of: ConstantsOf
) -> None:
    for name in ("Llama-3.1-70B", "Mixtral-8x7B", "DeepSeek-V3"):
        taken = []
        for tp in (1, 2, 4, 8):
            d = deploy(name, "H200-SXM-141GB", tp=tp)
            taken.append(memory(d, constants_of(d)).weights)
        assert taken == sorted(taken, reverse=True)
        small, large = (deploy(name, "H200-SXM-141GB", tp=8, step_tokens=tokens) for tokens in (512, 16_384))
        assert memory(small, constants_of(small)).activations < memory(large, constants_of(large)).activations


def test_a_window_makes_room_when_requests_outgrow_it(deploy: Deploy, constants_of: ConstantsOf) -> None:
    def tokens(context: float | None) -> int:
        d = deploy("Gemma-3-27B", "H100-SXM-80GB", context_tokens=context)
        return memory(d, constants_of(d)).kv_capacity_tokens

    assert tokens(None) == tokens(500.0) == tokens(1024.0)
    assert tokens(8192.0) > 2.5 * tokens(1024.0)
