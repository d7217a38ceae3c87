"""``place``: the placement vectors through the command line, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.placement import Packing, Problem, Shard, Used, read_problem
from tests.cli.conftest import Command
from tests.placement.check import check
from tests.placement.test_vectors import VECTORS

KEYS = ["feasible", "min_cost", "lower_bound", "proven_optimal", "chips_used", "placement"]


def packing_of(problem: Problem, answer: dict[str, Any]) -> Packing:
    """The answer's placement, its shards dealt out to replicas as they come."""
    types, models = [c.type for c in problem.chips], [i.model for i in problem.items]
    seen: dict[tuple[str, str], int] = {}
    first: dict[str, list[str]] = {}
    used = []
    for chip in answer["placement"]:
        shards = []
        for label in chip["items"]:
            model, tp = label.rsplit("/tp", 1)
            kind = (label, chip["chip"])
            whole = sum(label in c["items"] and c["chip"] == chip["chip"] for c in answer["placement"])
            assert whole >= int(tp), "on so many different chips at least"
            total = sum(c["items"].count(label) for c in answer["placement"] if c["chip"] == chip["chip"])
            known = first.setdefault(model, [])
            if (key := f"{label} {chip['chip']}") not in known:
                known += [key] * (total // int(tp))
            number = known.index(key) + seen.get(kind, 0) % (total // int(tp))
            seen[kind] = seen.get(kind, 0) + 1
            item = models.index(model)
            size = problem.items[item].shard_gb(int(tp), chip["chip"])
            assert size is not None
            shards.append(Shard(item, number, int(tp), size))
        used.append(Used(types.index(chip["chip"]), 0, tuple(shards)))
    return Packing(tuple(used), answer["min_cost"])


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_the_vectors(run: Command, tmp_path: Path, vector: dict[str, Any]) -> None:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps({"items": vector["items"], "chips": vector["chips"]}))
    answer = run("place", path).json
    if not vector["feasible"]:
        assert list(answer) == [*KEYS, "why"]
        assert [answer[key] for key in KEYS] == [False, None, None, None, None, None]
        assert "short by" in answer["why"]
        return
    assert list(answer) == KEYS
    assert {key: answer[key] for key in KEYS[:5]} == {key: vector[key] for key in KEYS[:5]}
    problem = read_problem(path.read_bytes())
    check(problem, packing_of(problem, answer))


def test_standard_input(run: Command) -> None:
    assert run("place", "-", stdin=json.dumps(VECTORS[0]).encode()).json["min_cost"] == VECTORS[0]["min_cost"]


def test_bad_input(run: Command, tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"
    assert run("place", missing).trouble == f"{missing}: No such file or directory"
    assert run("place", "-", stdin=b"{}").trouble == "items: is missing; give a list of objects"
    assert run("place", "-", stdin=b"").trouble.startswith("not JSON at line 1, column 1")
    assert run("place").trouble.endswith("see python -m engine place --help")
