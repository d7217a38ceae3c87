"""Links carry a scenario whole or say what is wrong; never a traceback, never silently something else."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.scenario import LinkError, Scenario, changes, from_query, open_link, preset, presets, to_query
from engine.scenario import token as tokens
from engine.scenario.link import DECODERS
from engine.scenario.schema.document import SCHEMA
from tests.scenario.strategies import scenarios

GOLDEN = Path(__file__).resolve().parents[1] / "truth" / "links"
BUSY = Scenario().replace(
    {
        "traffic.rate_rps": 7.5,
        "traffic.process": "gamma",
        "traffic.cv": 1.7,
        "traffic.classes.0.prompt_tokens.mean": 2200,
        "traffic.classes.0.output_tokens.mean": 330,
        "model.name": "Llama-3.1-8B",
        "model.weight_dtype": "bf16",
        "parallelism.tp": 1,
        "fleet.replicas": 5,
        "batching.max_num_seqs": 64,
        "slo.0.threshold_s": 1.5,
        "run.seeds": 32,
    }
)
TOKEN = to_query(BUSY).removeprefix("s=")


def broken(link: str) -> LinkError:
    """The error that a link gives; its nearest scenario is valid and told as `kept`."""
    with pytest.raises(LinkError) as raised:
        from_query(link)
    assert Scenario.from_dict(raised.value.nearest.to_dict()) == raised.value.nearest
    return raised.value


def outcome(link: str) -> LinkError | None:
    """The error that a link gives, if any; anything but a `LinkError` fails the test."""
    try:
        from_query(link)
    except LinkError as error:
        return error
    return None


def packed(content: Any, schema: int = SCHEMA) -> str:
    """A token with sound checks around any content: what only a wrong or malicious program would make."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = squeeze.compress(text) + squeeze.flush()
    head = schema.to_bytes(1) + len(body).to_bytes(2)
    head += (zlib.crc32(head) & 0xFF).to_bytes(1)
    return base64.urlsafe_b64encode(head + zlib.crc32(head + body).to_bytes(4) + body).decode().rstrip("=")


# round trips


@settings(max_examples=150, deadline=None)
@given(scenarios())
def test_random_scenarios_round_trip(scenario: Scenario) -> None:
    link = to_query(scenario)
    assert link.startswith("s=")
    assert from_query(link) == scenario
    against = to_query(scenario, "monday")
    assert against.startswith("p=monday")
    assert from_query(against) == scenario


@pytest.mark.parametrize("entry", presets(), ids=lambda entry: entry.name)
def test_presets_round_trip(entry: Any) -> None:
    assert from_query(entry.scenario.to_link()) == entry.scenario
    assert to_query(entry.scenario, entry.name) == f"p={entry.name}"
    assert open_link(f"p={entry.name}").preset == entry.name
    assert from_query(f"p={entry.name}") == entry.scenario


def test_twelve_changes_make_a_short_link() -> None:
    assert len(to_query(BUSY)) < 200
    assert len(to_query(BUSY, "monday")) < 250


@pytest.mark.parametrize(
    "link",
    [
        f"https://example.org/start?s={TOKEN}",
        f"http://localhost:8501/start?utm_source=chat&s={TOKEN}#tiles",
        f"localhost:8501/?s={TOKEN}",
        f"?s={TOKEN}",
        f"s={TOKEN}",
        f"s={quote(TOKEN)}&embed=true",
        TOKEN,
        f"{TOKEN}==",
        f"  {TOKEN[:50]}\n{TOKEN[50:]} \n",
        f"<{TOKEN}>.",
    ],
)
def test_ways_to_write_a_link(link: str) -> None:
    assert open_link(link).scenario == BUSY
    assert open_link(link).preset is None


@pytest.mark.parametrize(
    "link",
    [
        "",
        "  ",
        "https://example.org/",
        "https://example.org/start",
        "http://a/b?embed=true",
        "localhost:8501/start",
        "http://[/?",
        "?",
        "#",
    ],
)
def test_no_link_is_the_first_preset(link: str) -> None:
    assert open_link(link).scenario == preset("monday").scenario
    assert open_link(link).preset == "monday"


def test_a_bare_token_knows_its_preset() -> None:
    link = to_query(BUSY, "average-lies")
    assert from_query(link.partition("s=")[2]) == BUSY
    assert open_link(link).preset == "average-lies"


def test_no_changes_have_a_token_too() -> None:
    assert from_query(to_query(Scenario())) == Scenario()
    assert from_query(to_query(Scenario(), "monday")) == Scenario()


# golden files


@pytest.mark.parametrize("schema", sorted(DECODERS))
def test_old_links_keep_their_meaning(schema: int) -> None:
    golden = json.loads((GOLDEN / f"schema-{schema}.json").read_text())
    assert golden
    for entry in golden:
        assert contains(from_query(entry["link"]).to_dict(), entry["scenario"]), entry["link"]


def contains(document: Any, part: Any) -> bool:
    """Whether a document says all that `part` says; keys may have been added since."""
    if isinstance(part, dict):
        return isinstance(document, dict) and all(k in document and contains(document[k], v) for k, v in part.items())
    if isinstance(part, list):
        return len(document) == len(part) and all(map(contains, document, part))
    return bool(document == part)


def test_every_schema_number_has_decoder_words_and_golden_file() -> None:
    assert set(DECODERS) == set(range(1, SCHEMA + 1))
    for schema in DECODERS:
        assert (GOLDEN / f"schema-{schema}.json").exists()


# what can go wrong


def test_truncated() -> None:
    error = broken(f"s={TOKEN[:100]}")
    assert error.kind == "truncated"
    assert str(error) == f"link: cut short: 100 of its {len(TOKEN)} characters arrived; copy the whole link again"
    assert error.kept
    assert error.nearest.fleet.replicas == 5, "readable: the content is in alphabetical order"


def test_truncated_anywhere() -> None:
    whole = changes(Scenario().to_dict(), BUSY.to_dict())
    for length in range(len(TOKEN)):
        error = broken(f"s={TOKEN[:length]}")
        assert error.kind == "truncated"
        kept = changes(Scenario().to_dict(), error.nearest.to_dict())
        assert kept.items() <= whole.items(), "nothing is made up"


def test_what_is_lost_of_a_preset_with_changes_is_the_preset() -> None:
    link = to_query(Scenario().replace({"fleet.replicas": 9}), "average-lies")
    assert broken(link[:20]).nearest == preset("average-lies").scenario
    assert broken(link[:-6] + "AAAAAA").nearest == preset("average-lies").scenario


def test_damaged_and_mended() -> None:
    damaged = TOKEN[:60] + ("A" if TOKEN[60] != "A" else "B") + TOKEN[61:]
    error = broken(damaged)
    assert error.kind == "damaged"
    assert str(error) == "link: damaged: its checksum doesn't match; copy the link again"
    assert error.nearest == BUSY
    assert "fleet.replicas: 5" in error.kept


def test_damaged_beyond_mending() -> None:
    error = broken(TOKEN[:60] + "AAAA" + TOKEN[64:])
    assert error.kind == "damaged"
    assert (error.nearest, error.kept) == (Scenario(), ())


def test_characters_that_no_link_has() -> None:
    error = broken(f"s={TOKEN[:60]}é{TOKEN[61:]}")
    assert str(error) == "link: damaged: it has characters that no link has; copy the link again"
    assert error.nearest == BUSY
    assert broken("s=%00%01").kind == "truncated"
    assert broken(f"s={TOKEN[:9]}.{TOKEN[10:19]}.{TOKEN[20:]}").nearest == Scenario()


def test_too_many_characters() -> None:
    error = broken(f"{TOKEN}AAAA")
    assert str(error) == "link: damaged: it has 3 bytes too many; copy the link again"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(TOKEN) - 1), st.sampled_from("ABCxyz019-_"))
def test_one_wrong_character_never_changes_the_meaning(position: int, char: str) -> None:
    altered = f"{TOKEN[:position]}{char}{TOKEN[position + 1 :]}"
    found = outcome(altered)
    if found is None:
        assert from_query(altered) == BUSY
    else:
        assert found.kind in ("damaged", "truncated")
        assert found.nearest in (BUSY, Scenario()) or found.kind == "truncated"


def test_too_long() -> None:
    error = broken("s=" + "A" * 6001)
    assert error.kind == "too_long"
    assert str(error) == "link: too long: 6,001 characters, and at most 6,000 are read; ask for the scenario as a file"
    values = [7 * n * n % 10_007 + 1 for n in range(5000)]
    lengths = {"dist": "empirical", "values": values, "weights": [1] * 5000}
    big = Scenario().replace({"traffic.classes.0.prompt_tokens": lengths})
    with pytest.raises(LinkError, match=r"^link: too long: this scenario needs [\d,]+ characters") as raised:
        big.to_link()
    assert raised.value.kind == "too_long"
    assert raised.value.nearest == big


def test_too_large() -> None:
    error = broken(packed({"name": "a" * 300_000}))
    assert error.kind == "too_large"
    assert str(error) == "link: too large: it unpacks to more than 256,000 bytes; ask for the scenario as a file"
    assert error.nearest == Scenario()


def test_newer_schema() -> None:
    error = broken(packed({"fleet": {"replicas": 7, "colour": "red"}, "weather": {}}, schema=2))
    assert error.kind == "newer_schema"
    assert str(error) == (
        "link: made by a newer version (schema 2, this one reads up to 1); "
        "update this installation, or open the link where it was made"
    )
    assert error.nearest == Scenario().replace({"fleet.replicas": 7})
    assert error.kept == ("fleet.replicas: 7",)
    assert [line.partition(";")[0] for line in error.dropped] == ["fleet.colour: unknown key", "weather: unknown key"]


def test_out_of_range() -> None:
    error = broken(packed({"fleet": {"replicas": 99_999}, "traffic": {"cv": 2}, "run": {"seeds": "many"}}))
    assert error.kind == "invalid"
    assert str(error) == (
        "fleet.replicas: 99999 is above 4,096; give a whole number from 1 to 4,096\n"
        'run.seeds: "many" is not a whole number; give a whole number from 1 to 1,024'
    )
    assert error.nearest == Scenario().replace({"fleet.replicas": 4096, "traffic.cv": 2})
    assert error.kept == ("traffic.cv: 2", "fleet.replicas: 4096")
    assert error.dropped == (
        "fleet.replicas: 99999 is above 4,096; 4096 instead",
        'run.seeds: "many" is not a whole number; give a whole number from 1 to 1,024',
    )


def test_unknown_key() -> None:
    error = broken(packed({"fleet": {"replcas": 3}, "traffic": {"cv": 2}}))
    assert (error.kind, str(error)) == ("invalid", "fleet.replcas: unknown key; did you mean fleet.replicas?")
    assert error.nearest == Scenario().replace({"traffic.cv": 2})


@pytest.mark.parametrize("content", [b"[1]", b'"a"', b"null", b"{", b"\xff\xfe", b'{"run":{},"run":{}}', b"[" * 9999])
def test_content_that_is_no_object(content: bytes) -> None:
    assert broken(packed(content)).kind in ("invalid", "damaged")


_KEYS = st.sampled_from(
    [
        "",
        "traffic",
        "shape",
        "kind",
        "classes",
        "slo",
        "prompt_tokens",
        "dist",
        "0",
        "run",
        "model",
        "custom",
        "policies",
        "a.b",
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_KEYS, _JSON, max_size=4))
def test_any_content_gives_a_scenario_or_words(content: dict[str, Any]) -> None:
    found = outcome(packed(content))
    assert found is None or (str(found) and found.kind in ("invalid", "changed_preset"))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_a_scenario_or_words(text: str) -> None:
    found = outcome(text)
    assert found is None or str(found)


def test_unknown_preset() -> None:
    error = broken("p=mondy")
    assert error.kind == "unknown_preset"
    assert (
        str(error) == 'p: "mondy" is not a preset; did you mean monday? '
        "there are monday, average-lies, one-read, wordy, long-prompt, fan-out, say-no, nine-minutes, promise, "
        "packing, split-or-copy and retry-storm"
    )
    assert error.nearest == preset("monday").scenario
    error = broken(f"p=nothing&s={TOKEN}")
    assert error.kind == "unknown_preset"
    assert error.nearest == BUSY


def test_a_preset_that_has_changed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = Scenario().replace({"fleet.replicas": 9, "traffic.cv": 3})
    link = to_query(changed, "monday")
    monkeypatch.setattr("engine.scenario.link._scenarios", lambda: {"monday": preset("average-lies").scenario})
    error = broken(link)
    assert error.kind == "changed_preset"
    assert str(error) == "link: the preset monday has changed since it was made; check the values, then share it anew"
    assert error.nearest.fleet.replicas == 9
    assert error.nearest.run == preset("average-lies").scenario.run


def test_two_tokens_in_one_link_are_the_first() -> None:
    assert from_query(f"s={TOKEN}&s={to_query(Scenario())[2:]}") == BUSY


def test_the_first_bytes_say_what_a_token_is() -> None:
    schema, content = tokens.decode(TOKEN)
    assert schema == SCHEMA
    assert content["fleet"] == {"replicas": 5}
    assert content["traffic"]["classes"] == [{"output_tokens": {"mean": 330}, "prompt_tokens": {"mean": 2200}}]


def test_errors_travel_between_processes() -> None:
    error = broken(packed({"fleet": {"replicas": 0}}))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.kind, again.nearest, again.kept) == (str(error), error.kind, error.nearest, error.kept)
