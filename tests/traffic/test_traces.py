"""Trace files: every accepted way of writing one, the real ones, and large ones."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.scenario import TraceSource
from engine.traffic import FORMATS, Trace, generate, read_trace
from engine.traffic.traces import text as text_of_trace
from engine.traffic.traces.leading import SeenIds
from tests.traffic.build import run, trace_of, traffic

REQUESTS = b"arrival_s,prompt_tokens,output_tokens\n0.5,10,2\n1.25,20,3\n"
AZURE = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
    b"2023-11-16 18:17:03.9799600,4808,10\n"
    b"2023-11-16 18:17:04.0319600,3180,8\n"
    b"2023-11-16 18:17:05.9799601,110,27\n"
)
BURSTGPT = (
    b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    b"5,ChatGPT,472,18,490,Conversation log\n"
    b"45,GPT-4,0,0,0,API log\n"
    b"118,GPT-4,417,276,693,Conversation log\n"
    b"118.5,ChatGPT,1087,0,1087,API log\n"
    b"121,ChatGPT,1360,647,2007,Conversation log\n"
)
MOONCAKE = (
    b'{"timestamp": 27000, "input_length": 1300, "output_length": 5, "hash_ids": [46, 47, 48]}\n'
    b'{"timestamp": 30500, "input_length": 1024, "output_length": 3, "hash_ids": [46, 47]}\n'
    b'{"timestamp": 30500, "input_length": 2000, "output_length": 9, "hash_ids": [46, 47, 7, 48]}\n'
)
SAMPLES = {"requests": REQUESTS, "azure": AZURE, "burstgpt": BURSTGPT, "mooncake": MOONCAKE}
"""A few good lines of each format; a new format adds its own here."""


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_known_documented_recognised_and_read(name: str) -> None:
    assert name in get_args(TraceSource.model_fields["format"].annotation)
    assert FORMATS[name].title
    assert FORMATS[name].first_line
    assert [other for other in FORMATS if FORMATS[other].recognises(SAMPLES[name].split(b"\n")[0].decode())] == [name]
    trace = read_trace(SAMPLES[name])
    assert trace.format == name
    assert len(trace) >= 2
    assert trace.sha256 == sha256(SAMPLES[name]).hexdigest()
    assert np.array_equal(read_trace(SAMPLES[name], name).arrival_s, trace.arrival_s)


AS_TEXT: dict[str, Callable[[bytes], bytes]] = {
    "Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "BOM": lambda data: b"\xef\xbb\xbf" + data,
    "Windows and BOM": lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    "no last line end": lambda data: data.removesuffix(b"\n"),
    "Windows, no last line end": lambda data: data.removesuffix(b"\n").replace(b"\n", b"\r\n"),
    "empty lines at the end": lambda data: data + b"\n\n",
    "empty lines inside": lambda data: data.replace(b"\n", b"\n\n", 2),
}
AS_TABLE: dict[str, Callable[[bytes], bytes]] = {
    "spaces after commas": lambda data: data.replace(b",", b", "),
    "spaces at line ends": lambda data: data.replace(b"\n", b" \n"),
    "quoted": lambda data: b'"' + data.removesuffix(b"\n").replace(b",", b'","').replace(b"\n", b'"\n"') + b'"\n',
    "whole numbers as floats": lambda data: data.replace(b"3\n", b"3.0\n").replace(b"10\n", b"10.\n"),
}
AS_JSON: dict[str, Callable[[bytes], bytes]] = {
    "without spaces": lambda data: data.replace(b" ", b""),
    "with spaces": lambda data: data.replace(b":", b" :\t").replace(b"\n", b"  \r\n").replace(b"{", b" { "),
    "keys in another order": lambda data: b"".join(
        json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n" for line in data.splitlines()
    ),
    "keys more": lambda data: data.replace(b"{", b'{"chat": {"turn": [1, null]}, '),
    "whole numbers as floats": lambda data: data.replace(b"00,", b"00.0,").replace(b"5,", b"0.5e1,"),
}
WRITTEN_OTHERWISE = {
    f"{name}, {title}": (name, way)
    for name in FORMATS
    for title, way in {**AS_TEXT, **(AS_JSON if name == "mooncake" else AS_TABLE)}.items()
}


@pytest.mark.parametrize(("name", "way"), WRITTEN_OTHERWISE.values(), ids=WRITTEN_OTHERWISE)
def test_the_same_trace_written_otherwise(name: str, way: Callable[[bytes], bytes]) -> None:
    other = read_trace(way(SAMPLES[name]))
    assert other.format == name
    plain = read_trace(SAMPLES[name])
    for column in ("arrival_s", "prompt_tokens", "output_tokens", "cached_prefix_tokens"):
        assert np.array_equal(getattr(plain, column), getattr(other, column))
    assert plain.notes == other.notes


def test_columns_come_in_any_order() -> None:
    columns = "class,prompt_tokens,cached_prefix_tokens,arrival_s,output_tokens,priority"
    trace = trace_of("b c,7,3,1.5,9,4", '"x, ""y""",8,2,2.5,1,-4', columns=columns)
    assert trace.class_names == ("b c", 'x, "y"')
    assert trace.class_id is not None
    assert trace.class_id.tolist() == [0, 1]
    assert trace.arrival_s.tolist() == [1.5, 2.5]
    assert trace.cached_prefix_tokens is not None
    assert trace.cached_prefix_tokens.tolist() == [3, 2]
    assert trace.priority is not None
    assert trace.priority.tolist() == [4, -4]


def test_absent_columns_are_absent() -> None:
    trace = read_trace(REQUESTS)
    assert trace.cached_prefix_tokens is trace.priority is trace.class_id is None
    assert trace.class_names == ()
    assert trace.notes == ()


def test_times_of_requests_are_as_given_and_exact() -> None:
    times = np.cumsum(np.random.default_rng(5).exponential(size=2000))
    trace = trace_of(*(f"{t!r},1,1" for t in times.tolist()))
    assert np.array_equal(trace.arrival_s, times)
    assert trace_of("1e-3,1,1", ".5,1,1", "+1.,1,1", "2.5E1,1,1").arrival_s.tolist() == [0.001, 0.5, 1.0, 25.0]


def test_class_names_are_taken_as_text() -> None:
    names = ["NA", "null", "1", "nan", " padded ", "Größe", "true"]
    trace = trace_of(*(f"0,1,1,{name}" for name in names), columns="arrival_s,prompt_tokens,output_tokens,class")
    assert trace.class_names == ("NA", "null", "1", "nan", "padded", "Größe", "true")


def test_an_azure_trace_starts_with_its_first_row() -> None:
    assert read_trace(AZURE).arrival_s.tolist() == [0.0, 0.052, 2.0000001]
    failed_first = AZURE.replace(b"4808,10", b"4808,0")
    assert read_trace(failed_first).arrival_s.tolist() == [0.052, 2.0000001]


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [
        ("2023-11-16 18:17:03", "2023-11-16 18:17:04.5", 1.5),
        ("2023-11-16T18:17:03.123456789Z", "2023-11-16T18:17:03.123456790Z", 1e-9),
        ("2024-05-10 00:00:00.009930+00:00", "2024-05-10 00:00:01+00:00", 0.99007),
        ("2023-11-16T20:00:00+0200", "2023-11-16T18:00:01Z", 1.0),
        ("2023-12-31 23:59:59.9999999", "2024-01-01 00:00:00.0000000", 1e-7),
        ("2024-02-28 00:00:00", "2024-03-01 00:00:00", 2 * 86_400.0),
    ],
)
def test_moments_of_azure_traces(first: str, second: str, seconds: float) -> None:
    trace = trace_of(f"{first},1,1", f"{second},1,1", columns="TIMESTAMP,ContextTokens,GeneratedTokens")
    assert trace.arrival_s.tolist() == [0.0, seconds]


def test_a_burstgpt_trace_starts_with_its_first_row_and_leaves_failures_out() -> None:
    trace = read_trace(BURSTGPT)
    assert trace.arrival_s.tolist() == [0, 113, 116]
    assert trace.prompt_tokens.tolist() == [472, 417, 1360]
    assert trace.output_tokens.tolist() == [18, 276, 647]
    assert trace.cached_prefix_tokens is trace.class_id is trace.priority is None
    assert trace.rows_left_out == 2
    assert trace.notes == ("Rows of the trace with 0 output tokens, left out: 2 of 5.",)
    failed_first = BURSTGPT.replace(b"472,18,", b"472,0,")
    assert read_trace(failed_first).arrival_s.tolist() == [113, 116]


def test_a_burstgpt_trace_may_have_sessions_which_a_call_by_api_has_not() -> None:
    trace = trace_of(
        "19440110.0,1722ac82-0a46,43,GPT-4,906,446,1352,Conversation log",
        "19440161.5,,,ChatGPT,36,29,65,API log",
        columns="Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type",
    )
    assert trace.format == "burstgpt"
    assert trace.arrival_s.tolist() == [0, 51.5]
    assert trace.prompt_tokens.tolist() == [906, 36]


def mooncake(*rows: tuple[float, int, int, list[int]]) -> Trace:
    keys = ("timestamp", "input_length", "output_length", "hash_ids")
    return read_trace("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows).encode())


def test_a_mooncake_trace_by_hand() -> None:
    """Leading blocks that any row before has had, wherever in it; the last of them counts in part."""
    trace = read_trace(MOONCAKE)
    assert trace.arrival_s.tolist() == [0, 3.5, 3.5]
    assert trace.prompt_tokens.tolist() == [1300, 1024, 2000]
    assert trace.output_tokens.tolist() == [5, 3, 9]
    assert trace.cached_prefix_tokens is not None
    assert trace.cached_prefix_tokens.tolist() == [0, 1023, 1024]
    assert trace.notes == ()


def test_prefix_hits_end_at_the_first_new_block() -> None:
    trace = mooncake(
        (0, 1500, 1, [1, 2, 3]),
        (1, 2048, 1, [9, 1, 2, 3]),
        (2, 2048, 1, [3, 1, 9, 4]),
        (3, 512, 1, [4]),
        (4, 513, 1, [4, 4]),
        (5, 1024, 1, [5, 5]),
        (6, 1024, 1, [5, 6]),
    )
    assert trace.cached_prefix_tokens is not None
    assert trace.cached_prefix_tokens.tolist() == [0, 0, 1536, 511, 512, 0, 512]


def test_a_failed_row_fills_the_cache_too() -> None:
    trace = mooncake((0, 1024, 0, [1, 2]), (1, 1024, 3, [1, 2]))
    assert trace.cached_prefix_tokens is not None
    assert trace.cached_prefix_tokens.tolist() == [1023]
    assert trace.arrival_s.tolist() == [0.001]
    assert trace.rows_left_out == 1


def test_block_ids_may_be_hashes_of_64_bits() -> None:
    top = 2**64 - 1
    trace = mooncake((0, 1024, 1, [top, 2**63]), (1, 1536, 1, [top, 2**63, 2**53 + 1]), (2, 512, 1, [2**53]))
    assert trace.cached_prefix_tokens is not None
    assert trace.cached_prefix_tokens.tolist() == [0, 1024, 0]


def test_ids_that_are_not_one_for_each_block_are_said() -> None:
    """Such a file counts in other blocks, or has lost some: its hits can't be trusted."""
    trace = mooncake((0, 1024, 1, [1, 2]), (1, 1024, 0, [1]), (2, 1024, 1, []), (3, 1025, 1, [1, 2, 3, 4]))
    assert trace.cached_prefix_tokens is not None
    assert trace.cached_prefix_tokens.tolist() == [0, 0, 1024]
    assert trace.notes == (
        "Rows of the trace with 0 output tokens, left out: 1 of 4.",
        "In 3 of 4 rows of the trace hash_ids are not one id for each 512 tokens of the prompt: cached prefixes may be "
        "wrong.",
    )


@given(st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=30), st.integers(1, 8))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_prefix_hits_are_those_of_a_plain_loop(rows: list[list[int]], size: int) -> None:
    """Whatever the parts in which the rows come."""
    expected, known = [], set[int]()
    for ids in rows:
        expected.append(next((i for i, block in enumerate(ids) if block not in known), len(ids)))
        known.update(ids)
    seen, found = SeenIds(), []
    for at in range(0, len(rows), size):
        part = rows[at : at + size]
        ids = np.array([block for row in part for block in row], dtype=np.uint64)
        found += seen.leading(ids, np.array([len(row) for row in part], dtype=np.intp)).tolist()
    assert found == expected


def test_rows_without_an_answer_are_left_out_and_counted() -> None:
    trace = trace_of("0,5,0", "1,5,5", "2,0,0", "3,6,6")
    assert trace.arrival_s.tolist() == [1, 3]
    assert trace.rows_left_out == 2
    assert trace.notes == ("Rows of the trace with 0 output tokens, left out: 2 of 4.",)


def test_a_trace_cannot_be_changed_by_accident() -> None:
    with pytest.raises(ValueError, match="read-only"):
        read_trace(REQUESTS).arrival_s[0] = 3.0


def test_a_file_is_read_like_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_bytes(AZURE)
    assert read_trace(path).sha256 == read_trace(AZURE).sha256


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{i / 8},{i % 7 + 1},{i % 5},c{i % 11}" for i in range(500)]
    columns = "arrival_s,prompt_tokens,output_tokens,class"
    whole = trace_of(*rows, columns=columns)
    lines = [(i, 512 * (i % 9 + 1), i % 5, [i * i % 50 + k for k in range(i % 9 + 1)]) for i in range(150)]
    talks = mooncake(*lines)
    for size in (1, 7, 100, 4000):
        monkeypatch.setattr(text_of_trace, "_BLOCK_BYTES", size)
        assert np.array_equal(mooncake(*lines).cached_prefix_tokens, talks.cached_prefix_tokens)
        blocks = trace_of(*rows, columns=columns)
        assert np.array_equal(blocks.arrival_s, whole.arrival_s)
        assert np.array_equal(blocks.class_id, whole.class_id)
        assert blocks.class_names == whole.class_names
        assert blocks.rows_left_out == whole.rows_left_out == 100


@pytest.mark.data
@pytest.mark.parametrize(
    ("format", "name", "file"),
    [
        ("azure", "azure2023_code", "AzureLLMInferenceTrace_code.csv"),
        ("azure", "azure2023_conv", "AzureLLMInferenceTrace_conv.csv"),
        ("mooncake", "mooncake_fast25_conversation", "mooncake_conversation_trace.jsonl"),
    ],
)
def test_the_real_traces_have_their_published_figures(data_dir: Path, format: str, name: str, file: str) -> None:
    with (data_dir / "traces" / "stats.csv").open() as table:
        row = next(r for r in csv.DictReader(table) if r["trace"] == name)
    figures = {key: float(value) for key, value in row.items() if key not in ("trace", "note")}
    path = data_dir / "traces" / file
    trace = read_trace(path)
    assert trace.format == format
    assert trace.sha256 == sha256(path.read_bytes()).hexdigest()
    assert trace.rows_left_out == 0
    t = trace.arrival_s
    minutes = int(t[-1] // 60)
    per_minute = np.bincount((t // 60).astype(int))[:minutes]
    found = {
        "requests": len(trace),
        "duration_s": t[-1],
        "mean_rate_rps": len(trace) / t[-1],
        "peak_minute_over_mean_minute": per_minute.max() / per_minute.mean(),
        "full_minutes": minutes,
        "IAT_CV": np.diff(t).std(ddof=1) / np.diff(t).mean(),
        "in_mean": trace.prompt_tokens.mean(),
        "in_std": trace.prompt_tokens.std(),
        "in_max": trace.prompt_tokens.max(),
        "out_mean": trace.output_tokens.mean(),
        "out_std": trace.output_tokens.std(),
        "out_max": trace.output_tokens.max(),
        "corr_pearson": np.corrcoef(trace.prompt_tokens, trace.output_tokens)[0, 1],
    }
    # The table has six digits.
    assert found == {key: pytest.approx(figures[key], rel=1e-5) for key in found}


@pytest.mark.data
def test_mooncakes_conversations_hit_the_cache_as_published(data_dir: Path) -> None:
    """37.4 % of input tokens, with an unlimited cache of whole leading blocks."""
    trace = read_trace(data_dir / "traces" / "mooncake_conversation_trace.jsonl")
    assert trace.cached_prefix_tokens is not None
    share = trace.cached_prefix_tokens.sum() / trace.prompt_tokens.sum()
    assert round(100 * share, 1) == 37.4
    assert (trace.cached_prefix_tokens < trace.prompt_tokens).all()
    assert trace.notes == ()
    r = generate(traffic(process="trace"), run(None), 1, trace)
    assert np.array_equal(r.cached_prefix_tokens, trace.cached_prefix_tokens)
    assert r.notes == ()
