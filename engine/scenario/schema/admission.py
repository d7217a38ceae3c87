"""Who is refused, and who is next."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from engine.scenario.fields import HOUR, TINY_S, WEEK, Section, kind_of, param, section, tag


class RateLimit(Section):
    """A token bucket at the gateway; it starts full."""

    rate_rps: float = param(
        10.0,
        label="Rate allowed",
        unit="requests/s",
        low=1e-6,
        high=1e6,
        log=True,
        usual=(0.1, 1000.0),
        help="Requests per second that pass in the long run.",
        why="a little above the default traffic",
    )
    burst: float = param(
        10.0,
        label="Burst allowed",
        unit="requests",
        low=1.0,
        high=1e9,
        log=True,
        usual=(1.0, 1000.0),
        help="Requests that pass at once after a quiet time.",
        why="one second's worth",
    )


class Shed(Section):
    """Refusing a request whose first word is predicted to come too late."""

    ttft_s: float = param(
        2.0,
        label="Longest predicted wait",
        unit="s",
        low=TINY_S,
        high=WEEK,
        log=True,
        usual=(0.1, 60.0),
        help="A request whose predicted time to the first word (TTFT) is longer is refused.",
        why="the default promise",
    )


class Fifo(Section):
    """First come, first served."""

    kind: Literal["fifo"] = tag("fifo", "first come, first served")


class Codel(Section):
    """Controlled delay: refuse at the head when waits have been too long for a while."""

    kind: Literal["codel"] = tag("codel", "drops when waits stay too long")
    target_s: float = param(
        1.0,
        label="Acceptable wait",
        unit="s",
        low=TINY_S,
        high=HOUR,
        log=True,
        usual=(0.01, 30.0),
        help="Waits below this are fine.",
        why="half of the default promise",
    )
    interval_s: float = param(
        10.0,
        label="Patience",
        unit="s",
        low=TINY_S,
        high=HOUR,
        log=True,
        usual=(0.1, 120.0),
        help="How long waits must stay above the target before anybody is dropped.",
        why="ten times the target",
    )


class AdaptiveLifo(Section):
    """Last come, first served while the queue is old."""

    kind: Literal["adaptive_lifo"] = tag("adaptive_lifo", "newest first while the queue is old")
    after_s: float = param(
        5.0,
        label="Turns after",
        unit="s",
        low=0.0,
        high=HOUR,
        step=0.5,
        usual=(0.0, 60.0),
        help="The order turns when the oldest has waited this long.",
        why="well above the default promise",
    )


Discipline = Annotated[
    Annotated[Fifo, Tag("fifo")] | Annotated[Codel, Tag("codel")] | Annotated[AdaptiveLifo, Tag("adaptive_lifo")],
    Discriminator(kind_of("kind", "fifo")),
]


class Admission(Section):
    """Who is refused, and when."""

    max_outstanding: int | None = param(
        None,
        label="Most requests per replica",
        unit="requests",
        low=0,
        high=1_000_000_000,
        log=True,
        usual=(1, 4096),
        flag="--max-num-queued-reqs",
        null="no limit",
        help="A replica with this many requests, running and waiting, refuses the next.",
        why="vLLM refuses nobody by default",
    )
    max_queued_tokens: int | None = param(
        None,
        label="Most waiting tokens per replica",
        unit="tokens",
        low=0,
        high=1_000_000_000_000,
        log=True,
        usual=(1_000, 10_000_000),
        flag="--max-num-queued-tokens",
        null="no limit",
        help="A replica with this many prompt tokens waiting refuses the next.",
        why="vLLM refuses nobody by default",
    )
    queue_timeout_s: float | None = param(
        None,
        label="Longest wait in the queue",
        unit="s",
        low=TINY_S,
        high=WEEK,
        log=True,
        usual=(0.1, 300.0),
        null="no limit",
        help="A request that isn't begun by then is dropped.",
        why="off, as in vLLM",
    )
    rate_limit: RateLimit | None = section(
        None, label="Rate limit", null="off", help="A token bucket at the gateway.", why="off unless set"
    )
    shed: Shed | None = section(
        None, label="Early refusal", null="off", help="Refuses who would wait too long.", why="off unless set"
    )
    discipline: Discipline = section(
        Fifo(), label="Order of the queue", help="Who is next, and who is dropped.", why="first come, first served"
    )
