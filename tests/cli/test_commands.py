"""``validate``, ``link``, ``presets``, and how every command answers to bad input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from engine import Scenario
from engine.__main__ import main
from engine.scenario import preset, presets
from tests.cli.conftest import SMALL, Command


class TestValidate:
    def test_prints_the_complete_scenario(self, run: Command, small: Path) -> None:
        found = run("validate", small).json
        assert found == Scenario.from_dict(SMALL).to_dict()
        assert Scenario.from_dict(found) == Scenario.from_dict(SMALL)
        assert run("validate", "-", stdin=b"{}").json == Scenario().to_dict()

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            (b"", "-: standard input is empty"),
            (b" \n", "-: standard input is empty"),
            (b"[1, 2]", "-: standard input begins with '[1,'"),
            (b"nothing", "-: standard input begins with 'nothing'"),
            (b'{"name": "\xff"}', "-: standard input is not UTF-8 text"),
            (b'{"run": {"seeds": 2,}}', "not JSON at line 1, column"),
            (b'{"run":\n {"seeds" 2}}', "not JSON at line 2, column"),
            (b'{"run": ', "not JSON at line 1, column"),
            (b'{"run": {"seeds": NaN}}', "NaN is not JSON"),
            (b'{"schema": 99}', "schema: 99 "),
            (b'{"fleet": {"replicas": 0}}', "fleet.replicas: 0 is below 1; give "),
            (b'{"fleet": {"replicas": "2"}}', 'fleet.replicas: "2" is not a whole number'),
            (b'{"flet": {}}', "flet: unknown key"),
            (b'{"hardware": {"accelerator": "H1000"}}', 'hardware.accelerator: "H1000" is no accelerator'),
            (b'{"model": {"name": "GPT-9"}}', 'model.name: "GPT-9" is no model'),
            (b'{"name": "\\ud800"}', "name: is not Unicode text"),
        ],
    )
    def test_says_what_is_wrong(self, run: Command, text: bytes, complaint: str) -> None:
        assert run("validate", "-", stdin=text).trouble.startswith(complaint)

    def test_three_lines_at_most(self, run: Command) -> None:
        text = json.dumps({"run": {"seeds": 0, "horizon_s": -1, "warmup_s": -2, "seed": -3}}).encode()
        lines = run("validate", "-", stdin=text).trouble.splitlines()
        assert [line.split(":")[0] for line in lines[:2]] == ["run.horizon_s", "run.warmup_s"]
        assert lines[2] == "and 2 more"
        text = json.dumps({"run": {"seeds": 0, "horizon_s": -1, "seed": -3}}).encode()
        assert len(run("validate", "-", stdin=text).trouble.splitlines()) == 3

    def test_files_that_cannot_be_read(self, run: Command, tmp_path: Path) -> None:
        missing = tmp_path / "missing.json"
        assert run("validate", missing).trouble.startswith(f"{missing} can't be read: no such file")
        assert run("validate", tmp_path).trouble.startswith(f"{tmp_path} can't be read: is a directory")
        damaged = tmp_path / "damaged.json"
        damaged.write_text('{\n  "name": "x"\n  "run": {}\n}')
        assert run("validate", damaged).trouble.startswith(f"{damaged}: not JSON at line 3, column 3")

    def test_letters_that_the_terminal_lacks(self, monkeypatch: pytest.MonkeyPatch, run: Command) -> None:
        name = {"name": "Übung ☃"}
        assert run("validate", "-", stdin=json.dumps(name).encode()).json["name"] == "Übung ☃"
        ascii_out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(name).encode())))
        monkeypatch.setattr(sys, "stdout", ascii_out)
        assert main(["validate", "-"]) == 0
        ascii_out.seek(0)
        assert json.loads(ascii_out.read())["name"] == "Übung ☃"


class TestLink:
    def test_there_and_back(self, run: Command, small: Path) -> None:
        answer = run("link", small)
        assert (answer.status, answer.err) == (0, "")
        assert answer.out.count("\n") == 1
        query = answer.out.strip()
        assert query.startswith("s=")
        token = query.removeprefix("s=")
        whole = Scenario.from_dict(SMALL).to_dict()
        for link in (query, token, f"https://example.org/app?{query}", f"http://localhost:8501/?{query}#top"):
            assert run("link", "--decode", link).json == whole

    def test_beside_a_preset(self, run: Command) -> None:
        changed = preset("monday").scenario.replace({"fleet.replicas": 9})
        query = changed.to_link("monday")
        assert query.startswith("p=monday&s=")
        assert run("link", "--decode", query).json == changed.to_dict()
        assert run("link", "--decode", "p=average-lies").json == preset("average-lies").scenario.to_dict()
        assert run("link", "--decode", "http://localhost:8501/").json == preset("monday").scenario.to_dict()

    def test_standard_input(self, run: Command, small: Path) -> None:
        assert run("link", "-", stdin=small.read_bytes()).out == run("link", small).out

    def test_links_that_cannot_be_read(self, run: Command, small: Path) -> None:
        query = run("link", small).out.strip()
        middle = len(query) // 2
        altered = query[:middle] + ("A" if query[middle] != "A" else "B") + query[middle + 1 :]
        assert run("link", "--decode", query[:-7]).trouble.startswith("link: cut short")
        assert run("link", "--decode", altered).trouble.startswith("link: damaged")
        assert run("link", "--decode", "p=tuesday").trouble.startswith('p: "tuesday" is not a preset')

    def test_a_scenario_too_long_for_a_link(self, run: Command) -> None:
        values = [(i * 7919) % 30011 + 1 for i in range(3000)]
        lengths = {"dist": "empirical", "values": values, "weights": [1 + value % 97 for value in values]}
        text = json.dumps({"traffic": {"classes": [{"prompt_tokens": lengths}]}}).encode()
        assert run("link", "-", stdin=text).trouble.startswith("link: too long")

    def test_a_scenario_that_names_nothing_known(self, run: Command) -> None:
        text = b'{"hardware": {"accelerator": "H1000"}}'
        assert run("link", "-", stdin=text).trouble.startswith("hardware.accelerator: ")

    def test_neither_or_both(self, run: Command, small: Path) -> None:
        assert run("link").trouble.startswith("link: takes either a FILE or --decode")
        assert run("link", small, "--decode", "x").trouble.startswith("link: takes either a FILE or --decode")


class TestPresets:
    def test_the_list(self, run: Command) -> None:
        found = run("presets").json
        assert [entry["name"] for entry in found] == [p.name for p in presets()]
        assert found[0]["name"] == "monday"
        for entry in found:
            assert list(entry) == ["name", "title", "story"]
            assert all(isinstance(value, str) and value for value in entry.values())

    @pytest.mark.parametrize("name", [p.name for p in presets()])
    def test_one(self, run: Command, name: str) -> None:
        found = run("presets", name).json
        assert found == preset(name).scenario.to_dict()
        assert run("validate", "-", stdin=json.dumps(found).encode()).json == found

    def test_an_unknown_one(self, run: Command) -> None:
        found = run("presets", "tuesday").trouble
        assert found.startswith('preset: "tuesday" is not a preset')
        assert "monday" in found


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "complaint", "see"),
        [
            ([], "the following arguments are required: COMMAND", "python -m engine --help"),
            (["simulte", "x"], "argument COMMAND: invalid choice: 'simulte'", "python -m engine --help"),
            (["simulate"], "the following arguments are required: file", "python -m engine simulate --help"),
            (["simulate", "x", "--set"], "argument --set: expected one argument", "python -m engine simulate --help"),
            (["validate", "x", "--force"], "unrecognized arguments: --force", "python -m engine --help"),
            (["validate", "x", "y"], "unrecognized arguments: y", "python -m engine --help"),
            (["link", "--decode"], "argument --decode: expected one argument", "python -m engine link --help"),
        ],
    )
    def test_unknown_commands_and_flags(self, run: Command, arguments: list[str], complaint: str, see: str) -> None:
        found = run(*arguments).trouble
        assert found.startswith(complaint)
        assert found.endswith(f"see {see}")
        assert len(found.splitlines()) == 1

    @pytest.mark.parametrize("command", [[], ["simulate"], ["validate"], ["link"], ["presets"]])
    def test_help(self, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
        with pytest.raises(SystemExit) as left:
            main([*command, "--help"])
        assert left.value.code == 0
        out, err = capsys.readouterr()
        assert out.startswith("usage: python -m engine")
        assert err == ""

    @pytest.mark.parametrize(("fault", "status"), [(RuntimeError("a\nb"), 1), (KeyError("x"), 1), (MemoryError(), 1)])
    def test_a_fault_of_our_own(
        self, run: Command, small: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, status: int
    ) -> None:
        def broken(*given: Any) -> None:
            raise fault

        monkeypatch.setattr("engine.__main__.simulate", broken)
        answer = run("simulate", small)
        assert (answer.status, answer.out) == (status, "")
        assert answer.err.startswith(f"fault: {type(fault).__name__}")
        assert len(answer.err.splitlines()) == 1

    def test_interrupted(self, run: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def stop(*given: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("engine.__main__.simulate", stop)
        answer = run("simulate", small)
        assert (answer.status, answer.out, answer.err) == (130, "", "")
