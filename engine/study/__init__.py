"""Studies: running scenarios, one or many."""

from __future__ import annotations

from .capacity import capacity_rps, forget_capacities, pool_rates, remember_capacity
from .group import Cap, Group, Record, group, in_flight
from .grouped import Grouped, Served, grouped
from .interference import LONG_PROMPT, Interference, interference
from .layouts import (
    MOST_ACCELERATORS,
    Layout,
    LayoutOutcome,
    Pressure,
    Recommendation,
    frontier,
    layout_changes,
    layout_outcome,
    layout_outcomes,
    layouts,
    present,
    recommend,
)
from .load import LoadCurve, load_curve
from .policies import POLICIES, Figure, PolicyName, PolicyOutcome, Split, policy_outcome
from .pools import PoolRates
from .promise import Fewest, Trial, fewest_replicas
from .reading import Read, cached_shares, chunk_sizes, with_cached, with_chunks
from .recorded_runs import SIDES, RecordedRun, recorded_runs
from .refusing import Tried, Way, try_way, ways
from .rules import RULES, RuleName, RuleOutcome, rule_outcome
from .run import simulate
from .sized import Sized, SizedFleet, sized
from .spare import Spare, spare
from .suggest import Suggestion, suggest

__all__ = [
    "LONG_PROMPT",
    "MOST_ACCELERATORS",
    "POLICIES",
    "RULES",
    "SIDES",
    "Cap",
    "Fewest",
    "Figure",
    "Group",
    "Grouped",
    "Interference",
    "Layout",
    "LayoutOutcome",
    "LoadCurve",
    "PolicyName",
    "PolicyOutcome",
    "PoolRates",
    "Pressure",
    "Read",
    "Recommendation",
    "Record",
    "RecordedRun",
    "RuleName",
    "RuleOutcome",
    "Served",
    "Sized",
    "SizedFleet",
    "Spare",
    "Split",
    "Suggestion",
    "Trial",
    "Tried",
    "Way",
    "cached_shares",
    "capacity_rps",
    "chunk_sizes",
    "fewest_replicas",
    "forget_capacities",
    "frontier",
    "group",
    "grouped",
    "in_flight",
    "interference",
    "layout_changes",
    "layout_outcome",
    "layout_outcomes",
    "layouts",
    "load_curve",
    "policy_outcome",
    "pool_rates",
    "present",
    "recommend",
    "recorded_runs",
    "remember_capacity",
    "rule_outcome",
    "simulate",
    "sized",
    "spare",
    "suggest",
    "try_way",
    "ways",
    "with_cached",
    "with_chunks",
]
