"""What the placement page says, in every case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.placement import Needs, Offered, Solution, Terms, Wanted, add_replica, most_placed, needs, solve
from ui import packing_charts, packing_tables, packing_words
from ui.packing_inputs import DEFAULT_CHIPS, DEFAULT_MODELS
from ui.words import NBSP

TERMS = Terms(4, 1366.0, "bf16", 8192, 0.92)
PATIENCE_S = 60.0


def asked(
    wanted: tuple[Wanted, ...] = DEFAULT_MODELS, offered: tuple[Offered, ...] = DEFAULT_CHIPS, terms: Terms = TERMS
) -> tuple[Needs, Solution]:
    found = needs(wanted, offered, terms)
    return found, solve(found.problem, PATIENCE_S)


def flat(text: str) -> str:
    return text.replace(NBSP, " ").replace("\\", "")


def test_everything_fits() -> None:
    found, solution = asked()
    assert solution.packing is not None
    assert flat(packing_words.headline(found, solution, solution.packing)) == (
        "All 7 replicas fit on 7 chips for $6.5 an hour."
    )
    assert flat(packing_words.bought(solution, solution.packing)) == (
        "4 RTX 4090 24GB, 2 L40S 48GB and 1 A100-SXM4-80GB"
    )
    assert packing_words.proof(solution).startswith("No packing costs less: that is proven. Taking the largest first,")
    said = flat(packing_words.packing_sentence(found, solution.packing))
    assert said.startswith("**39.7 GB of 269 GB stay free**, the most on one L40S 48GB")
    assert said.endswith("Beyond that engines leave 8 % of every chip alone.")


def test_what_is_ruled_out_has_its_gigabytes() -> None:
    found, _ = asked()
    lines = [flat(line) for line in packing_words.ruled_out_lines(found)]
    assert len(lines) == 4
    assert lines[1] == (
        "Llama-2-70B at 8 bit needs 73.6 GB on a chip (69.5 GB of it weights), and one RTX 4090 24GB gives 23.7 GB: "
        "short by 49.9 GB."
    )
    assert "A100-SXM4-40GB gives 39.5 GB: short by 34.3 GB" in lines[2]
    assert "L40S 48GB gives 47.4 GB: short by 26.4 GB" in lines[3]


def test_twice_the_memory() -> None:
    found, _ = asked()
    assert flat(packing_words.seats_sentence(found, 0)) == (
        "**Twice the memory is 4 times the seats, because the weights are paid once:** Llama-2-13B at 8 bit on one "
        "RTX 4090 24GB has room for 7 conversations of 1,366 tokens, on one L40S 48GB for 28."
    )
    assert flat(packing_words.seats_sentence(found, 2)) == (
        "**Llama-2-70B at 8 bit**: one A100-SXM4-80GB has room for 14 conversations of 1,366 tokens."
    )
    assert flat(packing_words.glance(found)) == (
        "4 of 12 pairs of model and chip are ruled out before any packing. "
        "Twice the memory is 4 times the seats, because the weights are paid once."
    )
    small = needs(DEFAULT_MODELS, DEFAULT_CHIPS[:1], TERMS)
    assert flat(packing_words.seats_sentence(small, 2)).startswith("**Llama-2-70B at 8 bit fits none of these chips**")


def test_a_model_without_a_chip_and_chips_that_are_too_few() -> None:
    found, solution = asked(offered=DEFAULT_CHIPS[:3])
    assert flat(packing_words.headline(found, solution, None)) == "Llama-2-70B at 8 bit fits none of these chips."
    few = (replace(DEFAULT_CHIPS[0], count=2), *DEFAULT_CHIPS[1:2], *DEFAULT_CHIPS[3:])
    found, solution = asked((replace(DEFAULT_MODELS[0], replicas=9), *DEFAULT_MODELS[1:]), few)
    best = most_placed(found.problem)
    assert solution.packing is None
    assert packing_words.headline(found, solution, None) == "These chips can't hold everything."
    placed = found.problem.replicas - sum(best.left_out)
    assert packing_words.headline(found, solution, best) == f"{placed} of 12 replicas find a place."


def test_one_more_replica() -> None:
    found, solution = asked()
    assert solution.packing is not None
    more = add_replica(found.problem, solution.packing, 0, PATIENCE_S)
    said = flat(packing_words.one_more(found, more, 0, solution.packing.cost))
    assert said.startswith("One more Llama-2-13B at 8 bit beside the others, nobody moved, costs **$1.1 more an hour**")
    # Two of them on a third L40S instead: 3 x 0.54 + 3 x 1.09 + 2.19 USD.
    assert said.endswith("packing everything anew brings that to **$0.55 more an hour**.")
    seventies = add_replica(found.problem, solution.packing, 2, PATIENCE_S)
    assert flat(packing_words.one_more(found, seventies, 2, solution.packing.cost)).endswith(
        "costs **$2.2 more an hour**; packing everything anew saves nothing."
    )


def test_nothing_to_place() -> None:
    found, solution = asked(())
    assert packing_words.headline(found, solution, solution.packing) == "There is nothing to place."
    assert packing_words.proof(solution) == ""


def test_the_bars_are_the_table() -> None:
    found, solution = asked()
    assert solution.packing is not None
    figure = packing_charts.chips_figure(found, solution.packing)
    table = packing_tables.chips_table(found, solution.packing)
    assert list(table["how many"]) == [4, 2, 1]
    assert list(table["holds"]) == ["Llama-2-13B", "Yi-34B", "Llama-2-70B"]
    columns = ("weights (GB)", "KV (GB)", "activations, runtime (GB)", "free (GB)")
    for trace, column in zip(figure.data, columns, strict=True):
        np.testing.assert_allclose(trace.x, table[column], rtol=1e-6)
    assert len({(t.marker.color, t.marker.pattern.shape) for t in figure.data}) == 4
    assert figure.layout.xaxis.range[0] == 0


def test_seats_bars_say_what_is_short() -> None:
    found, _ = asked()
    figure = packing_charts.seats_figure(found, 2)
    ticks = [flat(text) for text in figure.layout.yaxis.ticktext]
    assert ticks[0] == "<b>RTX 4090 24GB</b><br>short by 49.9 GB"
    assert ticks[3] == "<b>A100-SXM4-80GB</b><br>14 seats"
    table = packing_tables.seats_table(found, 2)
    assert list(table["conversations"]) == [0, 0, 0, 14]


def test_shared_and_split_chips_are_named() -> None:
    wanted = (Wanted("Llama-2-70B", "int8", 1, (2,)), Wanted("Llama-3.1-8B", "int8", 2, (1,)))
    found, solution = asked(wanted, (Offered("A100-SXM4-80GB", 2),))
    assert solution.packing is not None
    held = sorted(packing_charts.holds(found, used) for used in solution.packing.used)
    assert all("Llama-2-70B 1/2" in one for one in held)
    assert "shared by several replicas" in packing_words.packing_sentence(found, solution.packing)
