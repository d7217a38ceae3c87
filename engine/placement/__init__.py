"""Packing models onto chips, and why something doesn't fit."""

from engine.placement.adding import Addition, add_replica
from engine.placement.document import answer, chips_used, place, problem_of, read_problem
from engine.placement.needs import Alone, Needs, Offered, Parts, Terms, Wanted, label, needs
from engine.placement.problem import Chip, Item, Packing, Problem, Shard, Used
from engine.placement.question import Question, from_token, to_token
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
    "Question",
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
    "from_token",
    "label",
    "most_placed",
    "needs",
    "place",
    "problem_of",
    "read_problem",
    "reason",
    "ruled_out",
    "solve",
    "to_token",
    "why_not",
]
