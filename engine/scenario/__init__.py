"""The scenario: what it may say, and how it is read, changed, carried and described."""

from engine.scenario.describe import Choice, ParamInfo, describe, parameters
from engine.scenario.errors import Problem, ScenarioError
from engine.scenario.link import LinkError, Opened, from_query, open_link, to_query
from engine.scenario.paths import changes, parse_set
from engine.scenario.presets import Preset, preset, presets
from engine.scenario.scenario import Scenario
from engine.scenario.schema import *  # noqa: F403
from engine.scenario.schema import __all__ as _objects

__all__ = [
    "Choice",
    "LinkError",
    "Opened",
    "ParamInfo",
    "Preset",
    "Problem",
    "Scenario",
    "ScenarioError",
    "changes",
    "describe",
    "from_query",
    "open_link",
    "parameters",
    "parse_set",
    "preset",
    "presets",
    "to_query",
]
__all__ += _objects
