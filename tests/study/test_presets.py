"""Each preset tells the story that it was chosen for."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Result, Scenario, simulate
from engine.outcome.fan_out import fan_out
from engine.outcome.promises import terms
from engine.outcome.relief import relief
from engine.scenario import preset
from engine.study import Layout, layout_outcome

MINUTE = 60.0


def late_by_minute(result: Result) -> np.ndarray:
    """Share of the requests of each minute that missed the first promise."""
    a, scored = result.run.attempts, result.scored(result.scenario.slo[0])
    minute = (a.arrival_s // MINUTE).astype(int)
    valid = np.bincount(minute[scored.valid])
    return 1 - np.bincount(minute[scored.good], minlength=valid.size) / valid


def run(name: str, **changes: object) -> Result:
    """The preset with settings changed; ``__`` stands for a dot."""
    scenario: Scenario = preset(name).scenario
    return simulate(scenario.replace({path.replace("__", "."): value for path, value in changes.items()}))


def test_monday_is_fine_on_average_and_not_at_nine() -> None:
    result = run("monday")
    promise, late = result.attainments[0], late_by_minute(result)
    assert promise.met
    assert 3 <= 1 / late.max() <= 12, "one in a few in the busiest minute"
    assert late.argmax() in (5, 6), "which is that of the spike"
    assert np.median(late) < 0.02


def test_monday_without_its_spike_has_no_bad_minute() -> None:
    late = late_by_minute(run("monday", traffic__shape={"kind": "steady"}))
    assert late.max() < 0.1


def test_the_average_lies_only_when_requests_come_in_clumps() -> None:
    clumped, even = run("average-lies"), run("average-lies", traffic__cv=1)
    assert clumped.attainments[0].met is False
    assert even.attainments[0].met is True
    assert (even.attainments[0].per_seed >= 0.95).all()
    counts = [r.summary()["requests"]["offered"] for r in (clumped, even)]
    assert abs(counts[0] / counts[1] - 1) < 0.03, "the same number of requests"
    assert clumped.capacity_rps is not None
    assert 0.75 * 4 * clumped.capacity_rps > 2.8, "far below what the fleet can serve"


def words_per_second(group: int) -> float:
    """Output tokens a second on ``one-read`` with so many people in the group."""
    result = run("one-read", traffic__closed__users=group)
    assert abs(result.summary()["replica"]["mean_batch"] - group) < 0.05 * group
    return float(result.throughput["output_tokens_per_s"])


def test_one_read_serves_eight_nearly_eight_times_and_twice_sixty_four_only_a_little_more() -> None:
    one, eight, many, more = (words_per_second(group) for group in (1, 8, 64, 128))
    assert 6.5 <= eight / one <= 8.0
    assert 1.1 <= more / many <= 1.4


def test_wordier_traffic_shrinks_the_group_until_refusals_begin() -> None:
    result = run("wordy")
    frame = result.timeline.groupby("t_s").sum(numeric_only=True).reset_index()
    third = result.scenario.run.horizon_s / 3
    first, last = frame[frame.t_s < third], frame[frame.t_s >= 2 * third]
    assert first.rejected_queue_full.sum() == 0
    assert last.rejected_queue_full.sum() > 0.1 * last.offered.sum()
    full = result.timeline[result.timeline.limited_kv > 0.5]
    early, late = full[full.t_s < 1.5 * third], full[full.t_s >= 2.5 * third]
    assert late.running.mean() < 0.75 * early.running.mean(), "fewer conversations fit, though nothing was set"


def test_a_long_prompt_pauses_everybodys_words_and_smaller_chunks_shorten_the_pause() -> None:
    coarse, fine = run("long-prompt"), run("long-prompt", batching__max_num_batched_tokens=2048)
    pauses = [r.latency["itl"].figures["p999"] for r in (coarse, fine)]
    assert pauses[0] > 2 * pauses[1]
    assert (coarse.attainments[0].met, fine.attainments[0].met) == (False, True)


def test_a_pages_median_is_about_a_calls_96th_percentile() -> None:
    result = run("fan-out")
    found = fan_out(result)
    assert found.calls == 20
    assert found.median_as_call == pytest.approx(0.96, abs=0.006)
    assert found.median_as_call < 0.5 ** (1 / 20), "exactly 96.6 % for independent calls; these share their queues"
    assert found.independent_s[0.5][19] > found.action_s[0.5]
    assert result.attainments[0].met, "19 calls in 20 are in time"
    assert found.action_s[0.5] > result.scenario.slo[0].threshold_s, "half of the pages aren't"


def served_in_time(result: Result, from_s: float, width_s: float = 30.0) -> np.ndarray:
    """Answers in time for each first attempt, in stretches of ``width_s`` from ``from_s`` on; all runs together."""
    a, edges = result.run.attempts, np.arange(from_s, result.scenario.run.horizon_s + width_s / 2, width_s)
    in_time = result.requests.state.eq("completed") & (result.ttft_s <= result.scenario.slo[0].threshold_s)
    answers, _ = np.histogram(a.finish_s[in_time.to_numpy()], edges)
    asked, _ = np.histogram(a.arrival_s[a.attempt == 0], edges)
    return answers / asked


RUSH_OVER_S = 60.0 + 10.0 + 45.0 + 10.0
"""The spike's start, rise, hold and fall."""


def test_the_storm_outlasts_its_trigger_for_as_long_as_the_run_goes_on() -> None:
    storm = run("retry-storm", run__horizon_s=720.0, run__seeds=2)
    attempts, capacity = storm.run.attempts, storm.capacity_rps
    assert capacity is not None
    after = attempts.arrival_s >= RUSH_OVER_S
    rates = [
        (after & which).sum() / 2 / (720.0 - RUSH_OVER_S) for which in (attempts.attempt == 0, attempts.attempt >= 0)
    ]
    assert rates[0] < 0.7 * 4 * capacity, "what people ask for could be served"
    assert rates[1] > 1.5 * 4 * capacity, "what their clients send couldn't"
    assert (served_in_time(storm, RUSH_OVER_S + 30) < 0.5).all()
    assert (served_in_time(storm, 300.0) < 0.1).all()


def test_without_its_trigger_there_is_no_storm() -> None:
    calm = run("retry-storm", traffic__shape={"kind": "steady"})
    assert served_in_time(calm, 180.0).mean() > 0.9
    assert calm.attainments[0].met


@pytest.mark.parametrize(
    "remedy",
    [
        {"traffic__client__retry_budget_ratio": 0.1},
        {"admission__shed": {"ttft_s": 2.0}},
        {"traffic__client__on_timeout": "abort"},
    ],
    ids=["retry budget", "shedding", "abort"],
)
def test_the_storm_passes_with(remedy: dict[str, object]) -> None:
    assert served_in_time(run("retry-storm", **remedy), 270.0).mean() > 0.9


def test_saying_no_to_a_few_keeps_the_others_on_time() -> None:
    everybody, few = run("say-no"), run("say-no", admission__shed={"ttft_s": 1.0})
    assert everybody.attainments[0].attainment < 0.1
    assert served_in_time(everybody, 240.0).max() < 0.02, "accept all and nobody is"
    requests = few.summary()["requests"]
    assert requests["rejected"] < requests["offered"] / 8, "a few are refused"
    assert few.attainments[0].good > 0.97 * (few.attainments[0].valid - requests["rejected"]), (
        "and the rest are on time"
    )


def test_help_arrives_nine_minutes_after_it_is_ordered() -> None:
    result = run("nine-minutes")
    assert {e.seed for e in result.episodes or ()} == set(range(result.scenario.run.seeds)), "every run has the burst"
    for e in result.episodes or ():
        assert e.provisioning_s == 540.0, "the first decision suffices"
        assert e.detection_s is not None
        assert 15 <= e.detection_s <= 75, "noticed and decided within about a minute"
        assert e.lag_s == e.detection_s + 540.0
        assert e.drained_s is not None
    told = relief(result)
    assert told is not None
    assert sum(part.seconds for part in told.parts if part.stage != "drain") == told.typical
    assert told.harmed > 0.3 * told.offered
    assert told.traps == ()
    assert result.attainments[0].met is False


def test_this_threshold_can_be_signed_to_95_percent_and_not_to_99() -> None:
    result = run("promise")
    told, threshold = terms(result), result.scenario.slo[0].threshold_s
    assert told is not None
    signed = {s.target: s for s in told.by_target}
    assert signed[0.95].ci95_s is not None
    assert signed[0.95].ci95_s[1] <= threshold, "beyond doubt"
    assert signed[0.99].threshold_s is not None
    assert signed[0.99].threshold_s > 5 * threshold
    place = {c.value: c.share for c in told.choices if c.part == "place"}
    assert place["server"] > place["gateway"] > place["client"]
    assert place["server"] - place["client"] > 0.015, "the server's own figures flatter"
    assert 1 - place["client"] > 2 * (1 - place["server"]), "at the client more than twice as many are late or lost"


def test_the_packings_scenario_is_a_service_that_holds() -> None:
    # What fits where is told by the placement page (tests/placement/test_needs.py, tests/ui/test_packing_words.py).
    assert run("packing", run__seeds=2).attainments[0].met


def test_splitting_buys_pace_and_copies_buy_throughput() -> None:
    scenario = preset("split-or-copy").scenario
    copies, two, four = (layout_outcome(scenario, Layout(tp, 1, 1, 8 // tp), seeds=1) for tp in (1, 2, 4))
    paces, gives = ([getattr(o, what) for o in (copies, two, four)] for what in ("tokens_per_user", "tokens_per_gpu"))
    assert paces == sorted(paces)
    assert gives == sorted(gives, reverse=True)
    assert [o.met for o in (copies, two, four)] == [False, True, True], "eight copies are too slow a read"
