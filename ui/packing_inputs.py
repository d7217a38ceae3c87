"""The placement page's own inputs: a table of models, a table of chips, and the terms that they are placed on.

They belong to the page, not to the scenario, which gives the length of a conversation, the KV format and the share of
memory that engines use. A link of the page's own carries both.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from engine.catalog import WEIGHT_BYTES, accelerators, models
from engine.machine import accelerators_of, typical_lengths
from engine.placement import Offered, Question, Terms, Wanted, from_token, to_token
from engine.scenario import Scenario, ScenarioError
from ui.words import sentence

MOST_REPLICAS = 60
PARAMETER = "k"
"""Of the address, with a packing."""
_OPENED = "packing opened"
_MODELS, _CHIPS = "packing models", "packing chips"
_NUMBER = "packing number {}"
_UNKNOWN_TOKENS = 1500
"""Of a conversation, when a trace brings the lengths."""
_LEAST_TOKENS, _MOST_TOKENS = 16, 1_000_000
SPLITS = {
    "1 chip": (1,), "1 or 2": (1, 2), "1, 2 or 4": (1, 2, 4), "1, 2, 4 or 8": (1, 2, 4, 8), "2 chips": (2,),
    "4 chips": (4,), "8 chips": (8,),
}  # fmt: skip
DEFAULT_MODELS = (
    Wanted("Llama-2-13B", "int8", 4, (1,)),
    Wanted("Yi-34B", "int8", 2, (1,)),
    Wanted("Llama-2-70B", "int8", 1, (1,)),
)
DEFAULT_CHIPS = (
    Offered("RTX 4090", 4),
    Offered("A100-SXM4-40GB", 2),
    Offered("L40S", 4),
    Offered("A100-SXM4-80GB", 2),
)
"""13B, 34B and 70B onto chips of 24, 40, 48 and 80 GB: what the preset `packing` tells of."""


def open_shared(scenario: Scenario) -> bool:
    """Fill the inputs from the page's address, once; whether it has a packing. Before they are drawn.

    Raises `ScenarioError` for one that can't be read; the inputs then stay as they are.
    """
    token = str(st.query_params.get(PARAMETER, ""))
    if not token or st.session_state.get(_OPENED) == token:
        return bool(token)
    question = from_token(token, _usual(scenario))
    terms = question.terms
    st.session_state[_OPENED] = token
    _start(question.wanted, question.offered)
    shown = {
        "packing stock": "any number" if terms.any_number else "these chips",
        "packing seats": terms.conversations,
        f"packing tokens {_tokens(scenario)}": round(terms.conversation_tokens),
        "packing headroom": 100 * terms.headroom,
        "packing spread": terms.spread,
        "packing host": terms.per_host,
    }
    st.session_state.update(shown)
    return True


def inputs(scenario: Scenario, link: str | None) -> Question:
    """Draw the tables, the terms and the link to them, and read them. Raises `ScenarioError` for what can't be placed.

    `link`: the scenario's query string, None when it is too long.
    """
    with st.container(border=True, gap="small", key="packing"):
        st.markdown(":small[**Models** to place. *Split over*: on how many chips a replica may lie (tensor parallel)]")
        wanted = _models()
        st.markdown(":small[**Chips** in stock; an empty price is the median of list prices]")
        offered = _chips()
        terms = _terms(scenario)
        asked = Question(wanted, offered, terms)
        st.button("Place this scenario's fleet", key="packing-own", on_click=_own, args=(scenario,))
        if link is not None:
            _link(asked, link)
    total = sum(one.replicas for one in wanted)
    if total > MOST_REPLICAS:
        reason, remedy = "replicas are too many for this page", f"place at most {MOST_REPLICAS} at a time"
        raise ScenarioError.of("", f"{total}", reason, f"{remedy}, or use python -m engine place")
    return asked


def models_table(wanted: tuple[Wanted, ...]) -> pd.DataFrame:
    """The table of models as it is edited."""
    names = {splits: name for name, splits in SPLITS.items()}
    return pd.DataFrame(
        {
            "model": [one.model for one in wanted],
            "weights": [one.weight_dtype for one in wanted],
            "replicas": [one.replicas for one in wanted],
            "split over": [names.get(one.allowed_tp, "1 chip") for one in wanted],
        }
    )


def chips_table(offered: tuple[Offered, ...]) -> pd.DataFrame:
    """The table of chips as it is edited."""
    return pd.DataFrame(
        {
            "chip": [one.accelerator for one in offered],
            "how many": [one.count for one in offered],
            "$ an hour": pd.array([one.price for one in offered], dtype="Float64"),
        }
    )


def read_models(table: pd.DataFrame) -> tuple[Wanted, ...]:
    """The rows that name a model; what else is empty takes a default."""
    return tuple(
        Wanted(
            str(row["model"]),
            "bf16" if pd.isna(row["weights"]) else str(row["weights"]),
            1 if pd.isna(row["replicas"]) else int(row["replicas"]),
            SPLITS["1 chip" if pd.isna(row["split over"]) else str(row["split over"])],
        )
        for row in table.to_dict("records")
        if not pd.isna(row["model"])
    )


def read_chips(table: pd.DataFrame) -> tuple[Offered, ...]:
    """The rows that name a chip; an empty number is one, an empty price the catalogue's."""
    return tuple(
        Offered(
            str(row["chip"]),
            1 if pd.isna(row["how many"]) else int(row["how many"]),
            None if pd.isna(row["$ an hour"]) else float(row["$ an hour"]),
        )
        for row in table.to_dict("records")
        if not pd.isna(row["chip"])
    )


def _models() -> tuple[Wanted, ...]:
    column = st.column_config
    table = _edited(
        _MODELS,
        models_table(DEFAULT_MODELS),
        {
            "model": column.SelectboxColumn(options=list(models()), width="medium"),
            "weights": column.SelectboxColumn(options=list(WEIGHT_BYTES), width="small"),
            "replicas": column.NumberColumn(min_value=0, max_value=MOST_REPLICAS, step=1, width="small"),
            "split over": column.SelectboxColumn(options=list(SPLITS), width="small"),
        },
    )
    return read_models(table)


def _chips() -> tuple[Offered, ...]:
    column = st.column_config
    table = _edited(
        _CHIPS,
        chips_table(DEFAULT_CHIPS),
        {
            "chip": column.SelectboxColumn(options=list(accelerators()), width="medium"),
            "how many": column.NumberColumn(min_value=0, max_value=1000, step=1, width="small"),
            "$ an hour": column.NumberColumn(min_value=0.0, format="%.2f", width="small"),
        },
    )
    return read_chips(table)


def _edited(key: str, default: pd.DataFrame, columns: dict[str, object]) -> pd.DataFrame:
    """A table to edit. The editor forgets on another page; what was edited then is where it starts again."""
    start, last = f"{key} start", f"{key} last"
    version = _NUMBER.format(key)
    st.session_state.setdefault(version, 0)
    widget = f"{key} editor {st.session_state[version]}"
    if widget not in st.session_state or start not in st.session_state:
        st.session_state[start] = st.session_state.get(last, default)
    edited: pd.DataFrame = st.data_editor(
        st.session_state[start],
        key=widget,
        num_rows="dynamic",
        hide_index=True,
        column_config=columns,
        placeholder="list price" if key == _CHIPS else None,
    )
    st.session_state[last] = edited
    return edited


def _own(scenario: Scenario) -> None:
    """Start the tables from the scenario's fleet. In a callback."""
    chips = accelerators_of(scenario)
    splits = next((s for s in SPLITS.values() if s == (chips,)), (1, 2, 4, 8))
    mine = Wanted(scenario.model.name, scenario.model.weight_dtype, min(scenario.replicas, MOST_REPLICAS), splits)
    stock = Offered(scenario.hardware.accelerator, chips * scenario.replicas, scenario.hardware.price_per_gpu_hour)
    _start((mine,), (stock,))


def _start(wanted: tuple[Wanted, ...], offered: tuple[Offered, ...]) -> None:
    """Begin the tables anew from these."""
    for key, table in ((_MODELS, models_table(wanted)), (_CHIPS, chips_table(offered))):
        version = _NUMBER.format(key)
        st.session_state[f"{key} last"] = table
        st.session_state[version] = st.session_state.get(version, 0) + 1


def _link(asked: Question, link: str) -> None:
    """The address that opens the scenario with this packing."""
    st.markdown(":small[Link with these tables]", help="Opens them, and the scenario, in any browser.")
    try:
        shared = f"{PARAMETER}={to_token(asked)}"
    except ScenarioError as error:
        st.caption(sentence(f"{error.problems[0].reason}; {error.problems[0].remedy}"))
        return
    address = (st.context.url or "").rstrip("/") or "/"
    st.code(f"{address}?{f'{link}&' if link else ''}{shared}", language=None)


def _tokens(scenario: Scenario) -> int:
    """Of a conversation of the scenario, prompt and answer, as far as the page takes it."""
    lengths = typical_lengths(scenario)
    return _UNKNOWN_TOKENS if lengths is None else min(max(round(sum(lengths)), _LEAST_TOKENS), _MOST_TOKENS)


def _usual(scenario: Scenario) -> Terms:
    """The terms that a scenario gives."""
    return Terms(
        conversations=4,
        conversation_tokens=float(_tokens(scenario)),
        kv_dtype=scenario.model.kv_dtype,
        step_tokens=max(scenario.batching.max_num_batched_tokens, scenario.batching.max_num_seqs),
        gpu_memory_utilization=scenario.batching.gpu_memory_utilization,
    )


def _terms(scenario: Scenario) -> Terms:
    usual = _tokens(scenario)
    keep = {"persist_state": "session"}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        stock = st.segmented_control(
            "Use", ["these chips", "any number"], default="these chips", key="packing stock", required=True, **keep,
            help="*These chips*: does it fit? *Any number* of each kind: what is cheapest?",
        )  # fmt: skip
        seats = st.number_input(
            "Conversations each", 1, 4096, 4, key="packing seats", width=154, **keep,
            help="How many conversations a replica must have room for at the same time: its KV is reserved.",
        )  # fmt: skip
        tokens = st.number_input(
            "of (tokens)", _LEAST_TOKENS, _MOST_TOKENS, usual, step=100, key=f"packing tokens {usual}", width=154,
            **keep, help="Prompt and answer together. Starts at the mean of the scenario.",
        )  # fmt: skip
        headroom = st.number_input(
            "Keep free (%)", 0.0, 90.0, 0.0, step=5.0, format="%g", key="packing headroom", width=154, **keep,
            help="Share of each chip's usable memory that nothing is placed on.",
        )  # fmt: skip
        spread = st.toggle(
            "Replicas on different hosts", key="packing spread", **keep,
            help="A host then has at most one replica of a model, and a replica's chips are in one host.",
        )  # fmt: skip
        host = st.number_input("Chips a host", 1, 72, 8, key="packing host", width=154, **keep) if spread else 8
    return replace(
        _usual(scenario),
        conversations=int(seats),
        conversation_tokens=float(tokens),
        headroom=headroom / 100,
        any_number=stock == "any number",
        spread=spread,
        per_host=int(host),
    )
