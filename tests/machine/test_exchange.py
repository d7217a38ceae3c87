"""What devices send one another, against the vectors and oracles in tests/truth."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from engine.catalog import Model
from engine.machine.exchange import (
    all_gather_share,
    all_reduce_share,
    all_to_all_share,
    bubble_over_ideal,
    bubble_share,
    megatron_bytes,
    ring_attention_bytes,
    stage_boundary_bytes,
    ulysses_bytes,
)
from tests.machine.test_memory import VECTOR_MODELS

TRUTH = Path(__file__).parents[1] / "truth"


def rows(name: str) -> list[dict[str, str]]:
    with (TRUTH / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def sent(model: Model, parallelism: str, quantity: str) -> float:
    """Our figure for a row such as "cp2 ring S131072 bf16"."""
    words = parallelism.replace("sp(megatron) ", "").split()
    devices = int(words[0][2:])
    tokens = next(int(word.lstrip("tokensS")) for word in words[1:] if word.lstrip("tokensS").isdigit())
    return {
        "pp_bytes_per_boundary": lambda: stage_boundary_bytes(model, tokens),
        "ring_attn_bytes_sent_per_rank_per_layer": lambda: ring_attention_bytes(model, tokens, devices),
        "ulysses_bytes_sent_per_rank_per_layer": lambda: ulysses_bytes(model, tokens, devices),
        "megatron_sp_bytes_sent_per_rank_per_layer": lambda: megatron_bytes(model, tokens, devices),
    }[quantity]()


@pytest.mark.parametrize(
    "row", rows("context_parallel.csv"), ids=lambda row: f"{row['model']} {row['parallelism']} {row['quantity']}"
)
def test_vectors(row: dict[str, str]) -> None:
    found = sent(VECTOR_MODELS[row["model"]], row["parallelism"], row["quantity"])
    assert found == pytest.approx(float(row["value"]), rel=1e-12)


ORACLES = {
    "bubble_over_ideal": lambda p: bubble_over_ideal(p["stages"], p["microbatches"], p["interleave"]),
    "bubble_fraction_of_total": lambda p: bubble_share(p["stages"], p["microbatches"], p["interleave"]),
    "allreduce_bytes_sent_per_rank_over_S": lambda p: all_reduce_share(p["n"]),
    "allgather_or_reducescatter_over_S(full tensor S)": lambda p: all_gather_share(p["n"]),
    "alltoall_over_local_tensor": lambda p: all_to_all_share(p["n"]),
}


@pytest.mark.parametrize(
    "row", rows("parallel_oracles.csv"), ids=lambda row: f"{row['name']} {row['params_json']} {row['quantity']}"
)
def test_oracles(row: dict[str, str]) -> None:
    assert ORACLES[row["quantity"]](json.loads(row["params_json"])) == pytest.approx(float(row["value"]), rel=1e-12)


def test_sharded_activations_send_as_much_as_two_all_reduces() -> None:
    model = VECTOR_MODELS["70B"]
    for devices in (2, 4, 8):
        two = 2 * all_reduce_share(devices) * 4096 * model.hidden * 2
        assert megatron_bytes(model, 4096, devices) == two


def test_swapping_for_heads_sends_less_with_more_devices_and_a_ring_more() -> None:
    model = VECTOR_MODELS["7B"]
    swaps = [ulysses_bytes(model, 131_072, devices) for devices in (2, 4, 8)]
    rings = [ring_attention_bytes(model, 131_072, devices) for devices in (2, 4, 8)]
    assert swaps == sorted(swaps, reverse=True)
    assert rings == sorted(rings)
