"""What one replica can hold and how long a step lasts."""

from engine.machine.calibration import (
    cross_validation,
    evaluate,
    readable,
    refit,
    scale_from_measurement,
)
from engine.machine.confidence import StepTimeError, step_time_error
from engine.machine.constants import Constants, class_of, engines, family_of
from engine.machine.context import typical_lengths
from engine.machine.deployment import Deployment, accelerators_of, deployment, resolve_accelerator, resolve_model
from engine.machine.evidence import Evidence, held_out_table, replica_evidence
from engine.machine.exchange import megatron_bytes, ring_attention_bytes, stage_boundary_bytes, ulysses_bytes
from engine.machine.memory import Memory
from engine.machine.parallel import split_sizes, tensor_problems
from engine.machine.published import Off, Published, how_far_off, published
from engine.machine.replica import (
    ReplicaModel,
    constants,
    device_memory,
    hourly_price,
    largest_step,
    replica_memory,
    replica_model,
    step_terms,
)
from engine.machine.sharing import Sharing, room, seats, sharing
from engine.machine.stages import Stage, stages
from engine.machine.steptime import Name, Term, step_parts
from engine.machine.worked import Step, Worked, worked_example

__all__ = [
    "Constants",
    "Deployment",
    "Evidence",
    "Memory",
    "Name",
    "Off",
    "Published",
    "ReplicaModel",
    "Sharing",
    "Stage",
    "Step",
    "StepTimeError",
    "Term",
    "Worked",
    "accelerators_of",
    "class_of",
    "constants",
    "cross_validation",
    "deployment",
    "device_memory",
    "engines",
    "evaluate",
    "family_of",
    "held_out_table",
    "hourly_price",
    "how_far_off",
    "largest_step",
    "megatron_bytes",
    "published",
    "readable",
    "refit",
    "replica_evidence",
    "replica_memory",
    "replica_model",
    "resolve_accelerator",
    "resolve_model",
    "ring_attention_bytes",
    "room",
    "scale_from_measurement",
    "seats",
    "sharing",
    "split_sizes",
    "stage_boundary_bytes",
    "stages",
    "step_parts",
    "step_terms",
    "step_time_error",
    "tensor_problems",
    "typical_lengths",
    "ulysses_bytes",
    "worked_example",
]
