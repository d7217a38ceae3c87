"""The overload page as a visitor's session, without a browser."""

from __future__ import annotations

import time
from typing import Any

import pytest

from engine.scenario import Scenario
from tests.ui.visitor import QUICK, address, go, press, said, scenario, visit
from ui import traces, ways

PAGE = "pages/overload.py"
SHED = "admission.shed.ttft_s"
CAP = "admission.max_outstanding"
# One request at a time and 50 steps of 20 ms each: one a second can be served.
BUSY = QUICK.replace(
    {
        "traffic.rate_rps": 2.0,
        "traffic.classes.0.prompt_tokens": {"dist": "constant", "value": 1},
        "traffic.classes.0.output_tokens": {"dist": "constant", "value": 50},
        "batching.max_num_seqs": 1,
        "fleet.replicas": 1,
    }
)


def opened(given: Scenario) -> Any:
    return visit(given.to_link(), PAGE)


def boxes(app: Any) -> dict[str, Any]:
    return {box.key: box.value for box in app.number_input}


def labels(app: Any) -> list[str]:
    return [tile.label for tile in app.metric]


def test_a_deep_link_opens_the_page_without_the_frame() -> None:
    app = opened(BUSY)
    assert said(app).startswith("Nobody is refused, and ")
    assert labels(app)[1:] == ["In time, of those let in", "Attempts per request", "Work late or for nothing"]
    assert scenario(app) == BUSY
    assert any("are sent at the end, 1 a second can be served" in m for m in app.markdown.values)


def test_a_control_is_the_scenario_s() -> None:
    app = opened(BUSY)
    app.number_input(key=CAP).set_value(2).run()
    assert said(app).startswith("1 in 2 people") or said(app).startswith("Refusing 1 in ")
    assert scenario(app) == BUSY.replace({CAP: 2})
    app.number_input(key=SHED).set_value(1.5).run()
    app.selectbox(key="admission.discipline.kind").set_value("codel").run()
    assert scenario(app) == BUSY.replace(
        {CAP: 2, "admission.shed": {"ttft_s": 1.5}, "admission.discipline": {"kind": "codel"}}
    )
    press(app, "undo")
    assert scenario(app) == BUSY.replace({CAP: 2, "admission.shed": {"ttft_s": 1.5}})


def test_the_engine_settings_are_the_same_values_under_their_own_names() -> None:
    app = opened(BUSY.replace({CAP: 3}))
    assert boxes(app)[f"{CAP} twin"] == 3
    app.number_input(key=f"{CAP} twin").set_value(4).run()
    assert boxes(app)[CAP] == boxes(app)[f"{CAP} twin"] == 4
    assert scenario(app) == BUSY.replace({CAP: 4})
    app.number_input(key=CAP).set_value(None).run()
    assert boxes(app)[f"{CAP} twin"] is None
    assert scenario(app) == BUSY


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ({"traffic.rate_rps": 1e-6}, "Nothing arrives"),
        ({CAP: 0}, "Everybody is refused: nobody is served."),
        ({"traffic.rate_rps": 0.2}, "No need to say no: everybody is served in time."),
        ({"traffic.rate_rps": 0.2, "slo": []}, "No need to say no: everybody gets an answer."),
        ({"batching.kv_capacity_tokens": 10}, "Everybody is refused: nobody is served."),
        ({"traffic.process": "closed", "traffic.rate_rps": 4.0, "traffic.closed.users": 4}, "Nobody is refused, and "),
    ],
)
def test_extremes(changes: dict[str, object], headline: str) -> None:
    app = opened(BUSY.replace(changes))
    assert said(app).startswith(headline)
    assert labels(app)


def test_users_in_a_closed_loop_have_no_retries_to_set() -> None:
    app = opened(BUSY.replace({"traffic.process": "closed", "traffic.rate_rps": 4.0, "traffic.closed.users": 4}))
    assert said(app)
    assert CAP in boxes(app)
    settings = [key for key in boxes(app) if key.startswith("traffic.client.max_retries")]
    assert len(settings) == 1, "only among the engine's settings"


def test_an_uploaded_trace() -> None:
    rows = "".join(f"{i},1,50\n{i},1,50\n" for i in range(100))
    kept = traces.shared().put(f"arrival_s,prompt_tokens,output_tokens\n{rows}".encode(), "mine.csv")
    app = opened(traces.replaying(BUSY, kept.trace))
    assert said(app).startswith("Nobody is refused, and ")


def test_a_model_that_doesn_t_fit_and_a_link_that_can_t_be_opened() -> None:
    app = visit("p=monday", PAGE)
    app.selectbox(key="model.name").set_value("Llama-3.1-405B").run()
    assert said(app) == "This can't run as it is."
    app = visit("p=mondy", PAGE)
    assert said(app) == "This link can't be opened as it is."
    app.button[0].click().run()
    assert app.metric


def test_the_page_keeps_a_and_says_what_differs() -> None:
    app = opened(BUSY)
    press(app, "pin")
    app.number_input(key=CAP).set_value(2).run()
    assert any(str(tile.delta).startswith("A: ") for tile in app.metric)
    assert any(m.startswith("**Against A:**") for m in app.markdown.values)


def test_the_data_are_there_as_tables() -> None:
    app = opened(BUSY.replace({CAP: 2}))
    for toggle in app.toggle:
        toggle.set_value(True)
    app.run()
    assert not app.exception
    assert len(app.dataframe) == len(app.get("plotly_chart")) == 3  # load, refusals, work


def test_the_ways_come_from_another_process_and_one_can_be_used() -> None:
    app = opened(BUSY)
    end = time.monotonic() + 120.0
    while not (known := ways.go_on(BUSY, None, 1.0)).done and time.monotonic() < end:
        time.sleep(0.1)
    assert known.done
    assert known.failed == 0
    app.run()
    assert len(app.get("plotly_chart")) == 4  # and ways and caps; nobody refused
    assert any("Best of what was tried is to" in m for m in app.markdown.values)
    press(app, "use-cap")
    found = scenario(app).admission.max_outstanding
    assert found is not None
    assert scenario(app) == BUSY.replace({CAP: found})
    assert ways.known_so_far(BUSY.replace({CAP: found})).ways is None, "which there are is looked up anew"
    press(app, "undo")
    assert scenario(app) == BUSY
    go(app, BUSY.replace({CAP: 1}).to_link())
    assert address(app) == BUSY.replace({CAP: 1}).to_link()
