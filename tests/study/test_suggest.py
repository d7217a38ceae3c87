"""Suggestions: fitting, fair, ranked, and true when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from engine.machine import replica_model
from engine.scenario import Scenario, preset
from engine.study import Suggestion, simulate, suggest
from engine.study.candidates import Situation, candidates, with_spare
from engine.study.suggest import shortened

SECOND = {"kind": "linear", "overhead_s": 1.0}
TOKENS = {"dist": "constant", "value": 1}


def scenario(**changes: Any) -> Scenario:
    """Replicas that take a second a request, one at a time; ``__`` stands for a dot."""
    base = Scenario.from_dict(
        {
            "traffic": {"rate_rps": 0.9, "classes": [{"prompt_tokens": TOKENS, "output_tokens": TOKENS}]},
            "performance": SECOND,
            "batching": {"max_num_seqs": 1},
            "fleet": {"replicas": 1},
            "slo": [{"threshold_s": 3.0, "target": 0.95}],
            "run": {"seeds": 8, "horizon_s": 600.0, "warmup_s": 30.0},
        }
    )
    return base.replace({path.replace("__", "."): value for path, value in changes.items()})


def by_kind(found: tuple[Suggestion, ...]) -> dict[str, Suggestion]:
    assert len({s.kind for s in found}) == len(found), "one of a kind"
    return {s.kind: s for s in found}


def test_a_broken_promise_gets_what_helps_most_first() -> None:
    found = suggest(scenario(), most=10)
    assert [s.gain for s in found] == sorted((s.gain for s in found), reverse=True)
    assert min(s.gain for s in found) > 0
    assert found[0].kind == "replicas", "nothing is as good as twice the machines"
    assert (found[0].before, found[0].after) == (1, 2)
    assert {"replicas", "queue_timeout", "cap"} <= by_kind(found).keys()
    assert not {"fewer_replicas", "traffic", "stricter"} & by_kind(found).keys()


def test_a_suggestion_made_does_what_it_said() -> None:
    s = scenario()
    for told in suggest(s):
        now, then = (simulate(x).attainments[0].attainment for x in (s, s.replace(told.changes)))
        assert (told.attainment_before, told.attainment_after) == (now, then), "the whole run was short enough"


def test_a_cap_follows_from_capacity_and_promise() -> None:
    """One a second and 3 s promised: who finds two others has the first word after three seconds, the fourth late."""
    cap = by_kind(suggest(scenario(traffic__rate_rps=1.5), most=10))["cap"]
    assert 1 <= float(cap.after) <= 3
    assert cap.changes == {"admission.max_outstanding": cap.after}
    assert cap.attainment_after > 1.5 * cap.attainment_before


def test_a_cap_for_a_second_a_request_admits_only_who_is_in_time() -> None:
    s = scenario(traffic__rate_rps=1.5, slo__0__metric="e2e")
    cap = by_kind(suggest(s, most=10))["cap"]
    capped = simulate(s.replace(cap.changes))
    assert capped.latency["e2e"].figures["p95"] <= s.slo[0].threshold_s


def test_a_kept_promise_gets_what_it_leaves_room_for() -> None:
    found = by_kind(suggest(scenario(traffic__rate_rps=0.2, fleet__replicas=4), most=10))
    assert {"fewer_replicas", "traffic", "stricter"} <= found.keys()
    assert found["fewer_replicas"].after == 3
    assert float(found["stricter"].after) < 3.0
    assert all(s.attainment_after >= 0.95 for s in found.values())


def test_costs_are_those_of_the_fleet() -> None:
    s = scenario(hardware__price_per_gpu_hour=2.0)
    more = by_kind(suggest(s))["replicas"]
    assert more.cost_before is not None
    assert more.cost_after == pytest.approx(2 * more.cost_before)


def test_without_a_promise_there_is_nothing_to_suggest() -> None:
    assert suggest(scenario(slo=[])) == ()


def test_with_nobody_there_is_nothing_to_suggest() -> None:
    assert suggest(scenario(traffic__rate_rps=1e-6)) == ()


def test_changes_that_can_t_run_are_left_out() -> None:
    """Most of the chip's memory is the weights': whatever doesn't fit is no suggestion, and no error."""
    s = Scenario.from_dict(
        {
            "traffic": {"rate_rps": 3.0},
            "model": {"name": "Llama-3.1-8B", "weight_dtype": "bf16"},
            "hardware": {"accelerator": "A100-SXM4-80GB"},
            "parallelism": {"tp": 1},
            "batching": {"max_num_seqs": 16, "max_num_batched_tokens": 16},
            "run": {"seeds": 2, "horizon_s": 120.0, "warmup_s": 10.0},
        }
    )
    assert "chunk" not in by_kind(suggest(s, most=10)), "half of the tokens of a step would be fewer than its seats"


def test_smaller_steps_shorten_the_pauses_of_long_prompts() -> None:
    found = by_kind(suggest(preset("long-prompt").scenario))
    assert found["chunk"].changes == {"batching.max_num_batched_tokens": 2048}
    assert found["chunk"].gain > 0.03


@pytest.mark.parametrize("metric", ["ttft", "tpot", "max_itl", "e2e", "queue"])
def test_every_candidate_is_a_valid_change_of_one_thing(metric: str) -> None:
    s = preset("monday").scenario.replace({"slo.0.metric": metric})
    model = replica_model(s)
    found = list(candidates(Situation(s, model, 1.2, kept=True, kept_s=0.7)))
    assert len(found) > 3
    for candidate in found:
        assert s.replace(candidate.changes) != s
        assert candidate.before != candidate.after
    assert any(c.kind == "seats" for c in found) == (metric in ("tpot", "max_itl"))
    assert any(c.kind == "queue_timeout" for c in found) == (metric in ("ttft", "queue"))


@pytest.mark.parametrize(("users", "expected"), [(16, 32), (48, 64), (64, None), (100, None)])
def test_more_people_are_let_in_only_where_they_find_a_seat(users: int, expected: int | None) -> None:
    s = scenario(batching__max_num_seqs=64).replace({"traffic": {"process": "closed", "closed": {"users": users}}})
    found = [
        c.after for c in candidates(Situation(s, replica_model(s), 1.0, kept=True, kept_s=None)) if c.kind == "users"
    ]
    assert found == ([] if expected is None else [expected])


def test_two_pools_grow_and_shrink_one_at_a_time() -> None:
    """Readers of half a second a prompt, which are the scarce ones; the first word within 3 s."""
    slow = scenario(
        batching__policy="disaggregated", batching__disaggregated__decode_replicas=2, performance__overhead_s=0.5,
        traffic__rate_rps=1.9, traffic__classes=[{"prompt_tokens": TOKENS, "output_tokens": TOKENS | {"value": 2}}],
    )  # fmt: skip
    found = by_kind(suggest(slow, most=10))
    assert found["readers"].changes == {"batching.disaggregated.prefill_replicas": 2}
    assert "writers" not in found, "another writer makes no first word come sooner"
    assert "replicas" not in found
    kept = by_kind(
        suggest(slow.replace({"batching.disaggregated.prefill_replicas": 3, "traffic.rate_rps": 1.0}), most=10)
    )
    assert kept["fewer_readers"].changes == {"batching.disaggregated.prefill_replicas": 2}
    assert kept["fewer_writers"].changes == {"batching.disaggregated.decode_replicas": 1}
    assert (kept["fewer_writers"].cost_after or 0) < (kept["fewer_writers"].cost_before or 0)


def test_spare_replicas_keep_the_proportions_of_two_pools() -> None:
    pools = {"prefill_replicas": 2, "decode_replicas": 4}
    s = scenario(batching__policy="disaggregated", batching__disaggregated=pools)
    assert s.replace(with_spare(s, 3)).batching.disaggregated.model_dump() == s.batching.disaggregated.model_dump() | {
        "prefill_replicas": 3, "decode_replicas": 6,
    }  # fmt: skip


class TestShortened:
    def test_all_changes_are_tried_over_the_same_seconds(self) -> None:
        s = shortened(preset("monday").scenario, None, 100, 4)
        assert s.run.seeds == 4
        assert s.run.horizon_s is not None
        assert 100 < s.run.horizon_s < 300, "400 requests at 2.2 a second"
        assert s.run.warmup_s <= s.run.horizon_s / 4

    def test_a_short_run_stays_whole(self) -> None:
        s = scenario()
        assert shortened(s, None, 5_000, 64) == s

    @pytest.mark.parametrize("changes", [{"traffic.growth": {"prompt_factor": 2}}, {"traffic.shape": {"kind": "ramp"}}])
    def test_what_depends_on_the_end_keeps_it(self, changes: dict[str, Any]) -> None:
        s = scenario().replace(changes)
        assert shortened(s, None, 10, 4).run.horizon_s == s.run.horizon_s

    def test_a_large_fleet_gets_fewer_runs(self) -> None:
        s = preset("monday").scenario.replace({"fleet.replicas": 100, "traffic.rate_rps": 50.0})
        assert shortened(s, None, 600, 16).run.seeds == 2
