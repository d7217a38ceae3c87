"""Packing models onto chips, and why something doesn't fit."""

from engine.placement.adding import Addition, add_replica
from engine.placement.document import answer, chips_used, place, problem_of, read_problem
from engine.placement.needs import Alone, Needs, Offered, Parts, Terms, Wanted, label, needs
from engine.placement.problem import Chip, Item, Packing, Problem, Shard, Used
from engine.placement.reasons import RuledOut, enough_more, reason, ruled_out, why_not
from engine.placement.solve import TIME_LIMIT_S, Solution, most_placed, solve

__all__ = [
    "TIME_LIMIT_S",
    "Addition",
    "Alone",
    "Chip",
    "Item",
    "Needs",
    "Offered",
    "Packing",
    "Parts",
    "Problem",
    "RuledOut",
    "Shard",
    "Solution",
    "Terms",
    "Used",
    "Wanted",
    "add_replica",
    "answer",
    "chips_used",
    "enough_more",
    "label",
    "most_placed",
    "needs",
    "place",
    "problem_of",
    "read_problem",
    "reason",
    "ruled_out",
    "solve",
    "why_not",
]
