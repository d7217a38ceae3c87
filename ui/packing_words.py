"""What the placement page says. Every figure is the engine's."""

from __future__ import annotations

from collections import Counter
from math import log

from engine.placement import Addition, Alone, Needs, Packing, Solution, chips_used, reason, ruled_out
from ui.words import NBSP, count, digits, listed, money, percent, plain


def gb(size: float) -> str:
    """Gigabytes with three significant digits."""
    return f"{digits(size)}{NBSP}GB"


def headline(needs: Needs, solution: Solution, best: Packing | None) -> str:
    """Whether everything fits, on how many chips, for how much."""
    total = solution.problem.replicas
    if not total:
        return "There is nothing to place."
    if solution.packing is not None:
        chips, cost = len(solution.packing.used), money(solution.packing.cost).replace("$", "\\$")
        who = {1: "The replica fits", 2: "Both replicas fit"}.get(total, f"All {total} replicas fit")
        return f"{who} on {count(chips, 'chip')} for {cost} an hour."
    homeless = nowhere(needs)
    if homeless:
        fit = "fit" if len(homeless) > 1 else "fits"
        return f"{listed([plain(name) for name in homeless])} {fit} none of these chips."
    if best is None:
        return "These chips can't hold everything." if solution.impossible else "No packing of everything found yet."
    return f"{total - sum(best.left_out)} of {total} replicas find a place."


def nowhere(needs: Needs) -> list[str]:
    """Models that every type of chip is ruled out for."""
    found = Counter(one.item for one in ruled_out(needs.problem))
    items = needs.problem.items
    return [item.model for i, item in enumerate(items) if item.replicas and found[i] == len(needs.problem.chips)]


def proof(solution: Solution) -> str:
    """How sure the cost is, and what the rules of thumb would pay."""
    packing = solution.packing
    if packing is None or not packing.used:
        return ""
    if solution.proven_optimal:
        first = "No packing costs less: that is proven."
    else:
        low = money(solution.lower_bound)
        first = f"It may be up to {percent(solution.gap or 0.0, 2)} too dear: nothing below {low} an hour is possible."
    rules = {"first fit": solution.first_fit, "best fit": solution.best_fit}
    whole = {name: rule for name, rule in rules.items() if rule.complete}
    dearer = [f"{name} {money(rule.cost)}" for name, rule in whole.items() if rule.cost > packing.cost + 1e-6]
    lost = [name for name in rules if name not in whole]
    said = []
    if dearer:
        said.append(f"Taking the largest first, {listed(dearer)} would be paid")
    elif whole:
        find = "find" if len(whole) > 1 else "finds"
        said.append(f"Taking the largest first, {listed(list(whole))} {find} as cheap a one")
    if lost:
        said.append(f"{listed(lost)} {'leave' if len(lost) > 1 else 'leaves'} replicas out")
    return " ".join([first, *(f"{line[:1].upper()}{line[1:]}." for line in said)]).replace("$", "\\$")


def bought(solution: Solution, packing: Packing) -> str:
    """Which chips: "4 RTX 4090 24GB, 2 L40S 48GB and 1 A100-SXM4-80GB"."""
    return listed([f"{many}{NBSP}{plain(name)}" for name, many in chips_used(solution.problem, packing).items()])


def packing_sentence(needs: Needs, packing: Packing) -> str:
    """What to read in the bars of the chips."""
    if not packing.used:
        return "No chip is in use."
    free = [needs.problem.usable(used.chip) - used.gb for used in packing.used]
    whole = sum(needs.problem.usable(used.chip) for used in packing.used)
    roomiest = max(range(len(free)), key=lambda i: free[i])
    shared = sum(len({(s.item, s.replica) for s in used.shards}) > 1 for used in packing.used)
    most = f"the most on one {plain(needs.problem.chips[packing.used[roomiest].chip].type)}, {gb(free[roomiest])}"
    said = f"**{gb(sum(free))} of {gb(whole)} stay free**, {most}"
    if shared:
        said += f"; {count(shared, 'chip')} {'is' if shared == 1 else 'are'} shared by several replicas"
    kept = 1 - needs.terms.gpu_memory_utilization
    back = f" Beyond that engines leave {percent(kept, 2)} of every chip alone." if kept > 0 else ""
    return f"{said}.{back}"


def ruled_out_lines(needs: Needs) -> list[str]:
    """A line for every pair that doesn't go together: what is needed, what there is, by how much it is short."""
    lines = []
    for one in ruled_out(needs.problem):
        if not needs.problem.items[one.item].replicas:
            continue
        said = reason(needs.problem, one)
        m = needs.memory.get((one.item, one.tp, one.chip))
        if m is not None and one.cause == "memory":
            said = said.replace(", and one", f" ({gb(m.weights / 1e9)} of it weights), and one")
        lines.append(f"{plain(said).replace(' GB', f'{NBSP}GB')}.")
    return lines


def seats_sentence(needs: Needs, item: int) -> str:
    """What more memory buys one model: weights are paid once, the rest is seats."""
    name = plain(needs.problem.items[item].model)
    fits = _fits(needs, item)
    if not fits:
        return f"**{name} fits none of these chips**, each by itself."
    tokens = f"of {needs.terms.conversation_tokens:,.0f} tokens"
    pair = _twice(fits)
    if pair is None:
        _, t, alone = fits[-1]
        return f"**{name}**: {_on(needs, t, alone.tp)} has room for {count(alone.seats, 'conversation')} {tokens}."
    (_, t0, first), (_, t1, last) = pair
    here = f"{_on(needs, t0, first.tp)} has room for {count(first.seats, 'conversation')} {tokens}"
    return f"**{_lead(pair)}:** {name} on {here}, on {_on(needs, t1, last.tp)} for {last.seats:,}."


def glance(needs: Needs) -> str:
    """What there is to know before any packing: pairs that are ruled out, and what more memory buys the first model."""
    items, chips = needs.problem.items, needs.problem.chips
    pairs = sum(item.replicas > 0 for item in items) * len(chips)
    out = sum(items[one.item].replicas > 0 for one in ruled_out(needs.problem))
    said = []
    if out:
        are = "is" if out == 1 else "are"
        said.append(f"{out} of {count(pairs, 'pair')} of model and chip {are} ruled out before any packing.")
    pair = _twice(_fits(needs, 0)) if items else None
    if pair is not None:
        said.append(f"{_lead(pair)}.")
    return " ".join(said)


_Fit = tuple[float, int, Alone]


def _fits(needs: Needs, item: int) -> list[_Fit]:
    """(GB of its chips together, chip type, what it has there) wherever a model has room for a conversation."""
    found = ((t, needs.alone(item, t)) for t in range(len(needs.problem.chips)))
    return sorted((needs.device_gb(t) * alone.tp, t, alone) for t, alone in found if alone is not None and alone.seats)


def _twice(fits: list[_Fit]) -> tuple[_Fit, _Fit] | None:
    """The pair nearest to twice the memory: it says most plainly what more of it buys."""
    pairs = [(one, other) for one in fits for other in fits if other[0] > 1.05 * one[0]]
    return min(pairs, key=lambda pair: abs(log(pair[1][0] / (2 * pair[0][0]))), default=None)


def _lead(pair: tuple[_Fit, _Fit]) -> str:
    (small, _, first), (large, _, last) = pair
    seats, memory = last.seats / first.seats, large / small
    twice = "Twice" if abs(memory - 2) < 0.05 else f"{digits(memory, 2)} times"
    why = ", because the weights are paid once" if seats > 1.05 * memory else ""
    return f"{twice} the memory is {digits(seats, 2)} times the seats{why}"


def _on(needs: Needs, chip: int, tp: int) -> str:
    name = plain(needs.problem.chips[chip].type)
    return f"one {name}" if tp == 1 else f"{tp} {name}"


def one_more(needs: Needs, more: Addition, item: int, before: float) -> str:
    """What one more replica costs with the others where they are, and with everything packed anew."""
    name = plain(needs.problem.items[item].model)
    anew = more.anew.packing
    if more.beside is None and anew is None:
        return f"There is no room for one more {name}, whatever is moved."
    if more.beside is None:
        assert anew is not None
        extra = _extra(anew.cost - before)
        return f"One more {name} finds no room beside the others; **with everything packed anew it does**, for {extra}."
    here = f"One more {name} beside the others, nobody moved, costs **{_extra(more.beside.cost - before)}**"
    if not more.saved:
        return f"{here}; packing everything anew saves nothing."
    assert anew is not None
    return f"{here}; packing everything anew brings that to **{_extra(anew.cost - before)}**."


def _extra(cost: float) -> str:
    if abs(cost) < 1e-6:
        return "nothing more"
    return f"{money(abs(cost))} {'more' if cost > 0 else 'less'} an hour".replace("$", "\\$")
