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
        self._step: Ints = np.zeros(book.total, np.int64)  # of the lane when each began to decode
        self._per_token: Floats = np.zeros(book.total)

    def keep(self, alive: np.ndarray) -> None:
        """Drop the lanes where ``alive`` is false; requests that still decode there stop."""
        ended = (~alive).nonzero()[0]
        row, column = (self.s.rid[ended] >= 0).nonzero()
        self.stop(ended[row], self.s.rid[ended[row], column].astype(np.int64))
        self.per_token = self.per_token[alive]

    def advance(self, w: Work, seconds: Floats, tokens: Ints, k: Ints) -> None:
        """``k`` steps of ``tokens`` tokens took ``seconds``, all (lanes,); called before anybody joins or leaves."""
        each = seconds / np.maximum(tokens, 1)
        for i, request, q in w.reads or ():
            np.add.at(self.tokens, request, q * k.take(i))
            np.add.at(self.seconds, request, q * each.take(i))
        self.per_token += each if w.stalled is None else np.where(w.stalled, 0.0, each)

    def begin(self, i: Ints, request: Ints) -> None:
        """``request`` decodes in lanes ``i`` from now on."""
        self._step[request] = self.s.step.take(i)
        self._per_token[request] = self.per_token.take(i)

    def stop(self, i: Ints, request: Ints) -> None:
        """``request`` decodes no more in lanes ``i``."""
        self.tokens[request] += self.s.step.take(i) - self._step.take(request)
        self.seconds[request] += self.per_token.take(i) - self._per_token.take(request)
