"""Traces of 100 MB: one clear answer each, in less than a gigabyte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.traffic.build import AZURE, BURSTGPT, FULL, HEADER, talk

MEASURE = """
import resource, sys
from pathlib import Path
from engine.traffic import TraceError, read_trace
try:
    print(len(read_trace(Path(sys.argv[1]))))
except TraceError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def large(header: str, row: str, path: Path) -> int:
    """Write 100 MB of a row, "%d" in it counting up from 100,000,000, and return how many lines there are."""
    lines, batch, first = 0, 20_000, 100_000_000
    with path.open("w") as file:
        if header:
            lines += 1
            file.write(f"{header}\n")
        while file.tell() < 100_000_000:
            numbers = range(first + lines, first + lines + batch)
            file.write("".join(f"{row.replace('%d', str(n))}\n" for n in numbers))
            lines += batch
    return lines


FRESH = ", ".join(f"%d{k}" for k in range(10))
"""Ids that no other row has, so that all must be remembered."""


@pytest.mark.accept
@pytest.mark.parametrize(
    ("header", "row", "earlier", "cut"),
    [
        (HEADER, "7,1,1", "6.5,1,1", "2 columns instead of 3"),
        (FULL, "7,1000,200,0,0,chat", "6,1000,200,0,0,chat", "2 columns instead of 6"),
        (AZURE, "2023-11-16 18:17:03.97996,4808,10", "2023-11-16 18:17:03.9799,4808,10", "2 columns instead of 3"),
        (BURSTGPT, "%d,ChatGPT,472,18,490,Conversation log", "5,GPT-4,1,1,2,API log", "2 columns instead of 6"),
        ("", talk("%d", 5000, 5, f"[0, {FRESH}]"), talk(5), "'1,1' is not JSON"),
        ("", talk(7, 512, 5, "[1]"), talk(5), "'1,1' is not JSON"),
    ],
    ids=["requests", "all columns", "azure", "burstgpt", "mooncake", "short lines of mooncake"],
)
def test_a_hundred_megabytes_stay_below_one_gigabyte(
    tmp_path: Path, header: str, row: str, earlier: str, cut: str
) -> None:
    """A whole file, a cut one, one that ends out of order, and one without line ends: one clear answer each."""
    path = tmp_path / "large"
    lines = large(header, row, path)

    def said() -> str:
        done = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
        answer, peak_bytes = done.stdout.splitlines()
        assert int(peak_bytes) < 1e9
        return answer

    assert said() == f"{lines - bool(header)}"
    size = path.stat().st_size
    for more, answer in (("1,1", f"{cut}; expected "), (earlier, "")):
        with path.open("a") as file:
            file.truncate(size)
            file.write(more)
        assert said().startswith(f"trace line {lines + 1}: {answer}")
    assert said().endswith(" is earlier than the row above; expected rows in order of time")
    path.write_bytes(path.read_bytes().replace(b"\n", b" "))
    assert said().startswith("trace line 1: ")
