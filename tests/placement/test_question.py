"""A packing question through a link and back, and links that can't be read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalog import WEIGHT_BYTES, accelerators, models
from engine.placement import Offered, Question, Terms, Wanted, from_token, to_token
from engine.scenario import ScenarioError, encode

USUAL = Terms(4, 1366.0, "bf16", 8192, 0.92)
WANTED = st.builds(
    Wanted, st.sampled_from(list(models())), st.sampled_from(list(WEIGHT_BYTES)), st.integers(0, 1000),
    st.sampled_from([(1,), (1, 2), (8,)]),
)  # fmt: skip
OFFERED = st.builds(
    Offered, st.sampled_from(list(accelerators())), st.integers(0, 100_000), st.none() | st.floats(0, 1e6)
)
TERMS = st.builds(
    lambda **changes: replace(USUAL, **changes),
    conversations=st.integers(1, 4096), conversation_tokens=st.floats(16, 1e6), headroom=st.floats(0, 0.9),
    any_number=st.booleans(), spread=st.booleans(), per_host=st.integers(1, 72),
)  # fmt: skip


@settings(deadline=None)
@given(st.builds(Question, st.lists(WANTED, max_size=8).map(tuple), st.lists(OFFERED, max_size=8).map(tuple), TERMS))
def test_there_and_back(question: Question) -> None:
    assert from_token(to_token(question), USUAL) == question


def test_what_the_scenario_says_is_the_scenario_s() -> None:
    other = replace(USUAL, kv_dtype="fp8", step_tokens=2048, gpu_memory_utilization=0.8)
    assert from_token(to_token(Question((), (), USUAL)), other).terms == other


@pytest.mark.parametrize("cut", [1, 20])
def test_a_link_cut_short_says_so(cut: int) -> None:
    token = to_token(Question((Wanted("Phi-4", "bf16", 2, (1,)),), (Offered("L40S", 3),), USUAL))
    with pytest.raises(ScenarioError, match=r"the link to this packing is cut short: .*; copy the whole link again"):
        from_token(token[:-cut], USUAL)


def test_a_damaged_link_says_so() -> None:
    token = to_token(Question((Wanted("Phi-4", "bf16", 2, (1,)),), (Offered("L40S", 3),), USUAL))
    with pytest.raises(ScenarioError, match="the link to this packing is damaged"):
        from_token(token[:20] + ("A" if token[20] != "A" else "B") + token[21:], USUAL)


MODEL = {"model": "Phi-4", "weights": "bf16", "replicas": 2, "split": [1]}
CHIP = {"chip": "L40S", "count": 3, "price": None}


@pytest.mark.parametrize(
    ("models", "chips", "terms", "said"),
    [
        ([MODEL | {"model": "Phi-99"}], [CHIP], {}, 'models.0.model: "Phi-99" isn\'t in the catalogue here; open'),
        ([MODEL | {"weights": "int3"}], [CHIP], {}, 'models.0.weights: "int3" isn\'t in the catalogue here'),
        ([MODEL | {"replicas": -1}], [CHIP], {}, "models.0.replicas: -1 is below 0; give a number from 0 to 1000"),
        ([MODEL | {"split": [0]}], [CHIP], {}, "models.0.split: [0] is no list of numbers of chips"),
        ([MODEL], [CHIP | {"chip": "L41S"}], {}, 'chips.0.chip: "L41S" isn\'t in the catalogue here'),
        ([MODEL], [CHIP | {"price": "free"}], {}, 'chips.0.price: "free" is not a number'),
        ([MODEL], [CHIP], {"headroom": 1.0}, "headroom: 1 is above 0.9"),
        ([MODEL], [CHIP], {"spread": 1}, "spread: 1 is neither true nor false"),
        ([MODEL], [CHIP] * 51, {}, "chips: 51 entries are too many; give at most 50"),
    ],
)
def test_what_is_not_accepted(models: object, chips: object, terms: dict[str, object], said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        from_token(encode({"models": models, "chips": chips, **terms}), USUAL)
    assert str(error.value).startswith(said)


def test_too_much_for_a_link() -> None:
    many = tuple(Wanted(name, "bf16", i, (1,)) for i, name in enumerate(list(models()) * 2))[:51]
    to_token(Question(many[:50], (), USUAL))
    with pytest.raises(ScenarioError, match="too long for a link; place fewer kinds"):
        to_token(Question(many, (), USUAL))
