"""A scenario's step time worked out for two usual steps, for readers of the equations."""

from __future__ import annotations

from dataclasses import dataclass

from engine.machine.context import typical_context, typical_lengths
from engine.machine.replica import ReplicaModel, replica_model, step_terms
from engine.machine.steptime import step_parts
from engine.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Step:
    """One step: T tokens of R requests with C tokens of context and A attention pairs, and its parts in seconds."""

    tokens: int
    requests: int
    context_tokens: float
    pairs: float
    parts: dict[str, float]

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class Worked:
    """`writing`: all seats taken, everybody writes. `reading`: a prompt of the mean length (or a step's worth of it) is
    read beside them. `context_tokens`: of a request half-way through its answer; `capped_by`: what limits the seats.
    """

    replica: ReplicaModel
    seats: int
    capped_by: str
    context_tokens: float
    writing: Step
    reading: Step


def worked_example(s: Scenario) -> Worked | None:
    """The two steps of a scenario's replica; None where a trace brings the lengths. Raises ScenarioError."""
    context, lengths = typical_context(s), typical_lengths(s)
    if context is None or lengths is None:
        return None
    replica, most, prompt = replica_model(s), s.batching.max_num_seqs, lengths[0]
    by_memory = most if replica.kv_capacity_tokens is None else int(replica.kv_capacity_tokens / context)
    seats = max(1, min(most, by_memory, s.batching.max_num_batched_tokens))
    terms = step_terms(s)
    room = max(1, min(round(prompt), replica.base.size - 1 - seats))
    steps = [
        Step(tokens, requests, seats * context, pairs, step_parts(terms, tokens, requests, seats * context, pairs))
        for tokens, requests, pairs in (
            (seats, seats, 0.0),
            (min(seats + room, replica.base.size - 1), seats + 1, room * (room + 1) / 2),
        )
    ]
    return Worked(replica, seats, "KV memory" if by_memory < most else "max_num_seqs", context, *steps)
