"""The fit uses the app's own step time, finds what made the data, and is what ships."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.machine import cross_validation, readable, refit
from engine.machine.calibration import training
from engine.machine.calibration.features import features_of
from engine.machine.calibration.fit import fitted, get, problem_of, put, residuals, solve, weights_of
from engine.machine.calibration.judged import Judged, constants_of, judge
from engine.machine.calibration.prediction import predict
from engine.machine.calibration.table import read_measurements
from engine.machine.constants import shipped
from tests.machine.calibration.conftest import TableOf

first_constants = training.first_constants
SHIPPED = Path(training.__file__).parent.parent
HOPPER = ("families", "hopper")


@pytest.fixture
def judged(table_of: TableOf) -> Judged:
    """Points of all kinds: dense and experts, latent attention, 16, 8 and 4 bits, one and many devices, all loads."""
    blocks: list[dict[str, Any]] = [
        {},
        {"dtype_weights": "bf16", "tp": 4.0},
        {"dtype_weights": "int4", "gpu": "A100-SXM4-80GB", "tp": 8.0},
        {"model": "Mixtral-8x7B", "engine": "TensorRT-LLM"},
        {
            "model": "DeepSeek-R1",
            "gpu": "B200-SXM-180GB",
            "tp": 8.0,
            "ep": 8.0,
            "dp_attention": 8.0,
            "engine": "SGLang",
        },
        {"model": "gpt-oss-120b", "engine": "TensorRT-LLM", "tp": 1.0},
        {"model": "Llama-2-7B", "gpu": "MI300X", "date": "2024", "dtype_weights": "fp16", "tp": 1.0},
    ]
    loads = [
        {"concurrency": 1.0, "value": 1e3},
        {"concurrency": 2.0, "metric": "ttft_ms_unspec", "value": 1e4},
        {"concurrency": 48.0, "value": 2e3},
        {"load_kind": "static_batch", "batch": 8.0, "metric": "batch_latency_s", "value": 1e3},
        {"load_kind": "offline_max", "metric": "output_tok_s_total", "value": 1.0},
    ]
    rows = read_measurements(table_of(*(block | load for block in blocks for load in loads)))
    found = judge(rows)
    assert len(found.points) == len(blocks) * len(loads)
    return found


def test_prices_add_up_to_what_the_app_says(judged: Judged) -> None:
    table = dict(shipped())
    problem = problem_of(features_of(judged.points, judged.plans, table), table)
    ours = np.exp(residuals(problem, problem.start)) * [point.value for point in judged.points]
    pairs = zip(judged.points, judged.plans, strict=True)
    apps = [predict(plan, point.deployment, constants_of(point)) for point, plan in pairs]
    assert np.allclose(ours, apps, rtol=1e-9)


def test_derivatives(judged: Judged) -> None:
    first = first_constants()
    problem = problem_of(features_of(judged.points, judged.plans, first), first)
    path = (*HOPPER, "eta_m", "8")
    column, step = problem.unknowns.index(path), 1e-5
    moved = problem.start.copy()
    moved[column] += step
    change = (residuals(problem, moved) - residuals(problem, problem.start)) / step
    seen = [
        point.accelerator.name.startswith("H100") and point.model.name == "Llama-3.1-70B" for point in judged.points
    ]
    assert np.abs(change[seen][:5]).min() > 0.005
    assert not change[[point.accelerator.name == "MI300X" for point in judged.points]].any()


def test_what_made_the_data_is_found_again(judged: Judged) -> None:
    first = first_constants()
    truth = copy.deepcopy(first)
    put(truth, (*HOPPER, "eta_kv"), 0.45)
    put(truth, ("engines", "vllm", "dense", "layer_s"), 5e-5)
    said = [
        predict(plan, p.deployment, constants_of(p, truth)) for p, plan in zip(judged.points, judged.plans, strict=True)
    ]
    features = features_of(judged.points, judged.plans, first)
    features.log_measured[:] = np.log(said)
    problem = problem_of(features, first)
    assert np.abs(residuals(problem, problem.start)).max() > 0.2
    beta = solve(problem, 1000 * weights_of(judged.points))
    assert np.abs(residuals(problem, beta)).max() < 0.02
    found = fitted(problem, beta, first)
    assert get(found, ("engines", "vllm", "dense", "layer_s")) > 1.2 * get(
        first, ("engines", "vllm", "dense", "layer_s")
    )
    assert get(found, (*HOPPER, "eta_kv")) < 0.9 * get(first, (*HOPPER, "eta_kv"))


def test_families_without_rows_keep_their_first_values_and_formats_their_ratio(judged: Judged) -> None:
    first = first_constants()
    problem = problem_of(features_of(judged.points, judged.plans, first), first)
    found = fitted(problem, solve(problem, weights_of(judged.points)), first)
    assert found["families"]["gaudi"] == first["families"]["gaudi"]
    for name in ("eta_c", "eta_m"):
        ratio = [
            table["families"]["cdna3"][name]["8"] / table["families"]["cdna3"][name]["16"] for table in (found, first)
        ]
        assert ratio[0] == pytest.approx(ratio[1], rel=1e-3)


def test_weights_are_equal_within_a_source(judged: Judged) -> None:
    weights = weights_of(judged.points)
    totals: dict[object, float] = {}
    for point, weight in zip(judged.points, weights.tolist(), strict=True):
        totals[point.deployment_key] = totals.get(point.deployment_key, 0.0) + weight
    assert np.allclose(list(totals.values()), 1.0)


def test_what_ships_is_rounded_to_four_digits() -> None:
    def numbers(value: Any) -> list[float]:
        if isinstance(value, dict):
            return [number for entry in value.values() for number in numbers(entry)]
        return [value]

    assert all(number == float(f"{number:.4g}") for number in numbers(dict(shipped())))
    text = (SHIPPED / "constants.json").read_text(encoding="utf-8")
    assert text == readable(dict(shipped())) + "\n"


@pytest.mark.accept
@pytest.mark.data
def test_a_refit_is_what_ships(data_dir: Path) -> None:
    assert refit(data_dir / "measurements_train.csv") == (SHIPPED / "constants.json").read_text(encoding="utf-8")


@pytest.mark.accept
@pytest.mark.data
def test_blocks_left_out_are_predicted_as_well_as_must_be(data_dir: Path) -> None:
    found = cross_validation(data_dir / "measurements_train.csv")
    print(readable(found["held_out"]))
    assert readable(found) + "\n" == (SHIPPED / "accuracy.json").read_text(encoding="utf-8")
