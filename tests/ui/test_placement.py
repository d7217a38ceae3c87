"""The placement page as a visitor's session, without a browser."""

from __future__ import annotations

import time

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from engine.placement import Offered, Question, Terms, Wanted, from_token, to_token
from engine.study import layouts
from tests.study.test_layouts import SMALL
from tests.ui.visitor import address, said, visit
from ui import packing, splitting
from ui.packing_inputs import (
    DEFAULT_CHIPS,
    DEFAULT_MODELS,
    SPLITS,
    chips_table,
    models_table,
    read_chips,
    read_models,
)
from ui.words import NBSP

PAGE = "pages/placement.py"


def texts(app: AppTest) -> str:
    assert not app.exception
    return "\n".join([*app.markdown.values, *app.caption.values]).replace(NBSP, " ")


def test_the_preset_says_what_fits_and_what_is_ruled_out() -> None:
    app = visit("p=packing", PAGE)
    assert said(app).replace(NBSP, " ") == "All 7 replicas fit on 7 chips for \\$6.5 an hour."
    text = texts(app)
    for short in ("RTX 4090 24GB gives 23.7 GB: short by 49.9 GB", "short by 34.3 GB", "short by 26.4 GB"):
        assert short in text.replace("\\", "")
    assert "Twice the memory is 4 times the seats" in text
    assert len(app.get("plotly_chart")) == 2
    assert address(app) == "p=packing"


def test_any_scenario_opens_it() -> None:
    app = visit("", PAGE)
    assert said(app).startswith("All 7 replicas fit")


@pytest.mark.parametrize(("length", "shown"), [(3, 16), (900_000, 1_000_000)])
def test_conversations_beyond_what_the_page_takes_are_cut(length: int, shown: int) -> None:
    constant = {"dist": "constant", "value": length}
    s = SMALL.replace({f"traffic.classes.0.{what}_tokens": constant for what in ("prompt", "output")})
    app = visit(s.to_link(), PAGE)
    assert app.number_input(key=f"packing tokens {shown}").value == shown
    texts(app)


def test_the_terms_change_the_answer() -> None:
    app = visit("p=packing", PAGE)
    app.number_input(key="packing headroom").set_value(10.0).run()
    assert "Llama-2-70B at 8 bit fits none of these chips" in said(app).replace("\\", "")
    app.number_input(key="packing headroom").set_value(0.0).run()
    before = said(app)
    app.number_input(key="packing seats").set_value(12).run()
    assert said(app) != before


def test_one_more_replica_is_priced() -> None:
    app = visit("p=packing", PAGE)
    app.selectbox(key="packing more 3").set_value(0).run()
    assert "One more Llama-2-13B at 8 bit beside the others" in texts(app).replace("\\", "")


def test_the_scenarios_own_fleet() -> None:
    app = visit("p=packing", PAGE)
    app.button(key="packing-own").click().run()
    assert said(app).replace(NBSP, " ").startswith("Both replicas fit on 1 chip")


def test_a_bad_link_is_said_in_words() -> None:
    assert said(visit("s=nonsense", PAGE)) == "This link can't be opened as it is."


def test_tables_there_and_back() -> None:
    assert read_models(models_table(DEFAULT_MODELS)) == DEFAULT_MODELS
    assert read_chips(chips_table(DEFAULT_CHIPS)) == DEFAULT_CHIPS
    for splits in SPLITS.values():
        assert read_models(models_table((Wanted("Phi-4", "bf16", 1, splits),)))[0].allowed_tp == splits


def test_rows_that_are_half_filled_in() -> None:
    models = pd.DataFrame(
        {"model": ["Phi-4", None], "weights": [None, "fp8"], "replicas": [None, 2], "split over": [None, "8 chips"]}
    )
    assert read_models(models) == (Wanted("Phi-4", "bf16", 1, (1,)),)
    chips = pd.DataFrame({"chip": ["T4", None], "how many": [None, 3], "$ an hour": [0.2, None]})
    assert read_chips(chips) == (Offered("T4", 1, 0.2),)


def test_what_takes_longer_comes_from_another_process() -> None:
    wanted = tuple(Wanted(name, "int8", 9, (1,)) for name in ("Llama-2-13B", "Yi-34B"))
    stock = (Offered("L40S", 2), Offered("RTX 4090", 3))
    asked = Question(wanted, stock, Terms(4, 1366.0, "bf16", 8192, 0.92))
    first, deadline = packing.answer(asked), time.monotonic() + 60
    found = first
    while not found.final and time.monotonic() < deadline:
        time.sleep(0.1)
        found = packing.answer(asked)
    assert not first.final
    assert found.final
    assert found.best is not None
    assert not found.best.complete
    assert "find a place; left out" in found.why


def test_split_or_copy_comes_layout_by_layout_and_recommends_one() -> None:
    app = visit(SMALL.to_link(), PAGE)
    app.segmented_control(key="placement view False").set_value("One model: split or copy").run()
    tried, deadline = layouts(SMALL, 4), time.monotonic() + 120
    while time.monotonic() < deadline:
        if splitting.go_on(SMALL, tried):
            break
        time.sleep(0.1)
    assert [one.layout for one in splitting.known(SMALL, tried)] == [one for one in tried if one.problem is None]
    app.run()
    assert said(app).replace(NBSP, " ").startswith("Use ")
    assert "The pr" in texts(app)
    assert len(app.get("plotly_chart")) == 1
    assert "Layouts that aren't in the chart" not in texts(app), "pipelines are compared too"


def test_the_preset_opens_on_split_or_copy() -> None:
    app = visit("p=split-or-copy", PAGE)
    assert said(app).replace(NBSP, " ") == "Trying 16 layouts of 8 chips."


def test_a_link_brings_tables_and_terms_to_anybody() -> None:
    terms = Terms(2, 8000.0, "fp8", 8192, 0.92, headroom=0.1, any_number=True)
    asked = Question((Wanted("Phi-4", "bf16", 3, (1, 2)),), (Offered("L40S", 5, 0.5),), terms)
    app = visit(f"p=packing&k={to_token(asked)}", PAGE)
    assert not app.warning
    assert "fits" in said(app) or "fit on" in said(app)
    assert app.number_input(key="packing seats").value == 2
    assert app.number_input(key="packing headroom").value == 10
    assert app.segmented_control(key="packing stock").value == "any number"
    (shown,) = [code.value for code in app.main.code if "&k=" in code.value]
    again = from_token(shown.partition("&k=")[2], Terms(4, 1.0, "fp8", 8192, 0.92))
    assert (again.wanted, again.offered, again.terms.any_number) == (asked.wanted, asked.offered, True)
    app.number_input(key="packing seats").set_value(3).run()
    assert app.number_input(key="packing seats").value == 3, "an address is taken once"


def test_a_link_that_cannot_be_read_says_so_and_changes_nothing() -> None:
    token = to_token(Question((Wanted("Phi-4", "bf16", 3, (1,)),), (), Terms(2, 8000.0, "fp8", 8192, 0.92)))
    app = visit(f"p=packing&k={token[:-4]}", PAGE)
    assert "the link to this packing is cut short" in app.error[0].value
    assert said(app).replace(NBSP, " ") == "All 7 replicas fit on 7 chips for \\$6.5 an hour."
