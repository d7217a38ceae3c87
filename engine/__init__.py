"""Headroom: what-if experiments for serving a model to many people.

``Scenario`` is the document that a run depends on, ``simulate`` runs it, and the ``Result`` says what happened.
``place`` packs models onto chips.
"""

from engine.outcome import Result
from engine.placement import place
from engine.scenario import Scenario, ScenarioError
from engine.study import simulate
from engine.traffic import Trace, TraceError, read_trace

__all__ = ["Result", "Scenario", "ScenarioError", "Trace", "TraceError", "place", "read_trace", "simulate"]
