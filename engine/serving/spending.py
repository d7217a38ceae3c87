"""What each request has cost so far, in tokens and seconds; kept only where work may turn out to be wasted."""

from __future__ import annotations

import numpy as np

from .book import Book
from .lanes import Floats, Ints
from .state import LaneState
from .work import Work


class Spending:
    """A step's seconds are shared out over the tokens that it works on.

    A decoding request works on one token a step, so its share of all steps since it began is a difference of
    ``per_token``, the lane's running sum of seconds a token.
    """

    def __init__(self, state: LaneState, book: Book) -> None:
        self.s = state
        self.tokens: Ints = np.zeros(book.total, np.int64)
        self.seconds: Floats = np.zeros(book.total)
        self.per_token: Floats = np.zeros(state.lane.size)
        self.steps: Ints = np.zeros(state.lane.size, np.int64)  # steps of each lane in which requests decoded
        self._step: Ints = np.full(book.total, -1, np.int64)  # ``steps`` when each began to decode; -1: it doesn't
        self._per_token: Floats = np.zeros(book.total)

    def keep(self, alive: np.ndarray) -> None:
        """Drop the lanes where ``alive`` is false; requests that still decode there stop."""
        self.close((~alive).nonzero()[0])
        self.per_token, self.steps = self.per_token[alive], self.steps[alive]

    def close(self, ended: Ints) -> None:
        """Requests that still decode in lanes ``ended`` stop."""
        row, column = (self.s.rid[ended] >= 0).nonzero()
        request = self.s.rid[ended[row], column].astype(np.int64)
        began = self._step[request] >= 0  # not so when the step that finishes its prompt never ends
        self.stop(ended[row][began], request[began])

    def grow(self, more: int) -> None:
        """Room for ``more`` requests."""
        for name, fill in (("tokens", 0), ("seconds", 0.0), ("_step", -1), ("_per_token", 0.0)):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full(more, fill, old.dtype)]))

    def advance(self, w: Work, seconds: Floats, tokens: Ints, k: Ints, end: Floats) -> None:
        """``k`` steps of ``tokens`` tokens take ``seconds`` up to ``end``, all (lanes,); called before anybody joins or
        leaves.

        A step that the horizon cuts off isn't charged to anybody.
        """
        whole = end <= self.s.hz
        each, k = np.where(whole, seconds / np.maximum(tokens, 1), 0.0), np.where(whole, k, 0)
        for i, request, q in w.reads or ():
            np.add.at(self.tokens, request, q * k.take(i))
            np.add.at(self.seconds, request, q * each.take(i))
        if w.stalled is not None:
            each, k = np.where(w.stalled, 0.0, each), np.where(w.stalled, 0, k)
        self.per_token += each
        self.steps += k

    def begin(self, i: Ints, request: Ints) -> None:
        """``request`` decodes in lanes ``i`` from now on."""
        self._step[request] = self.steps.take(i)
        self._per_token[request] = self.per_token.take(i)

    def stop(self, i: Ints, request: Ints) -> None:
        """``request`` decodes no more in lanes ``i``."""
        self.tokens[request] += self.steps.take(i) - self._step.take(request)
        self.seconds[request] += self.per_token.take(i) - self._per_token.take(request)
        self._step[request] = -1
