"""Serving: the lockstep replica, what it admits, how the fleet splits the traffic, who decides how large it is."""

from __future__ import annotations

from .attempts import Attempts, Handover
from .autoscalers import AUTOSCALERS, Controller, Reading, answer_vectors, controller
from .coupled import Lives, Routing
from .fleet import DecodePool, Fleet, FleetRun, run_fleet, run_users, run_writers
from .lanes import LIMITS, UNLIMITED, Deadlines, Lanes, Served, StepLog
from .lockstep import Lockstep
from .side_by_side import run_fleets
from .split import ROUTERS
from .states import COMPLETED, REASONS, REJECT_REASONS, REJECTED, STATES, TIMED_OUT, UNFINISHED
from .steplog import Sink, ended_by

__all__ = [
    "AUTOSCALERS",
    "COMPLETED",
    "LIMITS",
    "REASONS",
    "REJECTED",
    "REJECT_REASONS",
    "ROUTERS",
    "STATES",
    "TIMED_OUT",
    "UNFINISHED",
    "UNLIMITED",
    "Attempts",
    "Controller",
    "Deadlines",
    "DecodePool",
    "Fleet",
    "FleetRun",
    "Handover",
    "Lanes",
    "Lives",
    "Lockstep",
    "Reading",
    "Routing",
    "Served",
    "Sink",
    "StepLog",
    "answer_vectors",
    "controller",
    "ended_by",
    "run_fleet",
    "run_fleets",
    "run_users",
    "run_writers",
]
