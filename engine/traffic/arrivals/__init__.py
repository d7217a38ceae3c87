"""When requests arrive: renewal processes of unit rate, bent in time by a shape and, for some, by states of their own.

A process yields gaps with mean 1. Their running sums U are the arrival times at rate 1; real times are where the
expected number of arrivals reaches them, `rate * integral of the factor = U` (time change, e.g. Cinlar, Introduction to
Stochastic Processes, 1975, section 4.7). So the rate stretches the same arrivals, and a shape shifts them, without a
new draw. The factor is the shape's, times that of a modulated process' state.

A new process is one file with a function like `poisson.gaps` plus one line in `PROCESSES`; one whose rate has states of
its own has a function like `mmpp.modulated`, and a line in `MODULATIONS`, too.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from engine.scenario import ScenarioError
from engine.traffic import shapes, streams
from engine.traffic.arrivals import deterministic, gamma, mmpp, poisson
from engine.traffic.requests import MOST_REQUESTS

if TYPE_CHECKING:
    from engine.scenario import Traffic

Gaps = Callable[[NDArray[np.float64], "Traffic"], NDArray[np.float64]]
"""From uniforms in [0, 1), one a gap, to gaps with mean 1, in the same order.

Each gap depends on its uniform alone and never decreases with it: so the first gaps are the same however many are
drawn, and settings that differ stay comparable. The uniforms may be overwritten."""

PROCESSES: Final = MappingProxyType[str, Gaps](
    {
        "deterministic": deterministic.gaps,
        "poisson": poisson.gaps,
        "gamma": gamma.gaps,
        "mmpp": mmpp.gaps,
    }
)

Modulation = Callable[[shapes.Curve, "Traffic", float, int], shapes.Curve]
"""From the shape's curve, the traffic, the horizon in seconds and a seed to the curve of that seed's rate."""

MODULATIONS: Final = MappingProxyType[str, Modulation]({"mmpp": mmpp.modulated})


def unit_arrivals(rng: np.random.Generator, count: int, traffic: Traffic, after: float = 0.0) -> NDArray[np.float64]:
    """Return the next `count` arrival times at rate 1, the previous one being at `after`.

    The sums are formed strictly in order, so chunks give the same bits as one long draw.
    """
    gaps = PROCESSES[traffic.process](rng.random(count), traffic)
    gaps[0] += after
    return np.cumsum(gaps, out=gaps)


def arrival_times(traffic: Traffic, horizon_s: float, seed: int) -> NDArray[np.float64]:
    """Return one seed's arrival times in [0, horizon_s), in seconds, never decreasing.

    The process is that of users' actions: with `client.fan_out` n they come at 1/n of the rate, and each time is that
    of n requests. So a larger fan-out stretches the same arrivals and leaves the rate of requests as it is.

    Raises `ScenarioError` where a seed's states bring more requests than a run may have.
    """
    curve = shapes.curve(traffic.shape, horizon_s)
    if traffic.process in MODULATIONS:
        curve = MODULATIONS[traffic.process](curve, traffic, horizon_s, seed)
    calls = traffic.client.fan_out
    rate = traffic.rate_rps / calls
    expected = rate * float(curve.integral(np.asarray(horizon_s)))
    if not expected > 0.0:
        return np.empty(0, dtype=np.float64)
    if expected * calls > MOST_REQUESTS:
        _refuse(traffic, expected * calls, seed)
    rng = streams.stream(seed, streams.ARRIVALS)
    # Four standard deviations of a Poisson count: a second chunk is rare, and costs nothing but time when needed.
    count = int(expected + 4.0 * expected**0.5) + 8
    chunks: list[NDArray[np.float64]] = []
    last = 0.0
    while True:
        unit = unit_arrivals(rng, count, traffic, last)
        last = float(unit[-1])
        times = curve.inverse(unit / rate)
        inside = int(np.searchsorted(times, horizon_s, side="left"))
        chunks.append(times[:inside])
        if inside < count:
            break
        count = count // 8 + 8
    arrivals = np.concatenate(chunks)
    # Rounding in the inverse may swap neighbours that are an ulp apart; the order is what the engine relies on.
    arrivals = arrivals if curve.identity else np.maximum.accumulate(arrivals)
    return arrivals if calls == 1 else np.repeat(arrivals, calls)


def _refuse(traffic: Traffic, expected: float, seed: int) -> NoReturn:
    """The scenario bounds the average number of requests; a burst as long as the run may bring many times that."""
    raise ScenarioError.of(
        "traffic.rate_rps",
        f"{traffic.rate_rps:g}",
        f"brings about {expected:,.0f} requests with seed {seed}, which is mostly in a burst: more than "
        f"{MOST_REQUESTS:,}",
        "lower traffic.rate_rps, traffic.mmpp.burst_ratio or run.horizon_s",
    )
