"""What is promised, and how long and how often it is put to the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from engine.scenario.errors import Problem, show
from engine.scenario.fields import DAY, HOUR, WEEK, Section, param
from engine.scenario.schema.text import Text

Failure = Literal["rejected", "timed_out", "unfinished"]
MOST_OBJECTIVES = 20


class Objective(Section):
    """A service level objective: this share of requests within this time."""

    name: Text = param(
        "first word",
        label="Name",
        shortest=1,
        longest=60,
        help="What the promise is called; no two alike.",
        why="the default promise is about the first word",
    )
    metric: Literal["ttft", "tpot", "max_itl", "e2e", "queue"] = param(
        "ttft",
        label="What is promised",
        choices={
            "ttft": "time to the first word (TTFT)",
            "tpot": "average gap between words (TPOT)",
            "max_itl": "longest gap between words",
            "e2e": "time to the last word (E2E)",
            "queue": "wait before any work",
        },
        help="The time that is measured.",
        why="the first word is what people wait for",
    )
    threshold_s: float = param(
        2.0,
        label="Within",
        unit="s",
        low=0.0,
        high=WEEK,
        log=True,
        usual=(0.01, 120.0),
        help="A request is good when its time is at most this.",
        why="a usual promise for a chat",
    )
    target: float = param(
        0.95,
        label="For this share",
        unit="share of requests",
        low=0.0,
        high=1.0,
        step=0.005,
        usual=(0.5, 0.999),
        help="Share of requests that must be good; 1 leaves no error budget.",
        why="nineteen of twenty",
    )
    window_s: float = param(
        300.0,
        label="Window",
        unit="s",
        low=1.0,
        high=31 * DAY,
        log=True,
        usual=(10.0, HOUR),
        help="Time over which the share is judged.",
        why="short enough to show a bad five minutes",
    )
    window: Literal["rolling", "calendar"] = param(
        "rolling",
        label="Kind of window",
        choices={"rolling": "moves along", "calendar": "one after the other"},
        help="How windows follow each other.",
        why="a bad stretch can't hide between two windows",
    )
    measured_at: Literal["server", "gateway", "client"] = param(
        "gateway",
        label="Measured at",
        choices={
            "server": "the replica: refusals are invisible",
            "gateway": "the router: refusals are visible",
            "client": "the caller: retries and network included",
        },
        help="Where the clock stands.",
        why="the first place that sees everybody",
    )
    failures: tuple[Failure, ...] = param(
        ("rejected", "timed_out", "unfinished"),
        label="Counts as broken",
        longest=3,
        choices={
            "rejected": "refused",
            "timed_out": "too late for the caller",
            "unfinished": "still under way at the end",
        },
        help="Ends that count against the promise; at the server a refusal never counts.",
        why="whoever got no answer wasn't served",
    )

    def rules(self) -> Iterator[Problem]:
        for state, times in Counter(self.failures).items():
            if times > 1:
                yield Problem("failures", show(state), f"is listed {times} times", "list every state once")


class Run(Section):
    """How long is simulated, how often, and with which random numbers."""

    horizon_s: float | None = param(
        900.0,
        label="Simulated time",
        unit="s",
        low=1e-3,
        high=WEEK,
        log=True,
        usual=(60.0, 4 * HOUR),
        null="until a trace's last request has ended",
        help="Length of a run; up to seven days.",
        why="a quarter of an hour holds a rise, a peak and a fall",
    )
    warmup_s: float = param(
        60.0,
        label="Warm-up",
        unit="s",
        low=0.0,
        high=WEEK,
        step=10,
        usual=(0.0, 600.0),
        help="Arrivals before this aren't counted: the service starts empty.",
        why="several times what a request takes",
    )
    seeds: int = param(
        16,
        label="Repetitions",
        unit="seeds",
        low=1,
        high=1024,
        log=True,
        usual=(1, 256),
        help="How many runs with different random numbers are pooled; their spread gives the uncertainty.",
        why="enough for a 95 % interval that means something",
    )
    seed: int = param(
        1,
        label="First seed",
        unit="seed",
        low=0,
        high=4_294_967_295,
        step=1,
        usual=(0, 9999),
        help="Run i uses this plus i: the same seed gives the same requests.",
        why="any number will do, the same for everybody",
    )

    def rules(self) -> Iterator[Problem]:
        if self.horizon_s is not None and self.warmup_s >= self.horizon_s:
            yield Problem(
                "warmup_s",
                show(self.warmup_s),
                f"is not below horizon_s ({show(self.horizon_s)}): nothing would be counted",
                "give a shorter warm-up or a longer horizon",
                (0,),
            )
