"""Scores: weights, percentiles and the shape of what `calibrate --evaluate` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.machine import evaluate
from engine.machine.calibration.judged import CONTRADICTED, FASTER_THAN_ROOFLINE, NO_ROOM
from engine.machine.calibration.scoring import METRICS, equal_weights, weighted_quantile
from tests.machine.calibration.conftest import TableOf

LEAF = {"median_ape", "p90_ape", "signed_median", "n", "deployments", "ci95"}


def leaves(found: Any) -> list[dict[str, Any]]:
    """Every leaf of a table of scores."""
    if found is None:
        return []
    if "median_ape" in found:
        return [found]
    return [leaf for entry in found.values() for leaf in leaves(entry)]


def test_the_shape(table_of: TableOf) -> None:
    dense = [{"concurrency": n, "value": 12.0 + n / 8} for n in (4.0, 16.0, 64.0)]
    expert = {"model": "Mixtral-8x7B", "source_group": "TensorRT-LLM docs", "engine": "TensorRT-LLM"}
    other = {"gpu": "RTX 4080"}
    found = evaluate(table_of(*dense, expert, other, {"model": "GPT-9"}))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (found["configurations"], found["points"]) == (4, 4)
    assert found["excluded"] == {"accelerator not in the catalogue": 1, "model not in the catalogue": 1}
    assert found["coverage"] == {"mapped": 4, "predicted": 4, "share": 1.0}
    assert list(found["by_metric"]) == list(METRICS)
    assert found["by_metric"]["batch_latency"] is None
    assert list(found["by_class"]) == ["dense", "moe"]
    assert list(found["by_accelerator"]) == ["H100-SXM-80GB"]
    assert list(found["by_source"]) == ["InferenceMAX/InferenceX", "TensorRT-LLM docs"]
    assert set(found["baseline"]) == {"overall", "by_metric", "by_class", "by_accelerator", "by_source"}
    everywhere = leaves({key: found[key] for key in ("overall", "by_metric", "by_class", "by_source", "baseline")})
    assert all(set(leaf) == LEAF for leaf in everywhere)
    assert all(leaf["ci95"][0] <= leaf["median_ape"] <= leaf["ci95"][1] for leaf in everywhere)
    assert (found["overall"]["n"], found["overall"]["deployments"]) == (4, 2)


def test_rows_that_nothing_can_be_said_of(table_of: TableOf) -> None:
    blank = {"concurrency": "", "value": ""}
    odd = [{"dtype_weights": text, "value": 40.0} for text in ("", "nan", "w4a16", "mixed", "int3")]
    found = evaluate(table_of(blank, *odd, {"engine": ""}, {"engine": "nobody's engine"}))
    assert found["points"] == 6
    assert found["excluded"] == {"format of the weights isn't known": 1, "no value above 0": 1}
    none = evaluate(table_of({"gpu": "Abacus"}))
    assert (none["points"], none["overall"], none["coverage"]["share"]) == (0, None, None)


def test_rows_against_physics_or_their_neighbours(table_of: TableOf) -> None:
    found = evaluate(
        table_of(
            {"value": 1.0},
            {"concurrency": 8.0, "value": 40.0},
            {"concurrency": 64.0, "value": 31.0},
            {"concurrency": 32.0, "value": 33.0},
            {"gpu": "RTX 4090", "tp": 1.0, "n_gpus": 1},
        )
    )
    assert found["excluded"] == {CONTRADICTED: 1, FASTER_THAN_ROOFLINE: 1, NO_ROOM: 1}
    assert found["points"] == 2


def test_each_deployment_weighs_the_same() -> None:
    weights, index = equal_weights(["a", "a", "a", "b"])
    assert index.tolist() == [0, 0, 0, 1]
    assert np.allclose(weights, [1 / 3, 1 / 3, 1 / 3, 1])
    values = np.array([1.0, 2.0, 3.0, 10.0])
    assert weighted_quantile(values, weights, 0.5) == 3.0
    assert weighted_quantile(values, weights, 0.51) == 10.0
    assert weighted_quantile(values, np.ones(4), 0.25) == 1.0


@pytest.mark.data
def test_nine_rows_in_ten_are_predicted_and_the_baseline_is_beaten(data_dir: Path) -> None:
    found = evaluate(data_dir / "measurements_train.csv")
    assert found["coverage"]["share"] >= 0.95
    assert found["configurations"] > 3200
    assert 3 * found["overall"]["median_ape"] < found["baseline"]["overall"]["median_ape"]
    signed = {kind: abs(leaf["signed_median"]) for kind, leaf in found["by_class"].items()}
    assert signed["dense"] < 5
    assert signed["moe"] < 10
