"""The published measurements that the app shows."""

from __future__ import annotations

import json

import pytest

from engine.catalog import accelerators, models
from engine.machine import class_of, family_of, how_far_off, published
from engine.machine.calibration.shown import FILE, NAMES, NUMBERS
from engine.machine.published import Published


def point(measured: float, predicted: float, tp: int = 1) -> Published:
    words = dict.fromkeys(NAMES, "")
    numbers = dict.fromkeys(NUMBERS, 1.0)
    return Published(**{**words, **numbers, "tp": tp, "measured": measured, "predicted": predicted, "known": True})


def test_the_file_is_small_and_complete() -> None:
    assert FILE.stat().st_size < 300_000
    rows = json.loads(FILE.read_text())["rows"]
    assert {len(column) for column in rows.values()} == {len(published())}
    assert len(published()) > 3_000
    assert sum(p.known for p in published()) > 0.9 * len(published())


def test_every_point_is_of_the_catalogue_and_above_zero() -> None:
    for p in published():
        assert p.kind == class_of(models()[p.model])
        assert p.family == family_of(accelerators()[p.accelerator])
        assert min(p.measured, p.predicted, p.prompt, p.output, p.seqs, p.tp) > 0


def test_errors_by_hand_with_equal_weight_per_deployment() -> None:
    many = [point(1.0, 1.1)] * 8 + [point(1.0, 0.8, tp=2)]
    off = how_far_off(many)
    assert off is not None
    assert (off.points, off.deployments) == (9, 2)
    assert off.median == pytest.approx(10.0)
    assert off.p90 == pytest.approx(20.0)
    assert off.signed == pytest.approx(-20.0)
    assert how_far_off([]) is None


def test_what_is_shown_is_no_better_than_what_cross_validation_can_be() -> None:
    off = how_far_off(p for p in published() if p.known)
    assert off is not None
    assert 4.0 < off.median < 16.0
    assert 20.0 < off.p90 < 45.0
