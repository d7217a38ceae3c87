"""Traffic: what arrives, when, and how long it is. From a scenario and a seed, or a trace, to arrays of requests."""

from engine.traffic.arrivals import PROCESSES
from engine.traffic.closed import Users, users
from engine.traffic.clumps import WIDTHS_S, Clumps, clumps, counts, dispersion, gap_cv, slice_of
from engine.traffic.fitting import Candidate, Fit, FittedLength, fit, fitted_length, scenario_changes
from engine.traffic.generate import generate
from engine.traffic.lengths import DISTRIBUTIONS
from engine.traffic.real import RealTraffic, real_traffic
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
    "WIDTHS_S",
    "Candidate",
    "Clumps",
    "Fit",
    "FittedLength",
    "RealTraffic",
    "Requests",
    "Trace",
    "TraceError",
    "Users",
    "clumps",
    "counts",
    "dispersion",
    "fit",
    "fitted_length",
    "gap_cv",
    "generate",
    "read_trace",
    "real_traffic",
    "scenario_changes",
    "slice_of",
    "stream",
    "users",
]
