"""Parameters, weights and KV of every model, against published figures (tests/truth)."""

import csv
from pathlib import Path

import pytest

from engine.catalog import (
    CatalogError,
    active_parameters,
    kv_bytes_per_token,
    model,
    model_from_columns,
    models,
    parameters,
    weight_bytes,
)

TRUTH = Path(__file__).parents[1] / "truth"


def rows(name: str) -> list[dict[str, str]]:
    with (TRUTH / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("row", rows("model_shapes.csv"), ids=lambda row: row["model"])
def test_counts_follow_from_the_shapes(row: dict[str, str]) -> None:
    # The figures have two decimals, and sources differ by norms and biases.
    one = model(row["model"])
    assert parameters(one).total / 1e9 == pytest.approx(float(row["params_total_from_shape_b"]), abs=0.006)
    assert active_parameters(one).total / 1e9 == pytest.approx(float(row["params_active_from_shape_b"]), abs=0.006)
    assert kv_bytes_per_token(one, "fp16") == float(row["kv_bytes_per_token_fp16"])
    endless = kv_bytes_per_token(one, "fp16", context_tokens=1e15)
    assert endless == pytest.approx(float(row["kv_bytes_per_token_fp16_full_layers_only"]), abs=1.0)


def test_every_row_has_a_source_and_a_name_of_its_own() -> None:
    assert [row["model"] for row in rows("model_shapes.csv")] == list(models())
    assert all(one.source for one in models().values())


def test_parameters_of_llama_3_1_8b_by_part() -> None:
    # 128,256 x 4,096; 32 layers of 4,096 x (4,096 + 1,024 + 1,024 + 4,096) and 3 x 4,096 x 14,336.
    parts = parameters(model("Llama-3.1-8B"))
    assert parts.embedding == parts.lm_head == 525_336_576
    assert parts.attention == 32 * 41_943_040
    assert parts.dense_mlp == 32 * 176_160_768
    assert parts.experts == parts.shared_experts == parts.router == 0
    assert parts.norms == 65 * 4096
    assert parts.total == 8_030_261_248  # as the vendor's checkpoint


def test_latent_attention_by_hand() -> None:
    # DeepSeek-V3: queries through 1,536, keys and values through 512 + 64, 128 heads of 128 + 64 and values of 128.
    attention = parameters(model("DeepSeek-V3")).attention / 61
    by_hand = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * (128 + 128) + 128 * 128 * 7168
    assert attention == by_hand
    assert kv_bytes_per_token(model("DeepSeek-V3"), "bf16") == 61 * 576 * 2
    assert kv_bytes_per_token(model("DeepSeek-V3"), "fp8") == 61 * 576


def test_tied_embeddings_are_stored_once() -> None:
    tied, untied = parameters(model("Llama-3.2-3B")), parameters(model("Llama-3.1-8B"))
    assert tied.lm_head == 0
    assert tied.embedding == 128_256 * 3072
    assert untied.lm_head == untied.embedding


@pytest.mark.parametrize(("dtype", "bytes_each"), [("bf16", 2.0), ("fp16", 2.0)])
def test_sixteen_bit_weights_are_two_bytes_each(dtype: str, bytes_each: float) -> None:
    for one in models().values():
        assert weight_bytes(one, dtype).total == pytest.approx(bytes_each * parameters(one).total, rel=1e-12)


def test_quantised_checkpoints_keep_embeddings_head_router_and_norms_at_sixteen_bits() -> None:
    one = model("Mixtral-8x7B")
    parts, sizes = parameters(one), weight_bytes(one, "fp8")
    kept = parts.embedding + parts.lm_head + parts.router + parts.norms
    assert sizes.total == parts.total + kept
    assert weight_bytes(one, "int8") == sizes


def test_four_bit_weights_carry_their_scales() -> None:
    # hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4: files of 4.68 and 1.05 GB. NVFP4: a byte a 16 weights.
    parts = parameters(model("Llama-3.1-8B"))
    assert weight_bytes(model("Llama-3.1-8B"), "int4").total / 1e9 == pytest.approx(5.73, abs=0.01)
    assert weight_bytes(model("Llama-3.1-8B"), "fp4").attention == parts.attention * 9 / 16


def test_a_model_published_in_mxfp4_has_only_its_experts_at_four_bits() -> None:
    one = model("gpt-oss-120b")
    assert weight_bytes(one, "fp4").experts == parameters(one).experts * 17 / 32
    assert weight_bytes(one, "fp4").attention == parameters(one).attention * 2


def test_sizes_never_grow_with_fewer_bits() -> None:
    for one in models().values():
        sizes = [weight_bytes(one, dtype).total for dtype in ("bf16", "fp8", "fp4", "int4")]
        assert sizes == sorted(sizes, reverse=True)


def test_a_sliding_layer_keeps_at_most_its_window() -> None:
    gemma = model("Gemma-3-27B")  # 52 of 62 layers see 1,024 tokens
    every_layer = kv_bytes_per_token(gemma, "bf16")
    assert kv_bytes_per_token(gemma, "bf16", 1024) == every_layer
    per_layer = every_layer / 62
    assert kv_bytes_per_token(gemma, "bf16", 4096) == pytest.approx(per_layer * (10 + 52 / 4), rel=1e-12)


def test_an_unknown_name_gets_the_nearest_ones() -> None:
    with pytest.raises(CatalogError, match=r'"llama 70b" is no model of the catalogue; nearest: .*Llama-3\.1-70B'):
        model("llama 70b")
    with pytest.raises(CatalogError, match="known: Llama-2-7B"):
        model("???")


def test_a_custom_model_from_columns() -> None:
    shape = {"layers": 48, "hidden": 8192, "intermediate": 22016, "heads": 64, "kv_heads": 8, "vocab": 32000}
    one = model_from_columns(shape, "mine")
    assert (one.name, one.head_dim, one.mlp_matrices, one.tied_embeddings) == ("mine", 128, 3, False)
    assert parameters(one).total == 33_743_970_304  # tests/truth/tensor_parallel.csv, 34B
    assert model_from_columns({**shape, "model": "34B"}).name == "34B"


@pytest.mark.parametrize("name", ["DeepSeek-R1", "Llama-4-Maverick-17B-128E", "Gemma-2-9B", "Falcon-40B"])
def test_a_custom_row_with_all_columns_is_the_catalogues_model(name: str) -> None:
    known = model(name)
    row: dict[str, object] = {
        "model": name,
        "attention": "whatever the table says",
        "kv_bytes_per_token_fp16": 1,
        "moe_experts": None,
        "mla_kv_lora_rank": None,
        "source": known.source,
        "note": known.note,
        "native_dtype": known.native_dtype,
    }
    for key in ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_dim", "vocab", "sliding_window"):
        row[key] = getattr(known, key)
    for key in ("sliding_layers", "mlp_matrices", "tied_embeddings", "max_context"):
        row[key] = getattr(known, key)
    if known.moe is not None:
        row |= {"moe_experts": known.moe.experts, "moe_top_k": known.moe.top_k}
        row |= {"moe_intermediate": known.moe.intermediate, "moe_shared_experts": known.moe.shared_experts}
        row |= {"moe_first_dense_layers": known.moe.dense_layers}
    if known.mla is not None:
        row |= {"mla_kv_lora_rank": known.mla.kv_lora_rank, "mla_rope_dim": known.mla.rope_dim}
        row |= {"mla_q_lora_rank": known.mla.q_lora_rank}  # the values' width follows from head_dim
    assert model_from_columns(row) == known


SHAPE = {"layers": 2, "hidden": 64, "intermediate": 128, "heads": 4, "vocab": 100}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layers": None}, "layers: is missing; give a whole number of at least 1"),
        ({"layers": 0}, "layers: 0 is below 1; give a whole number of at least 1"),
        ({"layers": 2.5}, "layers: 2.5 is not a whole number"),
        ({"layers": "2"}, 'layers: "2" is not a number'),
        ({"layers": True}, "layers: true is not a number"),
        ({"hiden": 64}, "hiden: 64 is for a column that isn't known; did you mean hidden?"),
        ({"tied_embeddings": 1}, "tied_embeddings: 1 is not true or false"),
        ({"kv_heads": 3}, "kv_heads: 3 does not divide heads; give a divisor of the 4 heads"),
        ({"sliding_layers": 3, "sliding_window": 8}, "sliding_layers: 3 is above layers"),
        ({"sliding_layers": 1}, "sliding_window: is missing; give it with sliding_layers"),
        ({"moe_experts": 8, "moe_intermediate": 8}, "moe_top_k: is missing; give it with moe_experts"),
        ({"moe_experts": 8, "moe_intermediate": 8, "moe_top_k": 9}, "moe_top_k: 9 is above moe_experts"),
        ({"mla_kv_lora_rank": 8}, "mla_rope_dim: is missing; give it with mla_kv_lora_rank"),
        ({"mla_kv_lora_rank": 8, "mla_rope_dim": 16, "head_dim": 16}, "mla_rope_dim: 16 is not below head_dim"),
    ],
)
def test_what_is_wrong_with_a_custom_model_is_said(change: dict[str, object], said: str) -> None:
    with pytest.raises(CatalogError) as error:
        model_from_columns({**SHAPE, **change})
    assert str(error.value).startswith(said)
    assert len(error.value.faults) == 1


def test_every_fault_is_said_at_once() -> None:
    with pytest.raises(CatalogError) as error:
        model_from_columns({"layers": -1, "colour": "red"})
    assert [fault.column for fault in error.value.faults] == [
        "colour",
        "layers",
        "hidden",
        "intermediate",
        "heads",
        "vocab",
    ]
