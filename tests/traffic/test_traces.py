"""Trace files: every accepted way of writing one, the real ones, and large ones."""

from __future__ import annotations

import csv
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from engine.scenario import TraceSource
from engine.traffic import FORMATS, read_trace
from engine.traffic.traces import text as text_of_trace
from tests.traffic.build import trace_of

REQUESTS = b"arrival_s,prompt_tokens,output_tokens\n0.5,10,2\n1.25,20,3\n"
AZURE = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
    b"2023-11-16 18:17:03.9799600,4808,10\n"
    b"2023-11-16 18:17:04.0319600,3180,8\n"
    b"2023-11-16 18:17:05.9799601,110,27\n"
)
SAMPLES = {"requests": REQUESTS, "azure": AZURE}
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


WRITTEN_OTHERWISE: dict[str, Callable[[bytes], bytes]] = {
    "Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "BOM": lambda data: b"\xef\xbb\xbf" + data,
    "Windows and BOM": lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    "no last line end": lambda data: data.removesuffix(b"\n"),
    "Windows, no last line end": lambda data: data.removesuffix(b"\n").replace(b"\n", b"\r\n"),
    "empty lines at the end": lambda data: data + b"\n\n",
    "empty lines inside": lambda data: data.replace(b"\n", b"\n\n", 2),
    "spaces after commas": lambda data: data.replace(b",", b", "),
    "spaces at line ends": lambda data: data.replace(b"\n", b" \n"),
    "quoted": lambda data: b'"' + data.removesuffix(b"\n").replace(b",", b'","').replace(b"\n", b'"\n"') + b'"\n',
    "whole numbers as floats": lambda data: data.replace(b"3\n", b"3.0\n").replace(b"10\n", b"10.\n"),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("way", WRITTEN_OTHERWISE)
def test_the_same_trace_written_otherwise(name: str, way: str) -> None:
    plain, other = read_trace(SAMPLES[name]), read_trace(WRITTEN_OTHERWISE[way](SAMPLES[name]))
    for column in ("arrival_s", "prompt_tokens", "output_tokens"):
        assert np.array_equal(getattr(plain, column), getattr(other, column))


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
    for size in (1, 7, 100, 4000):
        monkeypatch.setattr(text_of_trace, "_BLOCK_BYTES", size)
        blocks = trace_of(*rows, columns=columns)
        assert np.array_equal(blocks.arrival_s, whole.arrival_s)
        assert np.array_equal(blocks.class_id, whole.class_id)
        assert blocks.class_names == whole.class_names
        assert blocks.rows_left_out == whole.rows_left_out == 100


@pytest.mark.data
@pytest.mark.parametrize("kind", ["code", "conv"])
def test_the_real_traces_have_their_published_figures(data_dir: Path, kind: str) -> None:
    with (data_dir / "traces" / "stats.csv").open() as file:
        row = next(r for r in csv.DictReader(file) if r["trace"] == f"azure2023_{kind}")
    figures = {key: float(value) for key, value in row.items() if key not in ("trace", "note")}
    path = data_dir / "traces" / f"AzureLLMInferenceTrace_{kind}.csv"
    trace = read_trace(path)
    assert trace.format == "azure"
    assert trace.sha256 == sha256(path.read_bytes()).hexdigest()
    assert trace.rows_left_out == 0
    t = trace.arrival_s
    minutes = int(t[-1] // 60)
    per_minute = np.histogram(t, bins=minutes, range=(0, 60 * minutes))[0]
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
