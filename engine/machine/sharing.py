"""How much a step costs by how many conversations share it: the weights are read once for all of them.

All figures are for steps that only write: each conversation gets one token and none reads a prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.machine.memory import Memory
from engine.machine.replica import replica_memory, step_terms
from engine.machine.steptime import Name, Term
from engine.scenario import Analytic, Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LITTLE = 4.0 / 3.0
"""What doubling the group gains at the knee."""
_MOST_POINTS = 160
_FEWEST = 8


@dataclass(frozen=True, slots=True)
class Sharing:
    """Steps of each group size, with `context_tokens` of context a conversation.

    Seconds a word = `shared_s` / group + own work (`own_s`), exactly, at every size. `shared_s` is what a step takes
    whoever is in it: reading the weights, the fixed work of host and links. Own work is the rest of the step, divided
    by the group. It needn't be the same at every size: arithmetic hides behind the reading while it is little, and a
    larger group of a mixture of experts reads more experts.
    """

    sizes: Ints
    """(n,): conversations in the group, from 1 on, ascending; all powers of two up to the last."""
    parts: dict[Name, Floats]
    """By name, (n,): seconds of each part of a step; they add up to `step_s`."""
    context_tokens: float
    shared_s: float
    knee: int | None
    """The smallest group from which on doubling gains a third at most, None where there is none up to the largest step.

    Where the step time is a straight line of the group, shared and own work are equal there: the half-performance
    length of Hockney (The Science of Computer Benchmarking, 1996, section 1.3), half of the rate of an endless group.
    """

    @property
    def step_s(self) -> Floats:
        """(n,): seconds of a step, which is what everybody in the group waits for a word."""
        return np.asarray(np.sum(list(self.parts.values()), axis=0), np.float64)

    @property
    def own_s(self) -> Floats:
        """(n,): seconds of a step for each conversation beyond the shared ones."""
        return (self.step_s - self.shared_s) / self.sizes

    @property
    def word_s(self) -> Floats:
        """(n,): seconds of the replica's time for each word."""
        return self.step_s / self.sizes

    @property
    def tokens_per_s(self) -> Floats:
        """(n,): output tokens a second of the replica."""
        return self.sizes / self.step_s

    def at(self, size: int) -> int:
        """Index of the group size nearest to this one."""
        return int(np.abs(self.sizes - size).argmin())

    def gain(self, few: int, many: int) -> float:
        """How many times the words a second a group gets when it grows from one size to another; both in `sizes`."""
        rate = self.tokens_per_s
        return float(rate[self.at(many)] / rate[self.at(few)])


def sharing(s: Scenario, context_tokens: float, also: Sequence[int] = ()) -> Sharing:
    """Steps of the scenario's replica by group size, up to max_num_seqs or, if that is more, twice the knee.

    `also`: sizes that must be among them. Raises ScenarioError as `replica_model` does.
    """
    terms = step_terms(s)
    largest = terms[0].base.size - 1
    every = np.arange(1, largest + 1)
    step_s = np.sum(list(_parts(terms, every, context_tokens).values()), axis=0)
    knee = _knee(step_s)
    top = min(largest, max(s.batching.max_num_seqs, 2 * (knee or 0), _FEWEST))
    sizes = _sizes(top, [s.batching.max_num_seqs, *([knee] if knee else []), *also])
    return Sharing(sizes, _parts(terms, sizes, context_tokens), context_tokens, _shared_s(terms), knee)


def _parts(terms: Sequence[Term], sizes: Ints, context_tokens: float) -> dict[Name, Floats]:
    """Seconds of each part, (n,); what attention to a sliding window takes is arithmetic, too."""
    parts: dict[Name, Floats] = {}
    for term in terms:
        name: Name = "compute" if term.name == "attention" else term.name
        seconds = term.base[sizes] + term.seq_s * sizes + term.kv_token_s * (context_tokens * sizes)
        parts[name] = parts[name] + seconds if name in parts else seconds
    return parts


def _shared_s(terms: Sequence[Term]) -> float:
    """Seconds of a step that don't depend on its tokens: what one alone reads, the host's work, the links' latency."""
    fixed = {"weights": 1, "overhead": 1, "communication": 0}
    return float(sum(term.base[fixed[term.name]] for term in terms if term.name in fixed))


def _knee(step_s: Floats) -> int | None:
    """From the steps of groups 1, 2, 3, ...: the first size from which on the gain of doubling stays at LITTLE."""
    half = step_s.size // 2
    gain = 2.0 * step_s[:half] / step_s[1 : 2 * half : 2]
    above = np.flatnonzero(gain > LITTLE * (1 + 1e-12))
    first = 0 if not above.size else int(above[-1]) + 1
    return first + 1 if first < half else None


def _sizes(top: int, also: Sequence[int]) -> Ints:
    """Whole numbers from 1 to `top`, dense at first and then by ratio, with the powers of two and `also`."""
    by_ratio = np.geomspace(1, top, _MOST_POINTS).round().astype(np.int64)
    powers = 2 ** np.arange(int(np.log2(top)) + 1, dtype=np.int64)
    kept = np.array([size for size in also if 1 <= size <= top], np.int64)
    return np.unique(np.concatenate([by_ratio, powers, kept]))


def room(s: Scenario) -> Memory | None:
    """Memory of one accelerator; None for a measured profile, which doesn't know what it was measured with."""
    return replica_memory(s) if isinstance(s.performance, Analytic) else None


def seats(kv_capacity_tokens: int | None, max_num_seqs: int, held_tokens: Floats) -> Floats:
    """How many conversations fit that hold so many tokens of KV each (any shape, tokens): what memory allows or the
    setting, whichever is less; not rounded, because conversations differ and the next is a bit shorter or longer."""
    most = np.full_like(held_tokens, float(max_num_seqs))
    return most if kv_capacity_tokens is None else np.minimum(most, kv_capacity_tokens / held_tokens)
