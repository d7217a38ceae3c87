"""Autoscalers: who decides how many replicas there are.

Each rule is a file with its source's decision as plain functions, and a `Controller` that a run asks at every tick. A
new rule is one such file and one line in `AUTOSCALERS`; `vectors` answers the controllers' own test cases by the same
functions.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from engine.scenario import Autoscaler

from .aibrix import Apa
from .controller import Controller, Reading
from .fixed import Fixed
from .hpa import Hpa
from .keda import Keda
from .knative import Knative
from .ray_serve import RayServe
from .schedule import Scheduled
from .vectors import answer_vectors

AUTOSCALERS: Final = MappingProxyType[str, type[Controller]](
    {
        "none": Fixed,
        "hpa": Hpa,
        "knative": Knative,
        "keda": Keda,
        "ray_serve": RayServe,
        "aibrix": Apa,
        "schedule": Scheduled,
    }
)
"""Rules by their name in the scenario."""


def controller(autoscaler: Autoscaler, replicas: int) -> Controller:
    """A fresh controller of the scenario's policy, for a fleet that starts with `replicas` ready; one for each seed."""
    return AUTOSCALERS[autoscaler.policy](autoscaler, replicas)


__all__ = ["AUTOSCALERS", "Controller", "Reading", "answer_vectors", "controller"]
