"""A packing question as a token for a link: the models, the chips, and the terms that no scenario has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.catalog import WEIGHT_BYTES, accelerators, models
from engine.placement.needs import Offered, Terms, Wanted
from engine.placement.reading import LONGEST, a_list, a_name, a_number, a_whole_number, an_object, error
from engine.scenario import ScenarioError, TokenError, decode, encode

_MODEL = ("model", "weights", "replicas", "split")
_CHIP = ("chip", "count", "price")
_KEYS = ("models", "chips", "conversations", "tokens", "headroom", "any_number", "spread", "per_host")
_MOST_REPLICAS = 1000
_MOST_CHIPS = 100_000
_WIDEST = 1024
_NEW = "ask for the link again"


@dataclass(frozen=True, slots=True)
class Question:
    """Which models onto which chips, on what terms; hashable."""

    wanted: tuple[Wanted, ...]
    offered: tuple[Offered, ...]
    terms: Terms


def to_token(question: Question) -> str:
    """The token of a question: what it shares with the scenario (KV format, steps, share of memory) isn't in it.

    Raises `ScenarioError` when it is too long for a link.
    """
    terms = question.terms
    content: dict[str, Any] = {
        "models": [
            {"model": w.model, "weights": w.weight_dtype, "replicas": w.replicas, "split": list(w.allowed_tp)}
            for w in question.wanted
        ],
        "chips": [{"chip": o.accelerator, "count": o.count, "price": o.price} for o in question.offered],
        "conversations": terms.conversations,
        "tokens": terms.conversation_tokens,
        "headroom": terms.headroom,
        "any_number": terms.any_number,
        "spread": terms.spread,
        "per_host": terms.per_host,
    }
    too_long = ScenarioError.of("", "", "these tables are too long for a link", "place fewer kinds at a time")
    if max(len(question.wanted), len(question.offered)) > LONGEST:
        raise too_long
    try:
        return encode(content)
    except TokenError:
        raise too_long from None


def from_token(token: str, usual: Terms) -> Question:
    """The question that a token stands for; `usual` has what the scenario says.

    Raises `ScenarioError` for a token that was damaged or cut short, and for values that aren't accepted.
    """
    try:
        _, content = decode(token)
    except TokenError as wrong:
        raise ScenarioError.of("", "", f"the link to this packing is {wrong}", wrong.remedy) from None
    document = an_object(content, "", _KEYS)
    terms = replace(
        usual,
        conversations=a_whole_number(document, "conversations", "", 1, least=1, most=4096),
        conversation_tokens=a_number(document, "tokens", "", usual.conversation_tokens, least=16, most=1e6),
        headroom=a_number(document, "headroom", "", 0.0, least=0.0, most=0.9),
        any_number=_flag(document.get("any_number", False), "any_number"),
        spread=_flag(document.get("spread", False), "spread"),
        per_host=a_whole_number(document, "per_host", "", 8, least=1, most=72),
    )
    wanted = tuple(_wanted(entry, f"models.{i}") for i, entry in enumerate(a_list(document, "models", "")))
    offered = tuple(_offered(entry, f"chips.{i}") for i, entry in enumerate(a_list(document, "chips", "")))
    return Question(wanted, offered, terms)


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise error(where, value, "is neither true nor false", _NEW)
    return value


def _known(name: str, names: Sequence[str], where: str) -> str:
    if name not in names:
        raise error(where, name, "isn't in the catalogue here", "open the link where it was made")
    return name


def _wanted(entry: Any, where: str) -> Wanted:
    values = an_object(entry, where, _MODEL)
    splits = values.get("split", [1])
    if not isinstance(splits, list) or not splits or not all(type(tp) is int and 1 <= tp <= _WIDEST for tp in splits):
        raise error(f"{where}.split", splits, "is no list of numbers of chips", _NEW)
    return Wanted(
        _known(a_name(values, "model", where), list(models()), f"{where}.model"),
        _known(a_name(values, "weights", where), list(WEIGHT_BYTES), f"{where}.weights"),
        a_whole_number(values, "replicas", where, 1, least=0, most=_MOST_REPLICAS),
        tuple(sorted(set(splits))),
    )


def _offered(entry: Any, where: str) -> Offered:
    values = an_object(entry, where, _CHIP)
    price = None if values.get("price") is None else a_number(values, "price", where, least=0.0, most=1e6)
    return Offered(
        _known(a_name(values, "chip", where), list(accelerators()), f"{where}.chip"),
        a_whole_number(values, "count", where, 1, least=0, most=_MOST_CHIPS),
        price,
    )
