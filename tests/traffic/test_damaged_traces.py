"""Damaged traces: one clear message, naming the first line at fault, what is wrong there and what was expected."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from engine.traffic import read_trace
from engine.traffic.traces import recording, text, trace
from tests.traffic.build import AZURE, BURSTGPT, FULL, HEADER, MOONCAKE, RANGE, TOKENS, complaint

FORMATS = (
    f"{FULL.replace('output_tokens,', 'output_tokens[,')}] (requests) or {AZURE} (azure) or {BURSTGPT} (burstgpt) "
    f"or {MOONCAKE} (mooncake)"
)
NO_NAME = "is not a class name; expected 1 to 60 printable characters"


def rows(*lines: str, header: str = HEADER) -> bytes:
    return "\n".join((header, *lines, "")).encode()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,5,5", "arrival_s: 'x' is not a number; expected seconds from the start, 0 or more"),
        (",5,5", "arrival_s: '' is empty; expected seconds from the start, 0 or more"),
        ("-1.5,5,5", "arrival_s: '-1.5' is negative; expected seconds from the start, 0 or more"),
        ("nan,5,5", "arrival_s: 'nan' is not a number; expected seconds from the start, 0 or more"),
        ("inf,5,5", "arrival_s: 'inf' is not a number; expected seconds from the start, 0 or more"),
        ("1_0,5,5", "arrival_s: '1_0' is not a number; expected seconds from the start, 0 or more"),
        ("1e999,5,5", "arrival_s: '1e999' is above 1,000,000,000; expected 0 to 1,000,000,000 s"),
        ("1.5,5,5", "arrival_s: '1.5' is earlier than the row above; expected rows in order of time"),
        ("3,,5", f"prompt_tokens: '' is empty; {TOKENS}"),
        ("3,five,5", f"prompt_tokens: 'five' is not a whole number; {TOKENS}"),
        ("3,5.5,5", f"prompt_tokens: '5.5' is not a whole number; {TOKENS}"),
        ("3,-5,5", f"prompt_tokens: '-5' is negative; {TOKENS}"),
        ("3,NaN,5", f"prompt_tokens: 'NaN' is not a whole number; {TOKENS}"),
        ("3,0,5", f"prompt_tokens: '0' is below 1; {RANGE}"),
        ("3,16777217,5", f"prompt_tokens: '16777217' is above 16,777,216; {RANGE}"),
        ("3,5," + "9" * 400, f"output_tokens: '{'9' * 77}...' is above 16,777,216; expected 0 to 16,777,216 tokens"),
        ("3,5,-1", f"output_tokens: '-1' is negative; {TOKENS}"),
        ("3,٣,5", f"prompt_tokens: '٣' is not a whole number; {TOKENS}"),
        ("3,5", f"2 columns instead of 3; expected {HEADER}"),
        ("3;5;5", f"1 column instead of 3; expected {HEADER}"),
        ("3,5,5,5", f"4 columns instead of 3; expected {HEADER}"),
        ("3,5,5,", f"4 columns instead of 3; expected {HEADER}"),
        (" ", f"1 column instead of 3; expected {HEADER}"),
        ('3,"5,5', f"'3,\"5,5' has a quotation mark out of place; expected {HEADER}"),
        ('3,"5"5,5', f"'3,\"5\"5,5' has a quotation mark out of place; expected {HEADER}"),
        ("3\0,5,5", "arrival_s: '3\\x00' is not a number; expected seconds from the start, 0 or more"),
        ("3,5,5\r3,5,5", f"'3,5,5\\r3,5,5' can't be read; expected {HEADER}"),
        ("arrival_s" * 2000 + ",5,5", f"18,004 characters are no row; expected {HEADER}"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_bad_row_of_requests(row: str, message: str, end: str) -> None:
    """Good rows before it and other faults behind it: the line named is the first bad one, as an editor counts."""
    lines = [HEADER, "1,5,5", "", "2,5,5", row, "x,x,x", "0,0,0"]
    assert complaint(end.join(lines).encode()) == f"trace line 5: {message}"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2,5,5,-1,0,a", f"cached_prefix_tokens: '-1' is negative; {TOKENS}"),
        ("2,5,5,20000000,0,a", "cached_prefix_tokens: '20000000' is above 16,777,216; expected 0 to 16,777,216 tokens"),
        ("2,5,5,0,high,a", "priority: 'high' is not a whole number; expected a whole number, lower is more urgent"),
        ("2,5,5,0,1.5,a", "priority: '1.5' is not a whole number; expected a whole number, lower is more urgent"),
        ("2,5,5,0,-2000000,a", "priority: '-2000000' is below -1,000,000; expected -1,000,000 to 1,000,000"),
        ("2,5,5,0,0,", "class: '' is empty; expected 1 to 60 printable characters"),
        ("2,5,5,0,0,   ", "class: '' is empty; expected 1 to 60 printable characters"),
        ('2,5,5,0,0,"   "', "class: '   ' is not a class name; expected 1 to 60 printable characters"),
        ("2,5,5,0,0," + "ä" * 61, f"class: '{'ä' * 61}' is not a class name; expected 1 to 60 printable characters"),
        ("2,5,5,0,0," + "k" * 99, f"class: '{77 * 'k'}...' {NO_NAME}"),
        ("2,5,5,0,0," + "k" * 999, f"class: '{77 * 'k'}...' {NO_NAME}"),
        ("2,5,5,0,0,a\u2028b", "class: 'a\\u2028b' is not a class name; expected 1 to 60 printable characters"),
        ("2,5,5,0,0,a\tb", "class: 'a\\tb' is not a class name; expected 1 to 60 printable characters"),
    ],
)
def test_a_bad_optional_column(row: str, message: str) -> None:
    assert complaint(rows("1,5,5,0,0,a", row, "1,5,5,0,0,a", header=FULL)) == f"trace line 3: {message}"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2023-11-16,5,5", "'2023-11-16' is not a date and time"),
        ("16/11/2023 18:17:04,5,5", "'16/11/2023 18:17:04' is not a date and time"),
        ("1700158624.5,5,5", "'1700158624.5' is not a date and time"),
        ("-1,5,5", "'-1' is not a date and time"),
        (",5,5", "'' is empty"),
        ("2023-13-16 18:17:04,5,5", "'2023-13-16 18:17:04' is not in the calendar"),
        ("2023-11-31 18:17:04,5,5", "'2023-11-31 18:17:04' is not in the calendar"),
        ("2023-11-16 24:17:04,5,5", "'2023-11-16 24:17:04' is not in the calendar"),
    ],
)
def test_a_bad_moment(row: str, message: str) -> None:
    data = rows("2023-11-16 18:17:03,5,5", row, "2023-11-16 18:17:01,x,5", header=AZURE)
    assert complaint(data) == f"trace line 3: TIMESTAMP: {message}; expected one like 2023-11-16 18:17:03.9799600"


def test_a_disordered_azure_trace() -> None:
    """The fault that comes first is named, though another, found earlier by the reader, follows."""
    moments = ["18:17:03.9", "18:17:04.1", "18:17:04.0999999", "99:17:05"]
    data = rows(*(f"2023-11-16 {moment},5,5" for moment in moments), header=AZURE)
    assert complaint(data) == (
        "trace line 4: TIMESTAMP: '2023-11-16 18:17:04.0999999' is earlier than the row above; "
        "expected rows in order of time"
    )
    no_prompt = rows("2023-11-16 18:17:03,0,5", header=AZURE)
    assert complaint(no_prompt) == f"trace line 2: ContextTokens: '0' is below 1; {RANGE}"


def test_a_row_before_the_first_is_out_of_order() -> None:
    data = rows("2023-11-16 18:17:03,5,5", "2023-11-16 18:17:02,5,5", header=AZURE)
    assert complaint(data) == (
        "trace line 3: TIMESTAMP: '2023-11-16 18:17:02' is earlier than the row above; expected rows in order of time"
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,GPT-4,5,5,10,API log", "Timestamp: 'x' is not a number; expected seconds from the start, 0 or more"),
        ("-8,GPT-4,5,5,10,API log", "Timestamp: '-8' is negative; expected seconds from the start, 0 or more"),
        ("6,GPT-4,5,5,10,API log", "Timestamp: '6' is earlier than the row above; expected rows in order of time"),
        ("4,GPT-4,5,5,10,API log", "Timestamp: '4' is earlier than the row above; expected rows in order of time"),
        ("8,GPT-4,0,5,5,API log", f"Request tokens: '0' is below 1; {RANGE}"),
        ("8,GPT-4,5,-5,0,API log", f"Response tokens: '-5' is negative; {TOKENS}"),
        ("8,GPT-4,5,,5,API log", f"Response tokens: '' is empty; {TOKENS}"),
        ("8,GPT-4,5,5,ten,API log", f"Total tokens: 'ten' is not a whole number; {TOKENS}"),
        ("8,GPT-4,5,5,10", f"5 columns instead of 6; expected {BURSTGPT}"),
        (
            '8,"GPT-4,5,5,10,API log',
            f"'8,\"GPT-4,5,5,10,API log' has a quotation mark out of place; expected {BURSTGPT}",
        ),
        (f"8,{'G' * 300},5,5,10,API log", f"Model: '{'G' * 77}...' is not a short text; expected up to 60 characters"),
    ],
)
def test_a_bad_row_of_burstgpt(row: str, message: str) -> None:
    data = rows("5,ChatGPT,5,5,10,Conversation log", "7,,5,0,5,API log", row, "x,x,x", header=BURSTGPT)
    assert complaint(data) == f"trace line 4: {message}"


def test_a_column_that_burstgpt_does_not_have() -> None:
    assert complaint(rows(header=f"{BURSTGPT},Region")) == (
        f"trace line 1: column 'Region' is not known; expected {BURSTGPT}[,Session ID,Elapsed time]"
    )


@pytest.mark.parametrize(
    "header",
    [
        "time,prompt,output",
        "arrival_s,prompt_tokens",
        "arrival_s;prompt_tokens;output_tokens",
        "1.5,100,20",
        "TIMESTAMP,ContextTokens,GeneratedTokens,Model",
        "timestamp,contexttokens,generatedtokens",
        '"arrival_s',
    ],
)
def test_a_header_of_no_known_format(header: str) -> None:
    data = rows("1,5,5", header=header)
    assert complaint(data) == f"trace line 1: {header!r} is the header of no known format; expected {FORMATS}"


def test_a_header_with_a_column_that_is_not_known() -> None:
    expected = f"expected {FORMATS.split(' (')[0]}"
    for more, message in (("prioritty", "'prioritty' is not known"), ("class,class", "'class' stands twice")):
        assert complaint(rows(header=f"{HEADER},{more}")) == f"trace line 1: column {message}; {expected}"


def test_a_format_that_the_file_does_not_have() -> None:
    assert complaint(rows("1,5,5"), "azure") == (
        f"trace line 1: {HEADER!r} is not the header of format azure; expected {AZURE}, or traffic.trace.format auto"
    )
    assert complaint(rows("1,5,5"), "parquet") == (
        "traffic.trace.format: 'parquet' is not known; expected auto, requests, azure, burstgpt, mooncake"
    )


@pytest.mark.parametrize("data", [b"", b"\n\r\n  \n", b"\xef\xbb\xbf", b" "])
def test_an_empty_file(data: bytes) -> None:
    assert complaint(data) == "trace: the file is empty; expected a header line and one line per request"


def test_nothing_but_a_header_or_failures() -> None:
    for data in (rows(), HEADER.encode(), rows("", "")):
        assert complaint(data) == "trace: there is a header, but no row; expected at least one request with an answer"
    assert complaint(rows("1,5,0", "2,5,0")) == (
        "trace: no row has output tokens; expected at least one request with an answer"
    )


def test_bytes_that_are_not_utf_8() -> None:
    expected = "is not UTF-8 text; expected a text file saved as UTF-8"
    assert complaint(rows("1,5,5").decode().encode("utf-16")) == f"trace line 1: byte 0xff {expected}"
    latin = f"{HEADER},class\n1,5,5,chat\n2,5,5,Größe\n".encode("latin-1")
    assert complaint(latin) == f"trace line 3: byte 0xf6 {expected}"
    assert complaint(rows("1,5,5") + b"2,5,\x80") == f"trace line 3: byte 0x80 {expected}"


def test_a_cut_file() -> None:
    whole = rows("1.5,500,20", "2.5,600,30")
    assert complaint(whole[:-10]) == f"trace line 3: 1 column instead of 3; expected {HEADER}"
    assert complaint(whole[:-3]) == f"trace line 3: output_tokens: '' is empty; {TOKENS}"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing.csv"
    assert complaint(missing) == (
        f"trace: {str(missing)!r} can't be read (No such file or directory); give the path of a file"
    )
    assert complaint(tmp_path) == f"trace: {str(tmp_path)!r} can't be read (Is a directory); give the path of a file"


def test_more_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_ROWS", 3)
    assert complaint(rows("1,1,1", "1,1,1", "1,1,1", "1,1,1")) == (
        "trace: 4 lines are above 3, the most requests that a run may have; cut the file"
    )
    monkeypatch.setattr(text, "MOST_BYTES", 40)
    assert complaint(rows("1,1,1")) == "trace: 44 bytes are above 40; cut the file"


def test_too_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_CLASSES", 2)
    lines = [f"{i},1,1,{name}" for i, name in enumerate(["a", "b", "a", " b ", "c", "d"])]
    assert complaint(rows(*lines, header=f"{HEADER},class")) == (
        "trace line 6: class: 'c' is one class too many; expected at most 2 different classes"
    )
    assert trace.MOST_CLASSES == 1000


@pytest.mark.parametrize("size", [1, 30, 200])
def test_faults_are_found_across_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(text, "_BLOCK_BYTES", size)
    lines = [f"{i},5,5" for i in range(100)]
    for bad, message in (
        ("60.5,5,5", "arrival_s: '60.5' is earlier than the row above; expected rows in order of time"),
        ("62,5,x", f"output_tokens: 'x' is not a whole number; {TOKENS}"),
        ("62,0,5", f"prompt_tokens: '0' is below 1; {RANGE}"),
    ):
        assert complaint(rows(*lines[:62], bad, *lines[63:])) == f"trace line 64: {message}"


def test_reading_needs_little_more_than_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result and a block's worth of scratch, whatever the file's size, with and without a fault at the end."""
    monkeypatch.setattr(text, "_BLOCK_BYTES", 2**16)
    data = rows(*(f"{i}.5,1000,200" for i in range(100_000)))
    damaged = data + b"100000.5,1000,200.5\n"
    tracemalloc.start()
    try:
        assert len(read_trace(data)) == 100_000
        assert complaint(damaged).startswith("trace line 100002: output_tokens: '200.5' is not a whole number")
        assert tracemalloc.get_traced_memory()[1] < 16 * 100_000 + 20 * 2**16
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("filler", ["1", " ", '""', "1,", "é", ".0"])
def test_an_endless_line_is_not_tried_over_and_over(filler: str) -> None:
    """Two megabytes without a line end: a grammar that backtracks would take hours."""
    expected = complaint(rows("1,5,5", "2,5," + filler * 2_000_000))
    assert expected.startswith("trace line 3: ")
    assert expected.endswith(f"characters are no row; expected {HEADER}")


@pytest.mark.data
@pytest.mark.parametrize("kind", ["code", "conv"])
def test_damaged_copies_of_the_real_traces(data_dir: Path, kind: str) -> None:
    whole = (data_dir / "traces" / f"AzureLLMInferenceTrace_{kind}.csv").read_bytes()
    lines = whole.split(b"\n")

    def damaged(line: int, new: bytes) -> str:
        return complaint(b"\n".join([*lines[: line - 1], new, *lines[line:]]))

    earlier = lines[99].decode().split(",")[0]
    assert damaged(5000, lines[99]) == (
        f"trace line 5000: TIMESTAMP: '{earlier}' is earlier than the row above; expected rows in order of time"
    )
    assert damaged(8000, b"?") == f"trace line 8000: 1 column instead of 3; expected {AZURE}"
    assert damaged(2, b"yesterday,1,1") == (
        "trace line 2: TIMESTAMP: 'yesterday' is not a date and time; expected one like 2023-11-16 18:17:03.9799600"
    )
    assert complaint(b"\n".join(lines[:1])) == (
        "trace: there is a header, but no row; expected at least one request with an answer"
    )
    first_row = lines[1].rstrip().decode()
    assert complaint(b"\n".join(lines[1:])) == (
        f"trace line 1: {first_row!r} is the header of no known format; expected {FORMATS}"
    )
    cut = whole[: len(whole) // 2]
    cut = cut[: cut.rindex(b",")]
    last = cut.count(b"\n") + 1
    assert complaint(cut) == f"trace line {last}: 2 columns instead of 3; expected {AZURE}"
