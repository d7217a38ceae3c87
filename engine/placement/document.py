"""A problem as JSON, and its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from engine.placement.problem import Chip, Item, Packing, Problem
from engine.placement.reading import LONGEST, MOST, a_list, a_name, a_number, a_whole_number, an_object, error
from engine.placement.reasons import why_not
from engine.placement.solve import Solution, solve
from engine.scenario import ScenarioError

MOST_REPLICAS = 300
MOST_WAYS = 1000
_LEAST_GB = 1e-3
_TOP = ("items", "chips", "headroom", "spread")
_ITEM = ("model", "gb_per_replica", "replicas", "allowed_tp")
_CHIP = ("type", "cap", "cost", "max", "per_host")


def read_problem(data: bytes) -> Problem:
    """The problem in a JSON text, see `problem_of`. Raises `ScenarioError` naming what can't be read."""
    return problem_of(_json(data))


def problem_of(value: Any) -> Problem:
    """The problem in a document with `items` and `chips`. Raises `ScenarioError` naming what isn't accepted.

    Optional: `headroom` (share of each chip that stays free), `spread` (replicas of a model on different hosts; every
    chip then has `per_host`). `replicas` is 1 and `allowed_tp` [1] unless given; a chip without `max`, or with null,
    is there in any number. Other keys are remarks, unless they look like one of these.
    """
    document = an_object(value, "", _TOP)
    items = [_item(entry, f"items.{i}") for i, entry in enumerate(a_list(document, "items", ""))]
    spread = document.get("spread", False)
    if not isinstance(spread, bool):
        raise error("spread", spread, "is neither true nor false", "give true or false")
    chips = [_chip(entry, f"chips.{i}", spread) for i, entry in enumerate(a_list(document, "chips", ""))]
    headroom = a_number(document, "headroom", "", 0.0, least=0.0, most=0.95)
    problem = Problem(tuple(items), tuple(chips), headroom, spread)
    if problem.replicas > MOST_REPLICAS:
        raise error("items", problem.replicas, "replicas are too many", f"give at most {MOST_REPLICAS} together")
    ways = len(problem.chips) * sum(len(item.allowed_tp) for item in items)
    if ways > MOST_WAYS:
        raise error("items", ways, "ways of running them are too many", f"give at most {MOST_WAYS}: splits x chips")
    return problem


def place(problem: Mapping[str, Any] | bytes) -> dict[str, Any]:
    """The answer to a problem (a document or its JSON text): feasible, cost and bound, chips used, what is on each.

    Without a packing `feasible` is false, `why` says what is short and what to try, and the rest is None.
    """
    return answer(solve(read_problem(problem) if isinstance(problem, bytes) else problem_of(problem)))


def answer(solution: Solution) -> dict[str, Any]:
    """A solution as the command line shows it."""
    packing = solution.packing
    if packing is None:
        nothing = ("min_cost", "lower_bound", "proven_optimal", "chips_used", "placement")
        return {"feasible": False} | dict.fromkeys(nothing) | {"why": why_not(solution)}
    return {
        "feasible": True,
        "min_cost": packing.cost,
        "lower_bound": min(solution.lower_bound, packing.cost),
        "proven_optimal": solution.proven_optimal,
        "chips_used": chips_used(solution.problem, packing),
        "placement": [
            {
                "chip": solution.problem.chips[used.chip].type,
                "items": sorted(f"{solution.problem.items[s.item].model}/tp{s.tp}" for s in used.shards),
            }
            for used in packing.used
        ],
    }


def chips_used(problem: Problem, packing: Packing) -> dict[str, int]:
    """Chips in use by the name of their type, in the order of the stock."""
    found: dict[str, int] = {}
    for t, chip in enumerate(problem.chips):
        many = sum(used.chip == t for used in packing.used)
        if many:
            found[chip.type] = found.get(chip.type, 0) + many
    return found


def _item(entry: Any, where: str) -> Item:
    values = an_object(entry, where, _ITEM)
    splits = values.get("allowed_tp", [1])
    whole = isinstance(splits, list) and all(type(tp) is int and 1 <= tp <= 1024 for tp in splits)
    if not whole or not splits or len(splits) > LONGEST:
        raise error(f"{where}.allowed_tp", splits, "is no list of numbers of chips", "give a list like [1, 2, 4]")
    return Item(
        model=a_name(values, "model", where),
        gb_per_replica=a_number(values, "gb_per_replica", where, least=_LEAST_GB),
        replicas=a_whole_number(values, "replicas", where, 1, least=0, most=MOST_REPLICAS),
        allowed_tp=tuple(sorted(set(splits))),
    )


def _chip(entry: Any, where: str, spread: bool) -> Chip:
    values = an_object(entry, where, _CHIP)
    many = None if values.get("max") is None else a_whole_number(values, "max", where, 0, least=0, most=int(MOST))
    host = None if values.get("per_host") is None else a_whole_number(values, "per_host", where, 1, least=1, most=1024)
    if spread and host is None:
        raise error(f"{where}.per_host", None, "is missing", "give the chips of one host, which spread needs")
    return Chip(
        type=a_name(values, "type", where),
        cap=a_number(values, "cap", where, least=_LEAST_GB),
        cost=a_number(values, "cost", where, least=0.0),
        max=many,
        per_host=host,
    )


def _json(data: bytes) -> Any:
    def refuse(name: str) -> NoReturn:
        raise ScenarioError.of("", name, "is not JSON", "give a finite number")

    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=refuse)
    except ScenarioError:
        raise
    except UnicodeDecodeError:
        raise ScenarioError.of("", "", "the problem is not UTF-8 text", "save it as UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ScenarioError.of("", "", f"not JSON at {where}: {error.msg.lower()}", "check quotes and commas") from None
    except RecursionError:
        raise ScenarioError.of("", "", "nested too deeply", "give items and chips") from None
    except ValueError:  # Python reads whole numbers of some thousand digits at most
        raise ScenarioError.of("", "", "a number has too many digits", "give numbers up to 1e9") from None
