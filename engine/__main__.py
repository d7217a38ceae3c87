"""The command line: ``python -m engine COMMAND``.

Results go to standard output, trouble in one clear line to standard error. Exit status: 0; 2 for input that can't be
used; 1 for a fault of the program itself; 130 when interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from engine.machine import cross_validation, evaluate, readable, refit, resolve_accelerator, resolve_model
from engine.outcome import Result
from engine.placement import place
from engine.scenario import Scenario, ScenarioError, parse_set, preset, presets
from engine.serving import answer_vectors
from engine.study import simulate
from engine.traffic import Trace, TraceError, read_trace

MOST_LINES = 3
"""Lines of trouble shown at most."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage text."""

    def error(self, message: str) -> NoReturn:
        raise ScenarioError.of("", "", message, f"see python -m engine {self._command()}--help")

    def _command(self) -> str:
        return "".join(f"{word} " for word in self.prog.split()[3:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    try:
        given = _parser().parse_args(arguments)
        given.run(given)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader had enough; nothing more may be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return 130
    except (ScenarioError, TraceError, OSError) as error:
        _complain(error)
        return 2
    except Exception as error:  # a fault is reported in one line too; the traceback helps nobody who runs this
        print(f"fault: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


def _complain(error: Exception) -> None:
    lines = str(error).splitlines() or [type(error).__name__]
    if isinstance(error, OSError) and error.filename is not None:
        lines = [f"{error.filename}: {error.strerror or error}"]
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"and {len(lines) - MOST_LINES + 1} more"]
    print("\n".join(lines), file=sys.stderr)


def _parser() -> _Parser:
    parser = _Parser(prog="python -m engine", description="What-if experiments for serving a model to many people.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser("simulate", help="run a scenario; prints its summary")
    run.add_argument("file", help="scenario as JSON; - reads standard input")
    run.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="change a setting (repeatable)")
    run.add_argument("--seeds", type=int, metavar="N", help="number of seeds, instead of the scenario's")
    run.add_argument("--requests", metavar="CSV", help="write one row a request")
    run.add_argument("--timeline", metavar="CSV", help="write one row a seed and time bin")
    run.set_defaults(run=_simulate)

    check = commands.add_parser("validate", help="print the complete scenario, defaults filled in")
    check.add_argument("file", help="scenario as JSON; - reads standard input")
    check.set_defaults(run=_validate)

    link = commands.add_parser("link", help="print the query string that carries a scenario, or read one")
    link.add_argument("file", nargs="?", help="scenario as JSON; - reads standard input")
    link.add_argument("--decode", metavar="URL_OR_TOKEN", help="print the complete scenario of a link")
    link.set_defaults(run=_link)

    stories = commands.add_parser("presets", help="list the presets, or print one's scenario")
    stories.add_argument("name", nargs="?")
    stories.set_defaults(run=_presets)

    scale = commands.add_parser("autoscale", help="answer test cases of autoscalers by the rules of the simulation")
    scale.add_argument("vectors", help="CSV with columns algorithm, inputs_json; - reads standard input")
    scale.set_defaults(run=_autoscale)

    pack = commands.add_parser("place", help="place models onto chips at the least cost, with the proof")
    pack.add_argument("problem", help="JSON with items and chips; - reads standard input")
    pack.set_defaults(run=_place)

    fit = commands.add_parser("calibrate", help="measure or fit the constants of the step time")
    which = fit.add_mutually_exclusive_group(required=True)
    which.add_argument("--evaluate", metavar="CSV", help="print the errors of the constants on published measurements")
    which.add_argument("--fit", metavar="CSV", help="fit the constants to published measurements and write them")
    which.add_argument("--cross-validate", metavar="CSV", help="print the errors on measurements left out of the fit")
    fit.add_argument("--out", metavar="JSON", help="where --fit writes, instead of the constants that ship")
    fit.set_defaults(run=_calibrate)
    return parser


def _simulate(given: argparse.Namespace) -> None:
    changes = dict(parse_set(text) for text in given.set)
    if given.seeds is not None:
        changes["run.seeds"] = given.seeds
    s = _scenario(given.file)
    if changes:
        s = s.replace(changes)
    _check_tables(given)
    result = simulate(s, _trace(s, given.file))
    _write_tables(result, given)
    _print(result.summary())


def _check_tables(given: argparse.Namespace) -> None:
    """Refuse names of tables that can't be written now, not after a long run."""
    for flag, name in (("--requests", given.requests), ("--timeline", given.timeline)):
        _check_file(flag, name)
    if given.requests is not None and given.requests == given.timeline:
        raise ScenarioError.of("--timeline", given.timeline, "is the file of --requests too", "give two files")


def _check_file(flag: str, name: str | None) -> None:
    """Refuse a name that can't be written to."""
    if name is None:
        return
    folder = Path(name).parent
    if name in ("", "-") or Path(name).is_dir():
        raise ScenarioError.of(flag, repr(name), "is not a file name", "give the file to write")
    if not folder.is_dir():
        raise ScenarioError.of(flag, name, "can't be written: there is no such folder", f"make {folder} first")


def _write_tables(result: Result, given: argparse.Namespace) -> None:
    if given.requests:
        result.requests.to_csv(given.requests, index=False)
    if given.timeline:
        result.timeline.to_csv(given.timeline, index=False)


def _validate(given: argparse.Namespace) -> None:
    _print(_known(_scenario(given.file)).to_dict())


def _link(given: argparse.Namespace) -> None:
    if (given.file is None) == (given.decode is None):
        raise ScenarioError.of("link", "", "takes either a FILE or --decode URL_OR_TOKEN", "give one of them")
    if given.decode is not None:
        _print(Scenario.from_link(given.decode).to_dict())
    else:
        print(_known(_scenario(given.file)).to_link())


def _presets(given: argparse.Namespace) -> None:
    if given.name:
        _print(preset(given.name).scenario.to_dict())
    else:
        _print([{"name": p.name, "title": p.title, "story": p.story} for p in presets()])


def _autoscale(given: argparse.Namespace) -> None:
    data = sys.stdin.buffer.read() if given.vectors == "-" else Path(given.vectors).read_bytes()
    _print(answer_vectors(data))


def _place(given: argparse.Namespace) -> None:
    _print(place(sys.stdin.buffer.read() if given.problem == "-" else Path(given.problem).read_bytes()))


def _calibrate(given: argparse.Namespace) -> None:
    if given.out is not None and given.fit is None:
        raise ScenarioError.of("--out", given.out, "goes with --fit only", "leave it out")
    if given.evaluate is not None:
        _print(evaluate(given.evaluate))
    elif given.cross_validate is not None:
        print(readable(cross_validation(given.cross_validate)))
    else:
        _check_file("--out", given.out)
        out = Path(__file__).parent / "machine" / "constants.json" if given.out is None else Path(given.out)
        text = refit(given.fit)
        out.write_text(text, encoding="utf-8")


def _scenario(file: str) -> Scenario:
    if file != "-":
        return Scenario.from_json(Path(file))
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError.of("-", "", "standard input is not UTF-8 text", "give a scenario as JSON") from None
    if not text.lstrip().startswith("{"):
        begins = f"begins with {text.split(maxsplit=1)[0][:20]!r}" if text.strip() else "is empty"
        raise ScenarioError.of("-", "", f"standard input {begins}", "give a scenario as JSON: {...}")
    return Scenario.from_json(text)


def _known(s: Scenario) -> Scenario:
    """The scenario, if the catalogue has the model and the accelerator that it names."""
    resolve_model(s)
    resolve_accelerator(s)
    return s


def _trace(s: Scenario, file: str) -> Trace | None:
    """The trace that the scenario names, its path relative to the scenario's file."""
    source = s.traffic.trace.source
    if s.traffic.process != "trace" or source is None:
        return None
    if source.startswith("sha256:"):
        raise ScenarioError.of(
            "traffic.trace.source", source, "is a trace uploaded to an app", "give the path of the file itself"
        )
    path = Path(source) if file == "-" else Path(file).parent / source
    return read_trace(path, s.traffic.trace.format)


def _print(value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # a terminal that can't show every letter still gets valid JSON
        text = json.dumps(value, indent=2, allow_nan=False)
    print(text)


if __name__ == "__main__":
    sys.exit(main())
