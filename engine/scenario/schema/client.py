"""What the callers do: how long they wait, whether they try again."""

from __future__ import annotations

from typing import Literal

from engine.scenario.fields import HOUR, MINUTE, TINY_S, WEEK, Section, param, section


class Throttle(Section):
    """Adaptive throttling on the client's side: refuse locally with probability 1 - k * accepts / requests."""

    k: float = param(
        2.0,
        label="Generosity",
        unit="times what is accepted",
        low=1.0,
        high=100.0,
        step=0.1,
        usual=(1.0, 4.0),
        help="Requests are let through up to this many times what the service accepted lately.",
        why="the value that site reliability engineers recommend",
    )
    window_s: float = param(
        120.0,
        label="Memory",
        unit="s",
        low=1.0,
        high=HOUR,
        step=10,
        usual=(10.0, 600.0),
        help="How far back a client counts.",
        why="two minutes, as the method's authors do",
    )


class Client(Section):
    """Deadlines and retries of the callers, and what is measured at their end."""

    timeout_s: float | None = param(
        None,
        label="Patience",
        unit="s",
        low=TINY_S,
        high=WEEK,
        log=True,
        usual=(1.0, 600.0),
        null="waits for ever",
        help="A caller gives up when the last word isn't there after this time.",
        why="patient callers show the whole queue",
    )
    ttft_timeout_s: float | None = param(
        None,
        label="Patience for the first word",
        unit="s",
        low=TINY_S,
        high=WEEK,
        log=True,
        usual=(0.5, 120.0),
        null="waits for ever",
        help="A caller gives up when the first word isn't there after this time.",
        why="patient callers show the whole queue",
    )
    on_timeout: Literal["abort", "ignore"] = param(
        "abort",
        label="When a caller gives up",
        choices={"abort": "the server drops the request", "ignore": "the server goes on, and the work is wasted"},
        help="Whether the server notices.",
        why="servers notice a closed connection",
    )
    max_retries: int = param(
        0,
        label="Retries",
        unit="retries per request",
        low=0,
        high=100,
        step=1,
        usual=(0, 10),
        help="How often a refused or late request is tried again.",
        why="retries are a choice, and a risk",
    )
    backoff_s: float = param(
        1.0,
        label="Wait before a retry",
        unit="s",
        low=0.0,
        high=HOUR,
        step=0.5,
        usual=(0.0, MINUTE),
        help="A retry waits a random time up to this, doubled with each attempt.",
        why="a usual first value of client libraries",
    )
    retry_budget_ratio: float | None = param(
        None,
        label="Retry budget",
        unit="retries per first attempt",
        low=0.0,
        high=100.0,
        step=0.05,
        usual=(0.0, 1.0),
        null="no budget",
        help="Retries are made only while they are at most this share of first attempts.",
        why="most clients have none",
    )
    retry_layers: int = param(
        1,
        label="Layers that retry",
        unit="layers",
        low=1,
        high=10,
        step=1,
        help="How many layers of callers retry independently; their attempts multiply.",
        why="one caller, one policy",
    )
    throttle: Throttle | None = section(
        None,
        label="Client throttling",
        null="off",
        help="Whether clients refuse requests themselves when the service refuses many.",
        why="most clients don't",
    )
    fan_out: int = param(
        1,
        label="Calls per action",
        unit="requests per action",
        low=1,
        high=1000,
        step=1,
        usual=(1, 50),
        help="A user's action issues this many requests together and ends with the slowest; requests per second stay "
        "what they are.",
        why="one question, one call",
    )
    network_rtt_s: float = param(
        0.05,
        label="Network round trip",
        unit="s",
        low=0.0,
        high=MINUTE,
        step=0.01,
        usual=(0.0, 0.5),
        help="Added to what is measured at the client; nothing else sees it.",
        why="a continent's width",
    )
