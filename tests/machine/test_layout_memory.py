"""Memory of one device under every strategy: what each divides, and what it doesn't."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.catalog import weight_bytes
from engine.machine.constants import Constants
from engine.machine.deployment import Deployment
from engine.machine.memory import Memory, memory, weights_per_accelerator

Deploy = Callable[..., Deployment]
ConstantsOf = Callable[..., Constants]
MODELS = ("Llama-3.1-70B", "Qwen3-30B-A3B", "DeepSeek-V3", "Gemma-3-27B", "Llama-2-13B")


@pytest.fixture
def held(deploy: Deploy, constants_of: ConstantsOf) -> Callable[..., Memory]:
    def of(name: str, **changes: object) -> Memory:
        d = deploy(name, "H200-SXM-141GB", **changes)
        return memory(d, constants_of(d))

    return of


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sp", ["none", "ulysses"])
def test_splitting_the_context_divides_no_weights(held: Callable[..., Memory], name: str, sp: str) -> None:
    whole = held(name)
    for devices in (2, 4, 8):
        split = held(name, cp=devices, sp=sp)
        assert split.weights == whole.weights
        assert split.activations <= whole.activations


@pytest.mark.parametrize("name", MODELS)
def test_sharding_activations_divides_no_weights_and_no_kv(held: Callable[..., Memory], name: str) -> None:
    plain, sharded = held(name, tp=8), held(name, tp=8, sp="megatron")
    assert (sharded.weights, sharded.kv_per_token) == (plain.weights, plain.kv_per_token)
    assert sharded.activations < plain.activations
    assert held(name, sp="megatron") == held(name)  # alone there is nothing to shard over


def test_a_split_context_divides_its_kv_by_tokens_or_by_heads(held: Callable[..., Memory]) -> None:
    # Qwen3-30B-A3B has 4 KV heads, DeepSeek's latent vector none.
    whole = held("Qwen3-30B-A3B").kv_per_token
    assert [whole / held("Qwen3-30B-A3B", cp=n).kv_per_token for n in (2, 4, 8)] == [2, 4, 8]
    assert [whole / held("Qwen3-30B-A3B", cp=n, sp="ulysses").kv_per_token for n in (2, 4, 8)] == [2, 4, 4]
    latent = held("DeepSeek-V3").kv_per_token
    assert latent / held("DeepSeek-V3", cp=8, sp="ulysses").kv_per_token == 1
    assert latent / held("DeepSeek-V3", cp=8).kv_per_token == 8


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stages", [2, 4])
def test_stages_hold_every_layer_once(deploy: Deploy, name: str, stages: int) -> None:
    d = deploy(name, "H200-SXM-141GB", pp=stages)
    sizes = weight_bytes(d.model, d.weight_dtype)
    held, deal = _layers(d), [d.model.layers // stages] * stages
    for i in range(2, d.model.layers % stages + 2):  # as vLLM deals out those that are over
        deal[-i] += 1
    each = [sum(held[sum(deal[:k]) : sum(deal[: k + 1])]) for k in range(stages)]
    each[0] += sizes.embedding
    each[-1] += sizes.embedding if d.model.tied_embeddings else sizes.lm_head
    assert weights_per_accelerator(d) == pytest.approx(max(each), rel=1e-12)
    assert sum(held) + sizes.embedding + sizes.lm_head == pytest.approx(sizes.total, rel=1e-12)
    assert stages * weights_per_accelerator(d) >= sizes.total


def _layers(d: Deployment) -> list[float]:
    """Bytes of each layer, in order: the first few of a model with experts have none."""
    m, sizes = d.model, weight_bytes(d.model, d.weight_dtype)
    dense = m.layers if m.moe is None else m.moe.dense_layers
    every = (sizes.attention + sizes.norms) / m.layers
    with_experts = (sizes.router + sizes.experts + sizes.shared_experts) / max(m.layers - dense, 1)
    return [every + (sizes.dense_mlp / dense if k < dense else with_experts) for k in range(m.layers)]


def test_a_pipeline_has_one_pool_as_large_as_all_its_memory(held: Callable[..., Memory]) -> None:
    # 80 layers: a stage of 40 keeps half of each token's KV, so the same room holds twice the tokens.
    one, two = held("Llama-3.1-70B", tp=2), held("Llama-3.1-70B", tp=2, pp=2)
    assert two.kv_per_token == one.kv_per_token / 2
    assert two.kv_capacity_tokens > 2 * one.kv_capacity_tokens


def test_copies_divide_nothing_and_tensor_parallel_divides_matrices(deploy: Deploy) -> None:
    whole = weights_per_accelerator(deploy("Llama-3.1-70B", "H200-SXM-141GB"))
    for tp in (2, 4, 8):
        each = weights_per_accelerator(deploy("Llama-3.1-70B", "H200-SXM-141GB", tp=tp))
        assert each == pytest.approx(whole / tp, rel=1e-3)
