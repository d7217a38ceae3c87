"""Studies: running scenarios, one or many."""

from __future__ import annotations

from .capacity import capacity_rps, forget_capacities, remember_capacity
from .promise import Fewest, Trial, fewest_replicas
from .recorded_runs import SIDES, RecordedRun, recorded_runs
from .refusing import Tried, Way, try_way, ways
from .rules import RULES, RuleName, RuleOutcome, rule_outcome
from .run import simulate
from .spare import Spare, spare
from .suggest import Suggestion, suggest

__all__ = [
    "RULES",
    "SIDES",
    "Fewest",
    "RecordedRun",
    "RuleName",
    "RuleOutcome",
    "Spare",
    "Suggestion",
    "Trial",
    "Tried",
    "Way",
    "capacity_rps",
    "fewest_replicas",
    "forget_capacities",
    "recorded_runs",
    "remember_capacity",
    "rule_outcome",
    "simulate",
    "spare",
    "suggest",
    "try_way",
    "ways",
]
