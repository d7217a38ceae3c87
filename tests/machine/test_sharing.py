"""What a step costs by group size: its parts add up to the replica's own step, and the formula holds at every size."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Scenario
from engine.machine import replica_model, room, seats, sharing

MACHINES: dict[str, dict[str, object]] = {
    "dense": {"model": {"name": "Llama-3.1-8B"}},
    "several chips": {},
    "experts": {"model": {"name": "Mixtral-8x7B"}},
    "latent attention": {"model": {"name": "DeepSeek-V3"}, "hardware": {"accelerator": "B300-SXM-270GB"}},
    "sliding window": {"model": {"name": "gpt-oss-20b"}},
    "quantised": {"model": {"name": "Llama-3.1-8B", "weight_dtype": "int4"}},
    "measured profile": {
        "performance": {"kind": "linear", "overhead_s": 0.01, "weights_s": 0.02, "token_s": 1e-4, "kv_token_s": 1e-7}
    },
}
CONTEXT = 1234.0


def scenario(**sections: object) -> Scenario:
    return Scenario.from_dict(sections)


@pytest.mark.parametrize("name", MACHINES)
def test_the_parts_are_the_replica_s_own_step(name: str) -> None:
    s = scenario(**MACHINES[name])
    found, model = sharing(s, CONTEXT), replica_model(s)
    whole = [model.step_s(n, n, n * CONTEXT, 0.0) for n in found.sizes.tolist()]
    assert np.allclose(found.step_s, whole, rtol=1e-12, atol=0)
    assert set(found.parts) >= {"weights", "kv", "compute", "overhead"}
    assert all((part >= 0).all() for part in found.parts.values())


@pytest.mark.parametrize("name", MACHINES)
def test_a_word_is_the_shared_work_by_the_group_and_its_own(name: str) -> None:
    found = sharing(scenario(**MACHINES[name]), CONTEXT)
    assert np.allclose(found.word_s, found.shared_s / found.sizes + found.own_s, rtol=1e-12, atol=0)
    assert np.allclose(found.tokens_per_s, 1 / found.word_s, rtol=1e-12)
    assert found.shared_s > 0
    assert (found.own_s > 0).all()


def straight(**performance: float) -> Scenario:
    """Steps of overhead_s + seq_s for each conversation."""
    return scenario(performance={"kind": "linear", **performance}, batching={"max_num_seqs": 256})


def test_at_the_knee_of_a_straight_line_shared_and_own_work_are_equal() -> None:
    """Hockney's half-performance length: overhead over slope, where the rate is half of the endless group's."""
    found = sharing(straight(overhead_s=0.03, seq_s=0.0005), 0.0)
    assert found.knee == 60
    at = found.at(60)
    assert found.sizes[at] == 60
    assert found.own_s[at] * 60 == pytest.approx(found.shared_s)
    assert found.tokens_per_s[at] == pytest.approx(0.5 / 0.0005)
    assert found.gain(60, 120) == pytest.approx(4 / 3) if 120 in found.sizes else True
    assert found.gain(1, 8) == pytest.approx(8 * 30.5 / 34)
    assert found.gain(64, 128) == pytest.approx(2 * 62 / 94)


def test_there_is_no_knee_where_nobody_costs_anything_or_the_steps_are_too_small() -> None:
    assert sharing(straight(overhead_s=0.03), 0.0).knee is None
    small = straight(overhead_s=0.03, seq_s=0.0005).replace(
        {"batching.max_num_seqs": 64, "batching.max_num_batched_tokens": 100}
    )
    found = sharing(small, 0.0)
    assert found.knee is None
    assert found.sizes[-1] == 64


def test_with_no_shared_work_the_first_conversation_is_the_knee() -> None:
    found = sharing(straight(seq_s=0.0005, overhead_s=1e-12), 0.0)
    assert found.knee == 1


def test_sizes_reach_the_setting_or_beyond_the_knee_and_have_what_is_asked_for() -> None:
    s = straight(overhead_s=0.3, seq_s=0.0005)
    found = sharing(s, 0.0, [23])
    assert found.knee == 600
    assert found.sizes[-1] == 1200
    assert {1, 2, 4, 8, 16, 23, 32, 64, 128, 256, 512, 600, 1024} <= set(found.sizes.tolist())
    assert found.sizes.size < 250
    assert (np.diff(found.sizes) > 0).all()


def test_eight_share_one_read_nearly_eight_times_and_twice_sixty_four_a_third_more() -> None:
    s = Scenario.from_dict({"model": {"name": "Llama-3.1-8B"}, "hardware": {"accelerator": "A100-SXM4-80GB"}})
    found = sharing(s, 2000.0)
    assert 6.5 <= found.gain(1, 8) <= 8.0
    assert 1.1 <= found.gain(64, 128) <= 1.4
    assert found.knee is not None
    assert 32 <= found.knee <= 128


def test_seats_are_what_memory_or_the_setting_allows() -> None:
    held = np.array([100.0, 400.0, 1000.0, 3000.0])
    assert seats(100_000, 256, held).tolist() == [256.0, 250.0, 100.0, 100 / 3]
    assert seats(None, 256, held).tolist() == [256.0] * 4


def test_memory_is_known_but_for_a_measured_profile() -> None:
    held = room(scenario())
    assert held is not None
    assert held.weights + held.activations + held.runtime + held.kv == pytest.approx(held.usable)
    assert held.usable < held.device
    assert room(straight(overhead_s=0.03)) is None
