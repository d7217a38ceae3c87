"""Traffic: what arrives, when, and how long it is. From a scenario and a seed, or a trace, to arrays of requests."""

from engine.traffic.arrivals import PROCESSES
from engine.traffic.closed import Users, users
from engine.traffic.generate import generate
from engine.traffic.lengths import DISTRIBUTIONS
from engine.traffic.requests import Requests
from engine.traffic.shapes import SHAPES
from engine.traffic.streams import ROUTER, stream
from engine.traffic.traces import FORMATS, Trace, TraceError, read_trace

__all__ = [
    "DISTRIBUTIONS",
    "FORMATS",
    "PROCESSES",
    "ROUTER",
    "SHAPES",
    "Requests",
    "Trace",
    "TraceError",
    "Users",
    "generate",
    "read_trace",
    "stream",
    "users",
]
