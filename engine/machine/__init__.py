"""What one replica can hold and how long a step lasts."""

from engine.machine.calibration import (
    cross_validation,
    evaluate,
    readable,
    refit,
    scale_from_measurement,
)
from engine.machine.constants import Constants, engines
from engine.machine.deployment import Deployment, deployment, resolve_accelerator, resolve_model
from engine.machine.evidence import Evidence, replica_evidence
from engine.machine.memory import Memory
from engine.machine.replica import (
    ReplicaModel,
    accelerators_of,
    constants,
    hourly_price,
    largest_step,
    replica_memory,
    replica_model,
    step_terms,
)
from engine.machine.steptime import Term, step_parts

__all__ = [
    "Constants",
    "Deployment",
    "Evidence",
    "Memory",
    "ReplicaModel",
    "Term",
    "accelerators_of",
    "constants",
    "cross_validation",
    "deployment",
    "engines",
    "evaluate",
    "hourly_price",
    "largest_step",
    "readable",
    "refit",
    "replica_evidence",
    "replica_memory",
    "replica_model",
    "resolve_accelerator",
    "resolve_model",
    "scale_from_measurement",
    "step_parts",
    "step_terms",
]
