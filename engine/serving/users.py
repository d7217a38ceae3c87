"""A closed loop's users: dealt out to the replicas, and their attempts put in order afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.traffic import Users

from .gathering import Gathering, numbered
from .lanes import ClosedLoop, Deadlines, Ints, Served
from .lockstep import Lockstep
from .states import TOO_LONG
from .steplog import Sink

if TYPE_CHECKING:
    from .fleet import Fleet


class ClosedGathering(Gathering):
    """Runs all seeds' users; user u stays with replica u mod n."""

    def __init__(self, fleet: Fleet, users: Sequence[Users], backoff_s: float) -> None:
        super().__init__(fleet, np.zeros(len(users) + 1, np.int64))
        self.users, self.backoff_s = users, backoff_s
        self.class_names = users[0].class_names

    def run(self, sink: Sink) -> Served:
        """Serve everybody as one batch of lanes."""
        fleet = self.fleet
        loop, start = self._loop()
        total = int(start[-1])
        ones = np.ones(total, np.int64)
        lanes = self.lanes(
            start, np.full(total, np.inf), ones, ones.copy(), np.zeros(total, np.int64), closed=loop,
            rank=np.zeros(total, np.int64),
        )  # fmt: skip
        served = Lockstep(lanes, numbered(sink, 0)).run()
        number = (served.asked >= 0).nonzero()[0]
        lane = np.searchsorted(start, number, side="right") - 1
        asked = served.asked[number]
        user = np.searchsorted(self.first_of, asked, side="right") - 1  # over all seeds
        seed = lane // fleet.replicas
        order = np.lexsort((user, lanes.arrival_s[number], seed))
        number, lane, asked, seed = number[order], lane[order], asked[order], seed[order]
        counts = np.bincount(seed, minlength=len(self.users))
        super().__init__(fleet, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        self.arrival = lanes.arrival_s[number]
        self.prompt = loop.prompt_tokens[asked].astype(np.int32)
        self.output = loop.output_tokens[asked].astype(np.int32)
        self.cached = loop.cached_prefix_tokens[asked].astype(np.int32)
        self.class_id = np.concatenate([u.class_id for u in self.users])[asked]
        self.priority = np.concatenate([u.priority for u in self.users])[asked]
        self.class_names = self.users[0].class_names
        self.replica = (lane % fleet.replicas).astype(np.int32)
        self.take(served, number, np.arange(number.size))
        self.refuse(np.flatnonzero(loop.too_long[asked]), TOO_LONG)
        return served

    def _loop(self) -> tuple[ClosedLoop, Ints]:
        """The lanes' users, and where each lane's room for requests begins."""
        fleet, users = self.fleet, self.users
        replicas = fleet.replicas
        most = max(-(-u.first_s.size // replicas) for u in users)
        lanes = len(users) * replicas
        first, begin, stop = np.full((lanes, most), np.inf), *np.zeros((2, lanes, most), np.int64)
        offset, ends = 0, [np.zeros(0, np.int64)]
        for i, u in enumerate(users):
            who = np.arange(u.first_s.size)
            row, column = i * replicas + who % replicas, who // replicas
            first[row, column] = u.first_s
            begin[row, column], stop[row, column] = u.start[:-1] + offset, u.start[1:] + offset
            ends.append(u.start[:-1] + offset)
            offset += int(u.start[-1])
        self.first_of = np.concatenate(ends)
        prompt = np.concatenate([u.prompt_tokens for u in users]).astype(np.int64)
        output = np.concatenate([u.output_tokens for u in users]).astype(np.int64)
        if fleet.batching.reserve_output_tokens is not None:
            output = np.minimum(output, fleet.batching.reserve_output_tokens)
        first[first >= (np.inf if fleet.horizon_s is None else fleet.horizon_s)] = np.inf
        priority = np.concatenate([u.priority for u in users])
        loop = ClosedLoop(
            first_s=first,
            start=begin,
            stop=stop,
            think_s=np.concatenate([u.think_s for u in users]),
            prompt_tokens=prompt,
            output_tokens=output,
            cached_prefix_tokens=np.concatenate([u.cached_prefix_tokens for u in users]).astype(np.int64),
            rank=np.unique(priority, return_inverse=True)[1].astype(np.int64),
            too_long=self.too_long(prompt, output),
            backoff_s=self.backoff_s,
            gives_up=fleet.deadlines if fleet.ignores_clients else Deadlines(),
        )
        room = (stop - begin).sum(axis=1) + 1
        return loop, np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
