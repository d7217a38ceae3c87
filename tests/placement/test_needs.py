"""What models of the catalogue need, and the pack of 13B, 34B and 70B that the preset tells of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.catalog import kv_bytes_per_token, model
from engine.placement import Needs, Offered, Terms, Wanted, chips_used, needs, ruled_out, solve
from engine.scenario import ScenarioError
from tests.placement.check import check

WANTED = (
    Wanted("Llama-2-13B", "int8", 4, (1,)),
    Wanted("Yi-34B", "int8", 2, (1,)),
    Wanted("Llama-2-70B", "int8", 1, (1,)),
)
OFFERED = (Offered("RTX 4090", 4), Offered("A100-SXM4-40GB", 2), Offered("L40S", 4), Offered("A100-SXM4-80GB", 2))
TERMS = Terms(4, 1366.0, "bf16", 8192, 0.92)


@pytest.fixture(scope="module")
def found() -> Needs:
    return needs(WANTED, OFFERED, TERMS)


def test_sizes_are_memory_and_the_kv_asked_for(found: Needs) -> None:
    m = found.memory[0, 1, 0]
    kv = 4 * 1366 * kv_bytes_per_token(model("Llama-2-13B"), "bf16")
    assert found.problem.items[0].shard_gb(1, "RTX 4090 24GB") == pytest.approx(
        (m.weights + m.activations + m.runtime + kv) / 1e9
    )
    assert m.weights == pytest.approx(13.02e9 + 0.328e9, rel=1e-3)  # embeddings and head stay at 16 bits
    assert [chip.type for chip in found.problem.chips] == [
        "RTX 4090 24GB", "A100-SXM4-40GB", "L40S 48GB", "A100-SXM4-80GB",
    ]  # fmt: skip
    assert found.problem.chips[0].cap == pytest.approx(0.92 * 24 * 2**30 / 1e9)


def test_what_is_ruled_out_before_any_packing(found: Needs) -> None:
    pairs = {(one.item, one.chip): one.short_gb for one in ruled_out(found.problem)}
    assert set(pairs) == {(1, 0), (2, 0), (2, 1), (2, 2)}
    assert pairs[2, 0] == pytest.approx(49.9, abs=0.1)
    assert pairs[2, 1] == pytest.approx(34.3, abs=0.1)
    assert pairs[2, 2] == pytest.approx(26.4, abs=0.1)


def test_twice_the_memory_is_several_times_the_seats(found: Needs) -> None:
    seats = [one.seats for t in range(4) if (one := found.alone(0, t)) is not None]
    assert len(seats) == 4
    assert 3 <= seats[2] / seats[0] <= 6  # 24 and 48 GB
    assert seats == sorted(seats)
    assert found.alone(2, 2) is None


def test_parts_of_a_chip_add_up_to_it(found: Needs) -> None:
    packing = solve(found.problem).packing
    assert packing is not None
    check(found.problem, packing)
    assert chips_used(found.problem, packing) == {"RTX 4090 24GB": 4, "L40S 48GB": 2, "A100-SXM4-80GB": 1}
    for used in packing.used:
        parts = found.parts(used)
        assert parts.weights + parts.kv + parts.rest == pytest.approx(used.gb)
        assert parts.weights + parts.kv + parts.rest + parts.free == pytest.approx(found.device_gb(used.chip))
    alone = found.alone(0, 0)
    assert alone is not None
    assert alone.parts.free >= 0.08 * found.device_gb(0)


def test_splits_that_heads_or_links_forbid_are_left_out() -> None:
    odd = needs((Wanted("Phi-4", "bf16", 1, (1, 2, 4)),), (Offered("A100-SXM4-80GB", 8), Offered("GH200", 8)), TERMS)
    assert set(odd.memory) == {(0, 1, 0), (0, 2, 0), (0, 1, 1)}  # 10 KV heads; GH200 without a link


def test_open_stock_headroom_and_hosts(found: Needs) -> None:
    opened = needs(WANTED, OFFERED, replace(TERMS, any_number=True, headroom=0.1, spread=True, per_host=4))
    assert all(chip.max is None and chip.per_host == 4 for chip in opened.problem.chips)
    assert (opened.problem.headroom, opened.problem.spread) == (0.1, True)
    fewer = opened.alone(0, 0)
    more = found.alone(0, 0)
    assert fewer is not None
    assert more is not None
    assert fewer.seats < more.seats


def test_a_chip_without_a_price_needs_one() -> None:
    with pytest.raises(ScenarioError, match="T4: has no list price in the catalogue; give its price an hour"):
        needs(WANTED[:1], (Offered("T4", 1),), TERMS)
    assert needs(WANTED[:1], (Offered("T4", 1, 0.2),), TERMS).problem.chips[0].cost == 0.2
