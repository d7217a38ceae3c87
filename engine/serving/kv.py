"""KV policies: who fits into a lane's KV cache, in tokens."""

from __future__ import annotations

import numpy as np

from .book import Book
from .lanes import Bools, Floats, Ints, Lanes
from .state import LaneState
from .work import Work


def can_run_out(lanes: Lanes) -> bool:
    """Whether KV can ever keep somebody waiting: not where every seat may be taken by the longest of the requests."""
    asked = lanes if lanes.closed is None else lanes.closed
    answer = max(int(asked.output_tokens.max(initial=0)), lanes.reserve_output_tokens or 0)
    longest = float(asked.prompt_tokens.max(initial=0)) + answer if lanes.fed is None else float(lanes.fed.longest)
    return bool((lanes.max_num_seqs * longest > lanes.kv_capacity_tokens * (1 - lanes.watermark)).any())


class OnDemand:
    """vLLM's: a request fits when what is held, this step's tokens and its whole prompt do; later growth may
    preempt."""

    grows = True
    """Whether a waiting head can stop fitting while the running requests grow."""

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        self.s, self.book = state, book
        self.watermark = lanes.watermark
        self.bounded = can_run_out(lanes)

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""

    def fits(self, w: Work, i: Ints, request: Ints, size: Ints) -> Bools:
        """Whether ``request``, with ``size`` tokens to prefill, may start in each lane of ``i``."""
        need = self.s.held.take(i) + w.n.take(i) + size
        if w.chunks is not None:
            need += w.chunks.q.take(i)
        if self.watermark:
            return np.asarray(need <= np.where(self.s.inside.take(i) > 0, self.limit(i), self.s.cap.take(i)), np.bool_)
        return np.asarray(need <= self.s.cap.take(i), np.bool_)

    def limit(self, i: Ints) -> Floats | Ints:
        """What newcomers to lanes that already run something must stay within, tokens, not rounded."""
        cap = self.s.cap.take(i)
        return np.asarray(cap * (1 - self.watermark)) if self.watermark else cap

    def start(self, i: Ints, request: Ints, size: Ints) -> None:
        """A request starts in each lane of ``i``."""

    def finish(self, i: Ints, request: Ints, size: Ints) -> None:
        """``request``, which had ``size`` tokens of its own to prefill, leaves each lane of ``i`` for good."""

    def need(self, request: Ints, size: Ints) -> Ints:
        """KV tokens that a request counts with when it starts."""
        return size

    def release_all(self, i: Ints) -> None:
        """Nothing runs any more in lanes ``i``."""

    def steps_left(self, w: Work, tokens: Ints, k: Ints) -> None:
        """Cut ``k`` to the steps before the KV is full."""
        if self.bounded:
            i = (self.s.held + k * tokens > self.s.cap).nonzero()[0]
            if i.size:
                k[i] = (self.s.cap[i] - self.s.held[i]) // tokens[i]

    def overflowing(self, w: Work) -> Ints:
        """Lanes whose running requests can't all make this step."""
        return (self.s.held + w.tokens > self.s.cap).nonzero()[0] if self.bounded else np.empty(0, np.int64)


class Reserve(OnDemand):
    """A request fits when everybody's prompts and answers do, its own included; nobody is ever preempted."""

    grows = False

    def __init__(self, lanes: Lanes, state: LaneState, book: Book) -> None:
        super().__init__(lanes, state, book)
        self.reserved: Ints = np.zeros(lanes.count, np.int64)
        self.output = lanes.reserve_output_tokens
        """What is reserved for an answer of any length, tokens; its own length where ``None``."""

    def keep(self, alive: Bools) -> None:
        """Drop the lanes where ``alive`` is false."""
        self.reserved = self.reserved[alive]

    def fits(self, w: Work, i: Ints, request: Ints, size: Ints) -> Bools:
        """Whether ``request``, with ``size`` tokens to prefill, may start in each lane of ``i``."""
        need = self.reserved.take(i) + self.need(request, size)
        return np.asarray(need <= self.s.cap.take(i), np.bool_)

    def start(self, i: Ints, request: Ints, size: Ints) -> None:
        """A request starts in each lane of ``i``."""
        self.reserved[i] += self.need(request, size)

    def finish(self, i: Ints, request: Ints, size: Ints) -> None:
        """``request``, which had ``size`` tokens of its own to prefill, leaves each lane of ``i`` for good."""
        self.reserved[i] -= self.need(request, size)

    def need(self, request: Ints, size: Ints) -> Ints:
        """KV tokens that a request counts with when it starts."""
        return size + self._answer(self.book.output.take(request))

    def release_all(self, i: Ints) -> None:
        """Nothing runs any more in lanes ``i``."""
        self.reserved[i] = 0

    def _answer(self, output: Ints) -> Ints | int:
        return output if self.output is None else self.output

    def steps_left(self, w: Work, tokens: Ints, k: Ints) -> None:
        """Nothing to cut: what is reserved never runs out."""

    def overflowing(self, w: Work) -> Ints:
        """No lane ever."""
        return np.empty(0, np.int64)


KV_POLICIES: dict[str, type[OnDemand]] = {"on_demand": OnDemand, "reserve": Reserve}
