"""The objects that make up a scenario, one file a subject; `engine.scenario.document` puts them together."""

from engine.scenario.schema.admission import AdaptiveLifo, Admission, Codel, Fifo, RateLimit, Shed
from engine.scenario.schema.autoscaler import Autoscaler, Behavior, Schedule, Startup
from engine.scenario.schema.client import Client, Throttle
from engine.scenario.schema.lengths import Constant, Empirical, Geometric, Length, Lognormal, Uniform
from engine.scenario.schema.machine import Analytic, Hardware, Linear, Model, Parallelism, Performance, Scale
from engine.scenario.schema.promises import Objective, Run
from engine.scenario.schema.serving import Batching, Disaggregated, Fleet, Routing
from engine.scenario.schema.shapes import AnyShape, Diurnal, Ramp, Shape, Spike, Steady, Steps
from engine.scenario.schema.traffic import Closed, Growth, Mmpp, TraceSource, Traffic, TrafficClass

__all__ = [
    "AdaptiveLifo",
    "Admission",
    "Analytic",
    "AnyShape",
    "Autoscaler",
    "Batching",
    "Behavior",
    "Client",
    "Closed",
    "Codel",
    "Constant",
    "Disaggregated",
    "Diurnal",
    "Empirical",
    "Fifo",
    "Fleet",
    "Geometric",
    "Growth",
    "Hardware",
    "Length",
    "Linear",
    "Lognormal",
    "Mmpp",
    "Model",
    "Objective",
    "Parallelism",
    "Performance",
    "Ramp",
    "RateLimit",
    "Routing",
    "Run",
    "Scale",
    "Schedule",
    "Shape",
    "Shed",
    "Spike",
    "Startup",
    "Steady",
    "Steps",
    "Throttle",
    "TraceSource",
    "Traffic",
    "TrafficClass",
    "Uniform",
]
