"""Closed loop: a fixed number of users, each of whom asks again after thinking about the last answer.

When a request comes isn't known before those before it have ended, so this room only says what each user asks for and
how long it thinks; the serving room's clock does the rest. User u draws from streams of its own (``prompt/u`` and so
on), so its requests are the same whatever the others do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.scenario import ScenarioError
from engine.traffic import classes, streams
from engine.traffic.lengths import lengths
from engine.traffic.prefix import usable_prefix
from engine.traffic.requests import MOST_REQUESTS

if TYPE_CHECKING:
    from engine.scenario import Run, Traffic


@dataclass(frozen=True, slots=True)
class Users:
    """What one seed's users ask for, user after user: more requests than fit into the horizon."""

    first_s: NDArray[np.float64]
    """(users,): when each asks first, seconds."""
    start: NDArray[np.int64]
    """(users + 1,): user u's requests are ``start[u]:start[u + 1]`` of the arrays below."""
    think_s: NDArray[np.float64]
    """Pause before each request; a user's first doesn't count."""
    prompt_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    cached_prefix_tokens: NDArray[np.int32]
    class_id: NDArray[np.int16]
    priority: NDArray[np.int32]
    class_names: tuple[str, ...]


def users(traffic: Traffic, run: Run, seed: int, token_s: float, shortest_s: float) -> Users:
    """What the users of one seed ask for.

    ``token_s`` is the least time that an output token takes and ``shortest_s`` the least time until a request that
    isn't served to its end is over (infinity: all are), seconds; they bound how many requests a user can make before
    the horizon.
    """
    assert run.horizon_s is not None, "the scenario room refuses a closed loop without a horizon"
    closed, count = traffic.closed, traffic.closed.users
    first = streams.stream(seed, streams.RAMP).random(count) * closed.ramp_s
    parts = [_user(traffic, seed, u, run.horizon_s - float(first[u]), token_s, shortest_s) for u in range(count)]
    start = np.concatenate([[0], np.cumsum([part[0].size for part in parts])]).astype(np.int64)
    if start[-1] > MOST_REQUESTS:
        raise ScenarioError.of(
            "traffic.closed.users", str(count), f"could make {start[-1]:,} requests in this horizon",
            f"at most {MOST_REQUESTS:,} a run: fewer users, a shorter horizon or more time to think",
        )  # fmt: skip
    think, prompt, output, prefix, class_id = (np.concatenate(column) for column in zip(*parts, strict=True))
    priority = np.array([kind.priority for kind in traffic.classes], np.int32)[class_id]
    names = tuple(kind.name for kind in traffic.classes)
    return Users(first, start, think, prompt, output, prefix, class_id, priority, names)


_Part = tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int16]]


def _user(traffic: Traffic, seed: int, u: int, left_s: float, token_s: float, shortest_s: float) -> _Part:
    """One user's requests: enough to fill ``left_s`` seconds even if each is over as soon as it can be."""
    size = 16
    while True:
        think = streams.stream(seed, f"{streams.THINK}/{u}").standard_exponential(size) * traffic.closed.think_s
        uniforms = [
            streams.stream(seed, f"{name}/{u}").random(size) for name in (streams.CLASS, streams.PROMPT, streams.OUTPUT)
        ]
        class_id = classes.choose([kind.weight for kind in traffic.classes], uniforms[0])
        prompt, output, prefix = np.empty((3, size), np.int32)
        for i, kind in enumerate(traffic.classes):
            rows = np.flatnonzero(class_id == i)
            prompt[rows] = lengths(kind.prompt_tokens, uniforms[1][rows])
            output[rows] = lengths(kind.output_tokens, uniforms[2][rows])
            prefix[rows] = usable_prefix(kind.cached_prefix_tokens, prompt[rows])
        over = np.cumsum(np.minimum(output * token_s, shortest_s) + np.append(think[1:], 0.0))
        enough = int(np.searchsorted(over, left_s)) + 1
        if enough <= size or size > MOST_REQUESTS:
            keep = slice(0, min(enough, size))
            return think[keep], prompt[keep], output[keep], prefix[keep], class_id[keep]
        size *= 2
