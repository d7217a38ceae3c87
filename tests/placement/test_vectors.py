"""The placement vectors in tests/truth: cost, bound, proof, and a packing that keeps all rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.placement import Problem, chips_used, place, read_problem, solve
from tests.placement.check import check

TRUTH = Path(__file__).parents[1] / "truth" / "placement_vectors.json"
VECTORS: list[dict[str, Any]] = json.loads(TRUTH.read_text())["vectors"]
PATIENCE_S = 60.0


def problem_of(vector: dict[str, Any]) -> Problem:
    return read_problem(json.dumps({"items": vector["items"], "chips": vector["chips"]}).encode())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_the_optimum_and_its_proof(vector: dict[str, Any]) -> None:
    problem = problem_of(vector)
    found = solve(problem, PATIENCE_S)
    assert (found.packing is not None) == vector["feasible"] == (not found.impossible)
    if found.packing is None:
        return
    check(problem, found.packing)
    assert found.packing.cost == vector["min_cost"]
    assert found.lower_bound == vector["lower_bound"]
    assert found.proven_optimal is vector["proven_optimal"]
    assert chips_used(problem, found.packing) == vector["chips_used"]


@pytest.mark.parametrize("vector", [v for v in VECTORS if "ffd_bins" in v], ids=lambda v: v["id"])
def test_the_rules_of_thumb(vector: dict[str, Any]) -> None:
    problem = problem_of(vector)
    found = solve(problem, PATIENCE_S)
    assert (len(found.first_fit.used), len(found.best_fit.used)) == (vector["ffd_bins"], vector["bfd_bins"])
    for packing in (found.first_fit, found.best_fit):
        check(problem, packing)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_a_whole_vector_is_a_problem_too(vector: dict[str, Any]) -> None:
    answer = place(json.dumps(vector).encode())
    assert answer["feasible"] is vector["feasible"]
    assert answer["min_cost"] == vector.get("min_cost")
