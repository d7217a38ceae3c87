"""Closed forms against the oracles: exact where they are exact, and off by as much as is known where not."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from engine.theory import allen_cunneen, erlang_c, kingman, pollaczek_khinchine

TRUTH = Path(__file__).resolve().parent.parent / "truth"
Cases = list[tuple[dict[str, Any], dict[str, float]]]


def cases(table: str, family: str) -> Cases:
    """(parameters, known quantities) of a family."""
    found: dict[str, dict[str, float]] = {}
    with (TRUTH / table).open(newline="") as file:
        for row in csv.DictReader(file):
            if row["name"] == family:
                found.setdefault(row["params_json"], {})[row["quantity"]] = float(row["value"])
    return [(json.loads(text), known) for text, known in found.items()]


GIM1 = {(p["ca2"], p["lam"]): known["Wq_mean"] for p, known in cases("oracles.csv", "GIM1") if "Wq_mean" in known}
MDC = {(p["c"], p["lam"]): known["Wq_mean"] for p, known in cases("oracles.csv", "MDc") if "Wq_mean" in known}
SCV = {"erlang4": 0.25, "uniform_0_2": 1 / 3, "lognormal_scv1": 1.0, "lognormal_scv4": 4.0}


@pytest.mark.parametrize(("p", "known"), cases("oracles.csv", "MG1"), ids=str)
def test_one_server_and_any_service(p: dict[str, Any], known: dict[str, float]) -> None:
    scv = p.get("scv", SCV.get(p["service"]))
    assert pollaczek_khinchine(p["lam"], 1.0, scv) == pytest.approx(known["Wq_mean"], rel=1e-9)
    assert allen_cunneen(p["lam"], 1.0, 1, 1.0, scv) == pytest.approx(known["Wq_mean"], rel=1e-9)


@pytest.mark.parametrize(("p", "known"), cases("oracles.csv", "MD1"), ids=str)
def test_one_server_and_equal_services(p: dict[str, Any], known: dict[str, float]) -> None:
    assert pollaczek_khinchine(p["lam"], p["D"], 0.0) == pytest.approx(known["Wq_mean"], rel=1e-9)


@pytest.mark.parametrize(("p", "known"), cases("oracles.csv", "MMc"), ids=str)
def test_several_servers(p: dict[str, Any], known: dict[str, float]) -> None:
    load = p["lam"] / (p["c"] * p["mu"])
    assert erlang_c(p["c"], load) == pytest.approx(known["P_wait"], rel=1e-9)
    assert allen_cunneen(p["lam"], 1 / p["mu"], p["c"], 1.0, 1.0) == pytest.approx(known["Wq_mean"], rel=1e-9)


@pytest.mark.parametrize(("p", "known"), cases("approximations.csv", "Kingman_vs_GIM1"), ids=str)
def test_kingman_is_off_by_what_is_known(p: dict[str, Any], known: dict[str, float]) -> None:
    wait = kingman(p["lam"], 1 / p["mu"], p["ca2"], 1.0)
    assert wait == pytest.approx(known["Wq_mean_approx"], rel=1e-9)
    if (p["ca2"], p["lam"]) in GIM1:
        assert wait / GIM1[p["ca2"], p["lam"]] - 1 == pytest.approx(known["rel_error_vs_exact"], abs=1e-6)


@pytest.mark.parametrize(("p", "known"), cases("approximations.csv", "AllenCunneen_for_MDc"), ids=str)
def test_allen_cunneen_is_off_by_what_is_known(p: dict[str, Any], known: dict[str, float]) -> None:
    wait = allen_cunneen(p["lam"], p["D"], p["c"], 1.0, 0.0)
    assert wait == pytest.approx(known["Wq_mean_approx"], rel=1e-9)
    if (p["c"], p["lam"]) in MDC:
        assert wait / MDC[p["c"], p["lam"]] - 1 == pytest.approx(known["rel_error_vs_exact"], abs=1e-6)


def test_the_exact_values_are_there_to_compare() -> None:
    kingmans = cases("approximations.csv", "Kingman_vs_GIM1")
    assert sum((p["ca2"], p["lam"]) in GIM1 for p, _ in kingmans) >= 20
    assert sum((p["c"], p["lam"]) in MDC for p, _ in cases("approximations.csv", "AllenCunneen_for_MDc")) >= 4


def test_an_overloaded_queue_grows_without_end() -> None:
    assert pollaczek_khinchine(2.0, 0.5, 1.0) == allen_cunneen(4.0, 0.5, 2, 1.0, 1.0) == float("inf")
    assert erlang_c(4, 1.0) == 1.0
