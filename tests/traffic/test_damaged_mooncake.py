"""Damaged traces of JSON lines: one clear message, naming the first line at fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.traffic.traces import text
from tests.traffic.build import AZURE, MOONCAKE, RANGE, TOKENS, complaint, talk

MS = "expected milliseconds, 0 or more"
IDS = "is not a list of block ids; expected whole numbers, 0 or more"
LATEST = "expected 0 to 1,000,000,000 s"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (talk("null"), f"timestamp: 'null' is not a number; {MS}"),
        (talk('"9"'), f"timestamp: '\"9\"' is not a number; {MS}"),
        (talk("true"), f"timestamp: 'true' is not a number; {MS}"),
        (talk("-1"), f"timestamp: '-1' is negative; {MS}"),
        (talk("7"), "timestamp: '7' is earlier than the row above; expected rows in order of time"),
        (talk("4"), "timestamp: '4' is earlier than the row above; expected rows in order of time"),
        (talk("1e13"), f"timestamp: '10000000000000.0' is above 1,000,000,000; {LATEST}"),
        (talk("1e999"), f"timestamp: 'Infinity' is above 1,000,000,000; {LATEST}"),
        (talk("9" * 400), f"timestamp: '{'9' * 77}...' is above 1,000,000,000; {LATEST}"),
        (talk(9, 5.5), f"input_length: '5.5' is not a whole number; {TOKENS}"),
        (talk(9, "false"), f"input_length: 'false' is not a whole number; {TOKENS}"),
        (talk(9, -5), f"input_length: '-5' is negative; {TOKENS}"),
        (talk(9, 0), f"input_length: '0' is below 1; {RANGE}"),
        (talk(9, 16777217), f"input_length: '16777217' is above 16,777,216; {RANGE}"),
        (talk(9, 5, "[5]"), f"output_length: '[5]' is not a whole number; {TOKENS}"),
        (talk(9, 5, -1), f"output_length: '-1' is negative; {TOKENS}"),
        (talk(9, 5, "1e999"), f"output_length: 'Infinity' is not a whole number; {TOKENS}"),
        (talk(hash_ids="null"), f"hash_ids: 'null' {IDS}"),
        (talk(hash_ids="[1, true]"), f"hash_ids: '[1, true]' {IDS}"),
        (talk(hash_ids="[1.0]"), f"hash_ids: '[1.0]' {IDS}"),
        (talk(hash_ids="[1, -2]"), f"hash_ids: '[1, -2]' {IDS}"),
        (talk(hash_ids=f"[{2**64}]"), f"hash_ids: '[{2**64}]' {IDS}"),
        (talk(hash_ids='["a"]'), f"hash_ids: '[\"a\"]' {IDS}"),
        (talk(hash_ids="{}"), f"hash_ids: '{{}}' {IDS}"),
        ('{"timestamp": 9, "input_length": 5, "output_length": 5}', f"hash_ids is missing; expected {MOONCAKE}"),
        ("{}", f"timestamp is missing; expected {MOONCAKE}"),
        ("[9, 5, 5]", f"'[9, 5, 5]' is not a JSON object; expected {MOONCAKE}"),
        ("9,5,5", f"'9,5,5' is not JSON; expected {MOONCAKE}"),
        ("  ", f"'  ' is not JSON; expected {MOONCAKE}"),
        (talk(5)[:20], f"'{talk(5)[:20]}' is not JSON; expected {MOONCAKE}"),
        (talk(9) + talk(9), f"'{(talk(9) + talk(9))[:77]}...' is not JSON; expected {MOONCAKE}"),
        (talk("NaN"), f"'{talk('NaN')}' is not JSON; expected {MOONCAKE}"),
        (talk("9" * 5000), f"'{talk('9' * 5000)[:77]}...' is not JSON; expected {MOONCAKE}"),
        (talk(9)[:-1] + ', "timestamp": 9}', f"a key stands twice; expected {MOONCAKE}"),
        ("[" * 100_000, f"'{'[' * 77}...' is not JSON; expected {MOONCAKE}"),
        (talk(hash_ids="[" * 900 + "]" * 900), f"hash_ids: '{'[' * 77}...' {IDS}"),
        (talk(hash_ids=f"[{'1, ' * 400_000}1]"), f"more than 1,000,000 bytes are no row; expected {MOONCAKE}"),
    ],
    ids=lambda value: value[:40],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_bad_line_of_mooncake(row: str, message: str, end: str) -> None:
    """Good lines before it and other faults behind it: the line named is the first bad one, as an editor counts."""
    lines = [talk(5), "", talk(8, 700, 0), row, "{", talk(-1)]
    assert complaint(end.join(lines).encode()) == f"trace line 4: {message}"


def test_a_mooncake_trace_with_a_bad_first_line_or_no_answers() -> None:
    assert complaint(talk(input_length=0).encode()) == f"trace line 1: input_length: '0' is below 1; {RANGE}"
    assert complaint(b'{"timestamp": 1') == f"trace line 1: '{{\"timestamp\": 1' is not JSON; expected {MOONCAKE}"
    assert complaint(f"{talk(output_length=0)}\n".encode()) == (
        "trace: no row has output tokens; expected at least one request with an answer"
    )
    assert complaint(talk().encode(), "azure") == (
        f"trace line 1: {talk()!r} is not the header of format azure; expected {AZURE}, or traffic.trace.format auto"
    )


@pytest.mark.parametrize("size", [1, 300, 2000])
def test_faults_of_mooncake_are_found_across_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(text, "_BLOCK_BYTES", size)
    lines = [talk(i) for i in range(60)]
    for bad, message in (
        (talk(30.5), "timestamp: '30.5' is earlier than the row above; expected rows in order of time"),
        (talk(32, 0), f"input_length: '0' is below 1; {RANGE}"),
        ("x", f"'x' is not JSON; expected {MOONCAKE}"),
    ):
        data = "\n".join([*lines[:32], bad, *lines[33:]]).encode()
        assert complaint(data) == f"trace line 33: {message}"


def test_an_endless_line_of_mooncake_is_not_read() -> None:
    """Wherever it is cut, also within a character."""
    for filler in ("1", " ", "é", "[", '{"a":'):
        expected = complaint("\n".join([talk(5), '{"timestamp": 9' + filler * 1_000_000]).encode())
        assert expected == f"trace line 2: more than 1,000,000 bytes are no row; expected {MOONCAKE}"


@pytest.mark.data
def test_damaged_copies_of_the_real_mooncake_trace(data_dir: Path) -> None:
    whole = (data_dir / "traces" / "mooncake_conversation_trace.jsonl").read_bytes()
    lines = whole.split(b"\n")

    def damaged(line: int, new: bytes) -> str:
        return complaint(b"\n".join([*lines[: line - 1], new, *lines[line:]]))

    assert damaged(5000, lines[99]).startswith("trace line 5000: timestamp: '")
    assert damaged(5000, lines[99]).endswith(" is earlier than the row above; expected rows in order of time")
    assert damaged(8000, b"?") == f"trace line 8000: '?' is not JSON; expected {MOONCAKE}"
    assert damaged(8000, lines[7999].replace(b"hash_ids", b"hashes")) == (
        f"trace line 8000: hash_ids is missing; expected {MOONCAKE}"
    )
    backwards = b"\n".join(reversed(lines[:-1]))
    assert complaint(backwards).startswith("trace line 8: timestamp: '3534000' is earlier")
    cut = whole[: len(whole) // 2]
    assert complaint(cut).startswith(f"trace line {len(cut.splitlines())}: '{{" + '"timestamp": ')
    assert complaint(cut).endswith(f" is not JSON; expected {MOONCAKE}")
