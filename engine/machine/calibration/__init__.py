"""How the constants are found and how far they carry: published measurements, mapped, predicted, scored, fitted."""

from engine.machine.calibration.evaluation import evaluate
from engine.machine.calibration.held_out import cross_validation
from engine.machine.calibration.layout import readable
from engine.machine.calibration.own_point import scale_from_measurement
from engine.machine.calibration.training import refit

__all__ = ["cross_validation", "evaluate", "readable", "refit", "scale_from_measurement"]
