"""What one round's steps do: the policy fills this in, the clock reads it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .lanes import Bools, Ints

_MANY = 2**40


@dataclass(slots=True)
class Chunks:
    """Prompt reading, an entry a live lane."""

    q: Ints
    """Prompt tokens in chunks."""
    count: Ints
    """Requests that those chunks belong to."""
    ctx: Ints
    """Sum of the contexts before the chunks."""
    pairs: Ints
    """A of the step-time formula."""
    k_max: Ints
    """Most steps that this choice can last."""


@dataclass(slots=True)
class Work:
    """One choice of work, an entry a live lane."""

    n: Ints
    """Decoding requests, one token each."""
    chunks: Chunks | None = None
    """``None`` when no lane reads a prompt: then nothing of it costs anything."""
    preempted: Bools | None = None
    """Lanes in which somebody was preempted before this step."""
    going: Ints | None = None
    """Lanes whose partly prefilled request reads on without finishing, by ``chunks.q`` tokens a step."""
    reads: list[tuple[Ints, Ints, Ints]] | None = None
    """(lanes, requests, tokens a step) of every chunk, where somebody keeps account."""
    stalled: Bools | None = None
    """Lanes in which the decoding requests stand still in this step; ``n`` is 0 there, and no step number passes."""
    standing: Ints | None = None
    """How many stand still in each lane, under a policy that lets them."""
    gaps: Ints | None = None
    """Decoding requests whose gaps the step log stands for, where that isn't ``n``."""
    joins: list[tuple[Ints, Ints]] = field(default_factory=list)
    """(lanes, requests) that go on by themselves after this step: their prompt is finished by it, or in lanes that only
    decode their KV has come before it; no lane twice in one pair."""

    def open(self) -> Chunks:
        """The chunks, allocated once a round."""
        if self.chunks is None:
            size = self.n.size
            q, count, ctx, pairs = np.zeros((4, size), np.int64)
            self.chunks = Chunks(q, count, ctx, pairs, np.full(size, _MANY, np.int64))
        return self.chunks

    @property
    def tokens(self) -> Ints:
        """T: tokens worked on, by which the KV held grows in each step."""
        return self.n if self.chunks is None else self.n + self.chunks.q
