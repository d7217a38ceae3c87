"""What one replica can complete: by hand, against long overloaded runs, and what it depends on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.machine import replica_model
from engine.outcome import half_width
from engine.scenario import Scenario
from engine.serving import Fleet
from engine.study import capacity, capacity_rps, forget_capacities, remember_capacity, saturated, simulate
from engine.traffic import Trace, read_trace
from tests.study.mixes import PROFILE
from tests.study.mixes import one_class as scenario

pytestmark = pytest.mark.usefixtures("nothing_remembered")


def measured(s: Scenario, trace: Trace | None = None) -> float | None:
    return capacity_rps(s, replica_model(s), trace)


class TestByHand:
    @pytest.mark.parametrize(("seats", "output"), [(1, 1), (1, 8), (4, 1), (4, 8), (50, 3)])
    def test_steps_of_equal_length(self, seats: int, output: int) -> None:
        """Each seat makes a token a step, so it completes an answer every ``output`` steps of half a second."""
        s = scenario(10, output, {"overhead_s": 0.5}, max_num_seqs=seats, max_num_batched_tokens=8192)
        assert measured(s) == pytest.approx(seats / (output * 0.5), rel=1e-9)

    def test_one_seat_takes_one_request_after_the_other(self) -> None:
        """A step of 100 tokens, then seven of one each that read 100, 101, ... tokens of context."""
        s = scenario(100, 8, PROFILE | {"kv_token_s": 1e-4}, max_num_seqs=1, max_num_batched_tokens=8192)
        contexts = sum(range(100, 107))
        seconds = 8 * 0.012 + contexts * 1e-4
        assert measured(s) == pytest.approx(1 / seconds, rel=1e-9)

    def test_prompts_in_chunks(self) -> None:
        """1,000 tokens at 64 a step are 16 steps, and the sixteenth is the first token."""
        s = scenario(1000, 1, {"overhead_s": 0.25}, max_num_seqs=1, max_num_batched_tokens=64)
        assert measured(s) == pytest.approx(1 / (16 * 0.25), rel=1e-9)

    def test_memory_for_one(self) -> None:
        s = scenario(100, 20, {"overhead_s": 0.5}, kv_capacity_tokens=120, max_num_seqs=8)
        assert measured(s) == pytest.approx(1 / (20 * 0.5), rel=1e-9)

    def test_equal_lengths_take_turns(self) -> None:
        """32 seats and answers of 32 tokens: in every step one prompt of 256 is read and 31 others get a token.

        The requests with g = 1..31 tokens out have contexts of 256 + g - 1.
        """
        s = scenario(256, 32, max_num_seqs=32, max_num_batched_tokens=512)
        contexts = sum(256 + g - 1 for g in range(1, 32))
        step = PROFILE["overhead_s"] + PROFILE["token_s"] * (256 + 31) + PROFILE["kv_token_s"] * contexts
        assert measured(s) == pytest.approx(1 / step, rel=1e-3)

    def test_reserved_answers_end_early(self) -> None:
        """Answers of 40 tokens are cut to 8, which stand for the answer in KV too."""
        settings: Any = {"kv_capacity_tokens": 20, "reserve_output_tokens": 8, "kv_policy": "reserve"}
        s = scenario(10, 40, {"overhead_s": 0.5}, max_num_seqs=2, **settings)
        assert measured(s) == pytest.approx(1 / (8 * 0.5), rel=1e-9)

    @pytest.mark.parametrize(("policy", "steps"), [("prefill_first", 7 + 4), ("static", 8)])
    def test_other_policies(self, policy: str, steps: int) -> None:
        """Four seats, steps of half a second. A static group of four takes eight; with prefill first, where ends are
        spread over the eight steps, each of the four new prompts stops the others for a step of its own."""
        s = scenario(10, 8, {"overhead_s": 0.5}, max_num_seqs=4, max_num_batched_tokens=8192, policy=policy)
        assert measured(s) == pytest.approx(4 / (steps * 0.5), rel=1e-2)

    def test_nothing_fits(self) -> None:
        assert measured(scenario(100, 20, kv_capacity_tokens=119)) is None
        assert measured(scenario(100, 20, max_model_len=119)) is None

    def test_requests_that_are_too_long_are_no_part_of_the_mix(self) -> None:
        settings: Any = {"max_num_seqs": 4, "max_num_batched_tokens": 8192, "profile": {"overhead_s": 0.5}}
        s = scenario(10, 8, **settings)
        mixed = s.replace(
            {"traffic.classes.0.prompt_tokens": {"dist": "empirical", "values": [10, 9000], "weights": [1, 1]}}
        )
        assert measured(mixed.replace({"batching.max_model_len": 1000})) == pytest.approx(1.0, rel=1e-9)


OVERLOADED = {
    "seats": scenario(100.0, 60.0, max_num_seqs=24, max_num_batched_tokens=1024),
    "budget": scenario(400.0, 30.0, max_num_seqs=256, max_num_batched_tokens=256),
    "kv on demand": scenario(100.0, 60.0, max_num_seqs=64, max_num_batched_tokens=512, kv_capacity_tokens=3000),
    "kv reserved": scenario(
        100.0, 60.0, max_num_seqs=64, max_num_batched_tokens=512, kv_capacity_tokens=3000, kv_policy="reserve"
    ),
}


@pytest.mark.parametrize("name", OVERLOADED)
def test_a_long_overloaded_run_completes_as_many(name: str) -> None:
    """Twice the capacity arrives: what completes after the first third, with its 95 % interval, and 1.5 % for ours."""
    s = OVERLOADED[name]
    capacity_ = measured(s)
    assert capacity_ is not None
    horizon = 1500 / capacity_
    run = {"horizon_s": horizon, "warmup_s": horizon / 3, "seeds": 24, "seed": 400}
    result = simulate(s.replace({"traffic.rate_rps": 2 * capacity_, "run": run}))
    a = result.run.attempts
    done = np.bincount(a.seed_index[a.finish_s >= horizon / 3], minlength=24) / (horizon * 2 / 3)
    half = half_width(done)
    assert half is not None
    assert half < 0.04 * capacity_, "the run says something"
    assert capacity_ == pytest.approx(done.mean(), abs=half + 0.015 * capacity_)


class TestWhatItDependsOn:
    S = scenario(100.0, 20.0, max_num_seqs=8, max_num_batched_tokens=256)

    def test_not_on_traffic_fleet_or_promises(self) -> None:
        first = measured(self.S)
        others: list[dict[str, Any]] = [
            {"traffic.rate_rps": 0.001},
            {"traffic.process": "gamma", "traffic.cv": 3.0},
            {"fleet.replicas": 9, "fleet.routing.policy": "random"},
            {"admission.max_outstanding": 1},
            {"slo": []},
            {"run.seeds": 3, "run.seed": 77, "run.horizon_s": 61.0},
            {"hardware.price_per_gpu_hour": 9.0, "name": "another"},
        ]
        for changes in others:
            forget_capacities()
            assert measured(self.S.replace(changes)) == first, changes

    def test_it_is_remembered_without_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first = measured(self.S)
        monkeypatch.setattr(capacity, "completion_rate", lambda *given: pytest.fail("measured again"))
        assert measured(self.S.replace({"traffic.rate_rps": 31.0, "fleet.replicas": 3, "slo": []})) == first

    def test_another_process_s_figure_is_taken(self) -> None:
        remember_capacity(self.S.replace({"slo": []}), 12.5)
        assert measured(self.S) == 12.5

    @pytest.mark.parametrize(
        "changes",
        [
            {"batching.max_num_seqs": 4},
            {"performance.weights_s": 0.02},
            {"traffic.classes.0.output_tokens.mean": 40.0},
            {"traffic.classes.0.prompt_tokens.mean": 900.0},
        ],
    )
    def test_but_on_lengths_and_machine(self, changes: dict[str, Any]) -> None:
        first, other = measured(self.S), measured(self.S.replace(changes))
        assert first is not None
        assert other is not None
        assert abs(other / first - 1) > 0.02

    def test_on_the_content_of_a_trace(self) -> None:
        """Two traces under one scenario have two capacities; without process trace neither matters."""
        head = b"arrival_s,prompt_tokens,output_tokens\n"
        short, long = (read_trace(head + b"0,10,%d\n1,10,%d\n" % (n, n)) for n in (5, 20))
        s = scenario(10, 7, {"overhead_s": 0.5}, max_num_seqs=2, max_num_batched_tokens=8192)
        replayed = s.replace({"traffic.process": "trace"})
        assert measured(replayed, short) == pytest.approx(2 / (5 * 0.5), rel=1e-9)
        assert measured(replayed, long) == pytest.approx(2 / (20 * 0.5), rel=1e-9)
        assert measured(s, long) == pytest.approx(2 / (7 * 0.5), rel=1e-9)


class TestPipelines:
    """The replica is ``pp`` lanes; a measured profile says how long a pass takes."""

    @pytest.mark.parametrize(("seats", "output", "pp"), [(2, 8, 2), (4, 8, 2), (8, 3, 4), (48, 5, 3)])
    def test_passes_of_equal_length(self, seats: int, output: int, pp: int) -> None:
        """Every seat makes a token a pass, in whichever lane it is."""
        s = scenario(10, output, {"overhead_s": 0.5}, max_num_seqs=seats).replace({"parallelism.pp": pp})
        assert measured(s) == pytest.approx(seats / (output * 0.5), rel=1e-9)

    def test_memory_for_one_leaves_the_other_stages_idle(self) -> None:
        s = scenario(100, 20, {"overhead_s": 0.5}, kv_capacity_tokens=120, max_num_seqs=8)
        assert measured(s.replace({"parallelism.pp": 4})) == pytest.approx(1 / (20 * 0.5), rel=1e-9)

    def test_an_overloaded_pipeline_completes_as_much(self) -> None:
        slow = {name: 20 * value for name, value in PROFILE.items()}
        s = scenario(200.0, 50.0, slow, max_num_seqs=24, max_num_batched_tokens=256).replace({"parallelism.pp": 3})
        rate = measured(s)
        assert rate is not None
        busy = s.replace({"traffic.rate_rps": 1.3 * rate, "run": {"horizon_s": 900.0, "warmup_s": 100.0, "seeds": 2}})
        assert simulate(busy).throughput["requests_per_s"] == pytest.approx(rate, rel=0.05)

    @pytest.mark.parametrize("seats", [24, 5])
    def test_what_comes_after_the_last_admission_does_not_count(
        self, seats: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A replica that is taken to have five seats, and has more, takes all up at once: the whole run counts."""
        s = scenario(200.0, 50.0, max_num_seqs=24, max_num_batched_tokens=8192).replace({"parallelism.pp": 2})
        monkeypatch.setattr(saturated, "seats_of", lambda *given: seats)
        monkeypatch.setattr(saturated, "_FEWEST_IN_STAGES", seats)
        stopped = measured(s)
        forget_capacities()
        monkeypatch.setattr(saturated, "Fleet", lambda model, batching, until_scheduled: Fleet(model, batching))
        assert measured(s) == stopped


def test_side_by_side_as_each_alone() -> None:
    one = scenario(200.0, 20.0, max_num_seqs=8, max_num_batched_tokens=512)
    changes: list[dict[str, Any]] = [
        {}, {"batching.max_num_seqs": 12}, {"parallelism.pp": 2}, {"parallelism.pp": 2, "batching.max_num_seqs": 20},
        {"batching.policy": "prefill_first"}, {"batching.max_model_len": 2},
    ]  # fmt: skip
    several = [(s, replica_model(s)) for s in (one.replace(change) for change in changes)]
    alone = [capacity_rps(s, model) for s, model in several]
    assert alone[-1] is None
    forget_capacities()
    capacity.measure_together(several)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capacity, "completion_rate", lambda *given: pytest.fail("measured again"))
        assert [capacity_rps(s, model) for s, model in several] == alone
