"""The policy ``chunked``: continuous batching with chunked prefill (vLLM's V1 scheduler).

A step gives each decoding request one token, continues the partly prefilled request with what is left of the token
budget, then admits waiting requests in order while budget, ``max_num_seqs`` and KV allow.
"""

from __future__ import annotations

import numpy as np

from .lanes import Ints
from .policy import Policy
from .work import Work


class Chunked(Policy):
    """Continuous batching; at most one request of a lane is partly prefilled."""

    def choose(self) -> Work:
        """The work of the next step of each lane."""
        w = self._work(self.s.decoding())
        partly = self.s.partly() if self.s.partial else None
        if partly is not None:
            self._continue_partial(w, partly)
        i = self.kv.overflowing(w)
        if i.size:
            self._preempt(w, i)
            partly = self.s.partly() if self.s.partial else None
        if partly is not None:
            self._settle_partial(w, partly)
        self._admit(w)
        return w

    def _continue_partial(self, w: Work, i: Ints) -> None:
        """Give the partly prefilled request of each lane of ``i`` what the decoding requests leave of the budget."""
        s, c = self.s, w.open()
        left, ctx = s.part_left.take(i), s.part_ctx.take(i)
        q = np.minimum(left, s.budget.take(i) - w.n.take(i))
        c.q[i] = q
        c.count[i] = 1
        c.ctx[i] = ctx
        if self.has_pairs:
            c.pairs[i] = q * ctx + (q * (q + 1) >> 1)
        c.k_max[i] = np.maximum((left - 1) // q, 1)  # whole chunks before the one that finishes the prompt

    def _settle_partial(self, w: Work, i: Ints) -> None:
        """Requests whose last chunk this is will decode from the next step on; the others go on reading."""
        s = self.s
        if not i.size:
            return
        q = w.open().q.take(i)
        if w.reads is not None:
            w.reads.append((i, s.part.take(i), q))
        last = s.part_left.take(i) == q
        if np.count_nonzero(last):
            j = i[last]
            self._join(w, j, s.part[j], s.step[j])
            s.part[j] = -1
            self.s.partial -= j.size
        w.going = i[~last]

    def _preempt(self, w: Work, i: Ints) -> None:
        """Free KV in lanes ``i``, last admitted first, until the step's tokens fit; nobody is admitted in that step."""
        s, c = self.s, w.open()
        w.preempted = np.zeros(w.n.size, np.bool_)
        w.preempted[i] = True
        while i.size:
            order = self.book.last_admitted(s.rid[i])
            column = order.argmax(axis=1)
            from_part = self.book.last_admitted(s.part[i]) > order[np.arange(i.size), column]
            if np.count_nonzero(from_part):
                self._preempt_partial(w, i[from_part])
            j, column = i[~from_part], column[~from_part]
            if j.size:
                self._preempt_decoding(w, j, column)
                again = j[s.part[j] >= 0]
                if again.size:  # the partly prefilled request may take what the victim leaves of the budget
                    self._continue_partial(w, again)
            i = i[s.held[i] + w.n[i] + c.q[i] > s.cap[i]]
        c.k_max[w.preempted] = 1

    def _preempt_partial(self, w: Work, i: Ints) -> None:
        s, c = self.s, w.open()
        request = s.part[i]
        s.held[i] -= s.part_ctx[i] - self.book.cached[request]
        s.part[i] = -1
        self.s.partial -= i.size
        c.q[i] = c.count[i] = c.ctx[i] = c.pairs[i] = 0
        self.book.preempt(request)
        self.queue.push_front(i, request)

    def _admit(self, w: Work) -> None:
        """Admit from the head of each queue until something is full; the first that doesn't fit stops its lane."""
        s, queue = self.s, self.queue
        room = s.budget - w.n
        may = queue.wait & (room > 0)
        if w.chunks is not None:
            room -= w.chunks.q
            may &= room > 0
            if w.preempted is not None:
                may &= ~w.preempted
        running = s.running
        may &= running < s.max_seqs
        i = may.nonzero()[0]
        while i.size:
            request, size, again = queue.heads(i)
            if self.kv.bounded:
                fits = self.kv.fits(w, i, request, size)
                if np.count_nonzero(fits) < fits.size:
                    i, request, size = i[fits], request[fits], size[fits]
                    again = None if again is None else again[fits]
                    if not i.size:
                        return
            dropped = queue.drop(i, request, again)
            if dropped is not None:
                gone, stays = i[dropped], ~dropped
                i, request, size = i[stays], request[stays], size[stays]
                again = None if again is None else again[stays]
            space = room.take(i)
            q = np.minimum(size, space)
            space -= q
            room[i] = space
            queue.pop(i, request, again)
            self.kv.start(i, request, size)
            self._first_chunk(w, i, request, size, q)
            seqs = running.take(i) + 1
            running[i] = seqs
            i = i[(space > 0) & (seqs < s.max_seqs.take(i)) & queue.wait.take(i)]
            if dropped is not None:
                i = np.sort(np.concatenate([i, gone[queue.wait.take(gone)]]))

    def _first_chunk(self, w: Work, i: Ints, request: Ints, size: Ints, q: Ints) -> None:
        """Each ``request`` reads ``q`` of its ``size`` tokens in this step."""
        s = self.s
        self._read(w, i, request, q)
        whole = q == size
        if np.count_nonzero(whole) < whole.size:
            part = ~whole
            j, r = i[part], request[part]
            s.part[j] = r
            s.part_left[j] = size[part] - q[part]
            s.part_ctx[j] = self.book.cached[r] + q[part]
            s.partial += j.size
            i, request = i[whole], request[whole]
        if i.size:
            self._join(w, i, request, s.step.take(i))

    def read_on(self, w: Work, k: Ints) -> None:
        """Move partly prefilled requests on by ``k`` whole chunks."""
        if w.going is not None and w.going.size:
            read = k[w.going] * w.open().q[w.going]
            self.s.part_left[w.going] -= read
            self.s.part_ctx[w.going] += read
