"""Who arrives, when, and with what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from engine.scenario.errors import Problem, show
from engine.scenario.fields import DAY, MAX_TOKENS, TINY_S, Section, param, section
from engine.scenario.schema.client import Client
from engine.scenario.schema.lengths import (
    ANSWER_MEAN,
    PROMPT_MEAN,
    AnswerLength,
    AnswerLognormal,
    Lognormal,
    PromptLength,
    clip_problems,
)
from engine.scenario.schema.shapes import AnyShape, Steady
from engine.scenario.schema.text import Text

DEFAULT_RATE_RPS = 4.0
MOST_CLASSES = 32


class Mmpp(Section):
    """A two-state Markov-modulated Poisson process: calm and burst, exponential stays, stationary at the start."""

    burst_ratio: float = param(
        4.0,
        label="Height of a burst",
        unit="times the mean rate",
        low=1.0,
        high=1000.0,
        step=0.5,
        usual=(1.0, 20.0),
        help="Rate in a burst over the mean rate.",
        why="four times the usual is a clear burst",
    )
    burst_fraction: float = param(
        0.1,
        label="Time in bursts",
        unit="share of time",
        low=1e-4,
        high=0.99,
        step=0.01,
        usual=(0.01, 0.5),
        help="Share of the time spent in bursts; times the height it is at most 1, and 1 means silence between bursts.",
        why="bursts are the exception",
    )
    mean_burst_s: float = param(
        20.0,
        label="Length of a burst",
        unit="s",
        low=TINY_S,
        high=DAY,
        log=True,
        usual=(1.0, 600.0),
        help="Average length of a burst.",
        why="long against a request's first word, short against a run",
    )

    def rules(self) -> Iterator[Problem]:
        if self.burst_ratio * self.burst_fraction > 1.0 + 1e-12:
            limit = 1.0 / self.burst_fraction
            yield Problem(
                "burst_ratio",
                show(self.burst_ratio),
                f"times burst_fraction ({self.burst_fraction:g}) is above 1: bursts would bring more than all traffic",
                f"give a burst_ratio up to {limit:g}, or a smaller burst_fraction",
                (limit,),
            )


class Closed(Section):
    """A fixed number of users, each waiting for the answer before asking again."""

    users: int = param(
        64,
        label="Users",
        unit="users",
        low=1,
        high=100_000,
        log=True,
        usual=(1, 2_000),
        help="How many users there are; no more requests than this are under way at once.",
        why="a usual concurrency of load tests",
    )
    think_s: float = param(
        0.0,
        label="Time to think",
        unit="s",
        low=0.0,
        high=DAY,
        step=0.5,
        usual=(0.0, 120.0),
        help="Average pause, exponential, between an answer and the user's next request.",
        why="load generators don't think",
    )
    ramp_s: float = param(
        10.0,
        label="Ramp",
        unit="s",
        low=0.0,
        high=DAY,
        step=1,
        usual=(0.0, 120.0),
        help="First requests are spread evenly over this time.",
        why="avoids a start in lockstep",
    )


class TraceSource(Section):
    """A recorded workload, replayed."""

    source: Text | None = param(
        None,
        label="Trace",
        null="no trace",
        shortest=1,
        longest=1024,
        help="Path of the file, or sha256: and the digest of an uploaded one.",
        why="there is no trace unless you bring one",
    )
    speed: float = param(
        1.0,
        label="Speed",
        unit="times",
        low=1e-3,
        high=1000.0,
        log=True,
        usual=(0.1, 10.0),
        help="The trace's times are divided by this: 2 replays it twice as fast.",
        why="as recorded",
    )
    format: Literal["auto", "requests", "azure", "burstgpt", "mooncake"] = param(
        "auto",
        label="Format",
        choices={
            "auto": "recognised by its header",
            "requests": "arrival_s, prompt_tokens, output_tokens",
            "azure": "Azure LLM inference trace",
            "burstgpt": "BurstGPT",
            "mooncake": "Mooncake, JSON lines",
        },
        help="How the file is written.",
        why="headers tell the formats apart",
    )
    resample: Literal["none", "blocks"] = param(
        "none",
        label="Resampling",
        choices={"none": "as recorded, the same for every seed", "blocks": "blocks of time drawn with replacement"},
        help="Whether seeds replay the trace itself or a shuffled version of it.",
        why="first see what really happened",
    )
    block_s: float = param(
        60.0,
        label="Length of a block",
        unit="s",
        low=1.0,
        high=DAY,
        step=10,
        usual=(10.0, 600.0),
        help="Length of the blocks that are drawn.",
        why="keeps bursts of up to a minute whole",
    )

    def rules(self) -> Iterator[Problem]:
        name, _, digest = (self.source or "").partition(":")
        if name == "sha256" and (len(digest) != 64 or set(digest) - set("0123456789abcdef")):
            yield Problem(
                "source", show(self.source), "is not a digest", "give sha256: and 64 lower-case hexadecimal digits"
            )


class TrafficClass(Section):
    """One kind of request among those that arrive."""

    name: Text = param(
        "chat",
        label="Name",
        shortest=1,
        longest=60,
        help="What this kind of request is called; no two alike.",
        why="the default class is a chat",
    )
    weight: float = param(
        1.0,
        label="Share",
        unit="weight",
        low=1e-9,
        high=1e9,
        step=0.1,
        usual=(0.1, 10.0),
        help="How often this class comes, relative to the others; above 0.",
        why="one class takes everything",
    )
    priority: int = param(
        0,
        label="Priority",
        unit="rank",
        low=-1_000_000,
        high=1_000_000,
        step=1,
        usual=(0, 9),
        flag="--scheduling-policy priority",
        help="Lower is more urgent: waits before, is preempted after the others.",
        why="all alike, first come first served",
    )
    prompt_tokens: PromptLength = section(
        Lognormal(mean=float(PROMPT_MEAN), cv=1.0, min=1, max=32_768),
        label="Prompt length",
        help="How many tokens a prompt has.",
        why="mean and, roughly, spread of a public chat trace (Azure, 2023)",
    )
    output_tokens: AnswerLength = section(
        AnswerLognormal(mean=float(ANSWER_MEAN), cv=0.9, min=1, max=8192),
        label="Answer length",
        help="How many tokens an answer has.",
        why="mean and, roughly, spread of a public chat trace (Azure, 2023)",
    )
    cached_prefix_tokens: int = param(
        0,
        label="Cached prefix",
        unit="tokens",
        low=0,
        high=MAX_TOKENS,
        step=64,
        usual=(0, 8192),
        flag="--enable-prefix-caching",
        help="Tokens at the start of every prompt that are cached and shared; a prompt keeps one of its own at least.",
        why="no two prompts are assumed to share anything",
    )

    def rules(self) -> Iterator[Problem]:
        for key, length in (("prompt_tokens", self.prompt_tokens), ("output_tokens", self.output_tokens)):
            for problem in clip_problems(length):
                yield problem.under(key)


class Growth(Section):
    """Prompts and answers that get longer (or shorter) in the course of a run, linearly."""

    prompt_factor: float = param(
        1.0,
        label="Prompt growth",
        unit="times",
        low=0.01,
        high=100.0,
        step=0.1,
        usual=(0.5, 5.0),
        help="Factor on prompt lengths at the end of the run.",
        why="no change unless asked for",
    )
    output_factor: float = param(
        1.0,
        label="Answer growth",
        unit="times",
        low=0.01,
        high=100.0,
        step=0.1,
        usual=(0.5, 5.0),
        help="Factor on answer lengths at the end of the run.",
        why="no change unless asked for",
    )


class Traffic(Section):
    """Everything about what arrives."""

    rate_rps: float = param(
        DEFAULT_RATE_RPS,
        label="Requests per second",
        unit="requests/s",
        low=1e-6,
        high=100_000.0,
        log=True,
        usual=(0.1, 200.0),
        help="Average rate of arrivals, before the shape is applied. A trace or fixed users bring their own.",
        why="a quiet service",
    )
    process: Literal["deterministic", "poisson", "gamma", "mmpp", "trace", "closed"] = param(
        "poisson",
        label="How requests arrive",
        choices={
            "deterministic": "evenly, like clockwork",
            "poisson": "independently of each other",
            "gamma": "in clumps, or more evenly, by the variation of gaps",
            "mmpp": "calm and bursts by turns",
            "trace": "as recorded in a file",
            "closed": "a fixed number of users, each waiting for an answer",
        },
        help="The law of the moments at which requests arrive.",
        why="many people who don't know of each other",
    )
    cv: float = param(
        1.0,
        label="Burstiness",
        unit="standard deviations per mean gap",
        low=0.01,
        high=20.0,
        step=0.1,
        usual=(0.1, 5.0),
        help="Coefficient of variation of the gaps between requests, for gamma: 1 is Poisson, bigger is burstier.",
        why="Poisson",
    )
    mmpp: Mmpp = section(Mmpp(), label="Bursts", help="Settings of process mmpp.", why="a tenth of the time busy")
    closed: Closed = section(Closed(), label="Fixed users", help="Settings of process closed.", why="a usual load test")
    shape: AnyShape = section(
        Steady(), label="Shape over time", help="How the rate changes in the course of a run.", why="nothing changes"
    )
    trace: TraceSource = section(
        TraceSource(), label="Trace", help="Settings of process trace.", why="there is no trace unless you bring one"
    )
    classes: tuple[TrafficClass, ...] = section(
        (TrafficClass(),),
        label="Classes",
        shortest=1,
        longest=MOST_CLASSES,
        help="The kinds of requests, each with its share, urgency and lengths.",
        why="one kind: a chat",
    )
    growth: Growth | None = section(
        None,
        label="Growth of lengths",
        null="lengths stay as they are",
        help="Whether traffic gets wordier in the course of a run.",
        why="nothing changes",
    )
    client: Client = section(
        Client(), label="Clients", help="What the callers do when they wait or are refused.", why="patient, no retries"
    )

    def rules(self) -> Iterator[Problem]:
        brings_own = {"trace": "the trace", "closed": "the number of users"}.get(self.process)
        if brings_own and self.rate_rps != DEFAULT_RATE_RPS:
            yield Problem(
                "rate_rps",
                show(self.rate_rps),
                f"has no effect with process {self.process}: {brings_own} sets the rate",
                f"leave rate_rps out (or at {DEFAULT_RATE_RPS:g})",
                (DEFAULT_RATE_RPS,),
            )
        if brings_own and self.shape.kind != "steady":
            yield Problem(
                "shape.kind",
                show(self.shape.kind),
                f"has no effect with process {self.process}: {brings_own} sets the rate",
                "use shape steady, or a process with a rate_rps",
            )
        for name, times in Counter(c.name for c in self.classes).items():
            if times > 1:
                yield Problem(
                    "classes", show(name), f"is the name of {times} classes", "give every class a name of its own"
                )
