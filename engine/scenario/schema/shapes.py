"""How the rate changes over a run: a factor on `traffic.rate_rps`, by moment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import fmod, pi, sin
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Strict, Tag

from engine.scenario.errors import Problem, show
from engine.scenario.fields import DAY, HOUR, TINY_S, WEEK, Section, item, kind_of, param, tag

MOST_FACTOR = 1000.0
MOST_STEPS = 2000

_TIMES: dict[str, Any] = {"unit": "times the rate", "low": 0.0, "high": MOST_FACTOR}


def _factor(default: float, label: str, help: str, why: str, **bounds: Any) -> Any:
    limits = {**_TIMES, **bounds}
    usual = (0.0, min(10.0, limits["high"]))
    return param(default, label=label, help=help, why=why, step=0.1, usual=usual, **limits)


def _moment(default: float, label: str, help: str, why: str, low: float = 0.0) -> Any:
    return param(
        default, label=label, help=help, why=why, unit="s", low=low, high=WEEK, step=10, usual=(max(low, 0.0), HOUR)
    )


class Shape(Section):
    """A factor on the rate, by moment of the run."""

    def mean_factor(self, horizon_s: float) -> float:
        """Average of the factor over [0, horizon_s], or an upper bound of it."""
        return 1.0


class Steady(Shape):
    """The rate stays as it is."""

    kind: Literal["steady"] = tag("steady", "the same all the time")


class Ramp(Shape):
    """From 1 at the start, linearly, to `to_factor` at the horizon."""

    kind: Literal["ramp"] = tag("ramp", "grows or shrinks evenly")
    to_factor: float = _factor(
        2.0, "Factor at the end", "How many times the rate the run ends with.", "twice the traffic is a common question"
    )

    def mean_factor(self, horizon_s: float) -> float:
        return (1.0 + self.to_factor) / 2.0


Point = Annotated[
    tuple[
        Annotated[float, item(label="From", help="When the factor begins to hold.", unit="s", low=0.0, high=WEEK)],
        Annotated[float, item(label="Factor", help="On the rate, until the next point.", **_TIMES)],
    ],
    Strict(False),
]


class Steps(Shape):
    """1 until the first point; each point's factor holds until the next."""

    kind: Literal["steps"] = tag("steps", "jumps at given moments")
    points: tuple[Point, ...] = param(
        ((300.0, 2.0), (600.0, 1.0)),
        label="Moments and factors",
        longest=MOST_STEPS,
        help="A list of [moment in seconds, factor], moments rising; before the first the factor is 1.",
        why="five busy minutes in the middle of the default run",
    )

    def rules(self) -> Iterator[Problem]:
        for index, (before, after) in enumerate(pairwise(self.points), start=1):
            if after[0] <= before[0]:
                yield Problem(
                    f"points.{index}.0",
                    show(after[0]),
                    f"is not after {show(before[0])}",
                    "give the moments in rising order",
                )

    def mean_factor(self, horizon_s: float) -> float:
        corners = [(0.0, 1.0), *(point for point in self.points if point[0] < horizon_s), (horizon_s, 0.0)]
        return sum(factor * (until - since) for (since, factor), (until, _) in pairwise(corners)) / horizon_s


class Spike(Shape):
    """1, then up to `factor` over `rise_s`, held for `hold_s`, and back over `fall_s`, all linear."""

    kind: Literal["spike"] = tag("spike", "up, held, and down again")
    at_s: float = _moment(
        300.0, "Spike begins", "When the rate begins to rise.", "after a quiet stretch to compare with"
    )
    factor: float = _factor(3.0, "Height of the spike", "How many times the rate the peak has.", "a clear overload")
    rise_s: float = _moment(
        30.0, "Rise", "How long the rate takes to reach the peak; 0 is at once.", "people arrive quickly"
    )
    hold_s: float = _moment(120.0, "Hold", "How long the peak lasts.", "long enough for a queue to build up")
    fall_s: float = _moment(60.0, "Fall", "How long the rate takes to come back; 0 is at once.", "people leave slowly")

    def mean_factor(self, horizon_s: float) -> float:
        top = self.at_s + self.rise_s
        edge = top + self.hold_s
        end = edge + self.fall_s
        seconds_at_peak = (
            _area(self.at_s, top, min(horizon_s, top))
            + max(0.0, min(horizon_s, edge) - top)
            + self.fall_s / 2.0
            - _area(0.0, self.fall_s, max(0.0, end - max(horizon_s, edge)))
        )
        return 1.0 + (self.factor - 1.0) * seconds_at_peak / horizon_s


def _area(start: float, end: float, until: float) -> float:
    """Integral up to `until` of a line that rises from 0 at `start` to 1 at `end`."""
    return (until - start) ** 2 / (2.0 * (end - start)) if until > start else 0.0


class Diurnal(Shape):
    """A day: a cosine between `trough_factor` and 2 - `trough_factor`, which it has at `peak_at_s`; on average 1."""

    kind: Literal["diurnal"] = tag("diurnal", "day and night")
    period_s: float = _moment(DAY, "Length of a day", "Time from one peak to the next.", "a day", low=TINY_S)
    trough_factor: float = _factor(
        0.25,
        "Factor at the quietest",
        "How much of the rate is left half a period from the peak, which is as far above the rate as this is below.",
        "nights are quiet",
        high=1.0,
    )
    peak_at_s: float = _moment(
        14 * HOUR, "Busiest moment", "When a peak comes; others are whole periods before and after.", "early afternoon"
    )

    def mean_factor(self, horizon_s: float) -> float:
        turns = 2.0 * pi / self.period_s
        before = sin(turns * fmod(self.peak_at_s, self.period_s))
        after = sin(turns * fmod(horizon_s - self.peak_at_s, self.period_s))
        return 1.0 + (1.0 - self.trough_factor) * (before + after) / (turns * horizon_s)


AnyShape = Annotated[
    Annotated[Steady, Tag("steady")]
    | Annotated[Ramp, Tag("ramp")]
    | Annotated[Steps, Tag("steps")]
    | Annotated[Spike, Tag("spike")]
    | Annotated[Diurnal, Tag("diurnal")],
    Discriminator(kind_of("kind", "steady")),
]
