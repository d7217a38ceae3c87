"""``simulate``: the summary, changed settings, tables, traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from engine import Scenario, simulate
from tests.cli.conftest import SMALL, Command

TRACE = "arrival_s,prompt_tokens,output_tokens,class\n0.0,10,3,a\n1.5,20,4,b\n7.0,10,1,a\n"
OPEN = {"traffic": {"process": "trace", "trace": {"source": "trace.csv"}}, "run": {"horizon_s": None, "warmup_s": 0}}


def timeless(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary without the time that it took."""
    summary["run"].pop("wall_s")
    return summary


@pytest.fixture
def traced(tmp_path: Path) -> Path:
    """A scenario that replays the trace beside it, until every request has ended."""
    (tmp_path / "trace.csv").write_text(TRACE)
    path = tmp_path / "traced.json"
    path.write_text(json.dumps(OPEN | {"performance": SMALL["performance"]}))
    return path


class TestSummary:
    def test_is_that_of_the_python_api(self, run: Command, small: Path) -> None:
        found = run("simulate", small).json
        assert timeless(found) == timeless(simulate(Scenario.from_dict(SMALL)).summary())  # type: ignore[arg-type]
        assert found["requests"]["completed"] > 50

    def test_standard_input(self, run: Command, small: Path) -> None:
        from_file = timeless(run("simulate", small).json)
        for text in (small.read_bytes(), b"\xef\xbb\xbf \n" + small.read_bytes()):
            assert timeless(run("simulate", "-", stdin=text).json) == from_file


class TestSet:
    @pytest.mark.parametrize(
        ("text", "path", "value"),
        [
            ("traffic.rate_rps=8", ("traffic", "rate_rps"), 8.0),
            ("name=Monday at nine", ("name",), "Monday at nine"),
            ('name="8"', ("name",), "8"),
            ("traffic.process=gamma", ("traffic", "process"), "gamma"),
            ("admission.max_outstanding=null", ("admission", "max_outstanding"), None),
            ("slo.0.target=0.99", ("slo", 0, "target"), 0.99),
            ("slo.1.name=second", ("slo", 1, "name"), "second"),
            ("slo=[]", ("slo",), []),
            ('performance={"kind": "linear", "overhead_s": 1}', ("performance", "overhead_s"), 1.0),
            ("traffic.classes.0.output_tokens.value=7", ("traffic", "classes", 0, "output_tokens", "value"), 7),
        ],
    )
    def test_values(
        self, run: Command, small: Path, monkeypatch: pytest.MonkeyPatch, text: str, path: tuple[Any, ...], value: Any
    ) -> None:
        seen = self.scenario_of(run, small, monkeypatch, "--set", text)
        for key in path:
            seen = seen[key]
        assert seen == value

    @staticmethod
    def scenario_of(run: Command, small: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
        """The document that would be simulated."""
        seen: list[Any] = []

        def no_run(s: Scenario, trace: object) -> None:
            seen.append(s.to_dict())
            raise OSError("enough")

        monkeypatch.setattr("engine.__main__.simulate", no_run)
        assert run("simulate", small, *arguments).trouble == "enough"
        return seen[0]

    def test_several_and_the_last_one_wins(self, run: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        changes = ["--set", "fleet.replicas=3", "--set=run.seed=9", "--set", "fleet.replicas=4", "--seeds", "5"]
        seen = self.scenario_of(run, small, monkeypatch, *changes)
        assert (seen["fleet"]["replicas"], seen["run"]["seed"], seen["run"]["seeds"]) == (4, 9, 5)

    def test_they_change_what_happens(self, run: Command, small: Path) -> None:
        found = run("simulate", small, "--set", "traffic.rate_rps=4", "--seeds", 3).json
        assert found["run"]["seeds"] == 3
        assert found["requests"]["offered"] == pytest.approx(4 * 25 * 3, rel=0.15)

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["--set", "traffic.rate=8"], "traffic.rate: unknown key"),
            (["--set", "traffic.rate_rps"], "traffic.rate_rps has no ="),
            (["--set", "traffic.rate_rps=-1"], "traffic.rate_rps: -1 is "),
            (["--set", "traffic.rate_rps=fast"], 'traffic.rate_rps: "fast" is not a number'),
            (["--set", "slo.3.target=1"], "slo.3.target: 3 is not a number in the list"),
            (["--set", "slo.first.target=1"], "slo.first.target: "),
            (["--set", "fleet.replicas=0"], "fleet.replicas: 0 is below 1"),
            (["--set", "batching.max_num_batched_tokens=NaN"], "batching.max_num_batched_tokens: "),
            (["--seeds", "0"], "run.seeds: 0 is below 1"),
            (["--seeds", "many"], "argument --seeds: invalid int value: 'many'"),
            (["--set", "hardware.accelerator=H1000"], 'hardware.accelerator: "H1000" is no accelerator'),
            (["--set", "model.name=GPT-9"], 'model.name: "GPT-9" is no model'),
        ],
    )
    def test_what_cannot_be_set(self, run: Command, small: Path, arguments: list[str], complaint: str) -> None:
        assert run("simulate", small, *arguments).trouble.startswith(complaint)

    def test_a_model_that_does_not_fit(self, run: Command, small: Path) -> None:
        changes = ["--set", 'performance={"kind": "analytic"}', "--set", "parallelism.tp=1"]
        found = run("simulate", small, *changes, "--set", "model.name=Llama-3.1-405B").trouble
        assert found.startswith('model.name: "Llama-3.1-405B"')
        assert "parallelism.tp" in found


class TestTables:
    def test_are_those_of_the_python_api(self, run: Command, small: Path, tmp_path: Path) -> None:
        requests, timeline = tmp_path / "requests.csv", tmp_path / "timeline.csv"
        assert run("simulate", small, "--requests", requests, "--timeline", timeline).json["run"]["seeds"] == 2
        result = simulate(Scenario.from_dict(SMALL))
        for path, table in ((requests, result.requests), (timeline, result.timeline)):
            pd.testing.assert_frame_equal(pd.read_csv(path), table, check_dtype=False, check_exact=True)
            first = path.read_text().splitlines()[0]
            assert first == ",".join(table.columns), "no index column"

    @pytest.mark.parametrize("flag", ["--requests", "--timeline"])
    def test_what_cannot_be_written_is_said_before_the_run(
        self, run: Command, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str
    ) -> None:
        monkeypatch.setattr("engine.__main__.simulate", lambda *given: pytest.fail("simulated first"))
        nowhere = tmp_path / "nowhere" / "out.csv"
        assert run("simulate", small, flag, nowhere).trouble.startswith(f"{flag}: {nowhere} can't be written")
        for name in (tmp_path, "-", ""):
            assert run("simulate", small, flag, name).trouble.startswith(f"{flag}: '{name}' is not a file name")

    def test_one_file_for_both(self, run: Command, small: Path, tmp_path: Path) -> None:
        path = tmp_path / "out.csv"
        assert "--requests too" in run("simulate", small, "--requests", path, "--timeline", path).trouble


class TestTraces:
    def test_path_is_relative_to_the_scenario(
        self, run: Command, traced: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
        found = run("simulate", traced, "--seeds", 1).json
        assert found["requests"]["completed"] == 3
        assert found["run"]["horizon_s"] == pytest.approx(7.01)

    def test_and_for_standard_input_to_here(self, run: Command, traced: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(traced.parent)
        assert run("simulate", "-", "--seeds", 1, stdin=traced.read_bytes()).json["requests"]["completed"] == 3

    def test_absolute_path(self, run: Command, small: Path, traced: Path, tmp_path: Path) -> None:
        found = run("simulate", traced, "--set", f"traffic.trace.source={tmp_path / 'trace.csv'}").json
        assert found["requests"]["completed"] == 3 * 16

    def test_a_missing_file(self, run: Command, traced: Path) -> None:
        found = run("simulate", traced, "--set", "traffic.trace.source=lost.csv").trouble
        assert "lost.csv' can't be read" in found

    def test_an_uploaded_trace(self, run: Command, traced: Path) -> None:
        source = "sha256:" + "0" * 64
        found = run("simulate", traced, "--set", f"traffic.trace.source={source}").trouble
        assert found.startswith("traffic.trace.source: sha256:")
        assert "path of the file" in found

    def test_no_trace(self, run: Command, traced: Path) -> None:
        assert run("simulate", traced, "--set", "traffic.trace.source=null").trouble.startswith("traffic.trace.source:")

    @pytest.mark.parametrize(
        ("bad", "line"),
        [("1.5,20,four,b", 3), ("-1,20,4,b", 3), ("1.5,20", 3), ("9.0,20,4,b\n8.0,20,4,b", 4)],
    )
    def test_a_damaged_file_names_the_line(self, run: Command, traced: Path, bad: str, line: int) -> None:
        (traced.parent / "trace.csv").write_text(TRACE.replace("1.5,20,4,b", bad))
        found = run("simulate", traced).trouble
        assert found.startswith(f"trace line {line}: ")
        assert len(found.splitlines()) == 1

    def test_unknown_format(self, run: Command, traced: Path) -> None:
        (traced.parent / "trace.csv").write_text("when,what\n1,2\n")
        assert run("simulate", traced).trouble.startswith("trace line 1: 'when,what' is the header of no known format")
