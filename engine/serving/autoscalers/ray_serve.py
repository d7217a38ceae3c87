"""Ray Serve: ongoing requests against a target, damped, and a wish that must hold before it is granted.

Source: ray-project/ray, python/ray/serve/autoscaling_policy.py, `replica_queue_length_autoscaling_policy`,
`_apply_scaling_factors` and `_apply_delay_logic`.
"""

from __future__ import annotations

import math

from engine.scenario import Autoscaler

from .controller import Controller, View

_NOISE_S = 1e-6
"""A delay has passed when this little is missing: ticks are multiples of 0.1 s, and their differences are rounded."""


def cold_start(requests: float, upscaling_factor: float, asked_for: int) -> int:
    """Replicas while none runs: with requests at least one, times the factor, at once; `asked_for` are on the way."""
    return max(math.ceil(upscaling_factor), asked_for) if requests > 0 else asked_for


def wanted(running: int, requests: float, target: float, upscaling_factor: float, downscaling_factor: float) -> int:
    """Replicas for `requests` ongoing ones, `target` each, `running` > 0: the factor's share of the way there.

    A factor so small that rounding up leaves everything as it is removes one replica nonetheless.
    """
    exact = running * (requests / (target * running))
    change = exact - running
    scaled = math.ceil(running + (upscaling_factor if change > 0 else downscaling_factor) * change)
    return scaled - 1 if math.ceil(exact) < running and scaled == running else scaled


class Delay:
    """Grants a wish that has held without a break for its delay; the latest wish is what is granted.

    A change of direction starts the time anew, as does a wish for what is there already. From more than one replica it
    never goes straight to 0, and the last one may have a delay of its own.
    """

    def __init__(self, up_s: float, down_s: float, to_zero_s: float | None = None) -> None:
        self._up_s, self._down_s = up_s, down_s
        self._to_zero_s = down_s if to_zero_s is None else to_zero_s
        self._direction = 0
        self._since_s = 0.0

    def grant(self, t_s: float, wish: int, asked_for: int) -> int:
        """The replicas to ask for at `t_s`, with `asked_for` until now."""
        direction = (wish > asked_for) - (wish < asked_for)
        if direction != self._direction:
            self._direction, self._since_s = direction, t_s
        if not direction:
            return asked_for
        delay_s = self._up_s if direction > 0 else self._to_zero_s if asked_for == 1 else self._down_s
        if t_s - self._since_s + _NOISE_S < delay_s:
            return asked_for
        self._direction = 0
        return wish if direction > 0 or asked_for == 1 else max(wish, 1)


class RayServe(Controller):
    """`ready` replicas run, the others that count have been asked for. Looks back 30 s, every 0.1 s."""

    own_interval_s = 0.1
    own_window_s = 30.0

    def __init__(self, autoscaler: Autoscaler, replicas: int) -> None:
        super().__init__(autoscaler, replicas)
        settings = autoscaler.ray_serve
        self._delay = Delay(settings.upscale_delay_s, settings.downscale_delay_s)

    def _wish(self, view: View) -> int:
        a, reading = self.autoscaler, view.reading
        up, down = a.ray_serve.upscaling_factor, a.ray_serve.downscaling_factor
        if not reading.ready:  # what is on the way counts here even if hidden, or every 0.1 s would order one more
            return cold_start(reading.total, up, reading.present) - view.hidden
        wish = wanted(reading.ready, reading.total, a.target, up, down)
        return self._delay.grant(reading.t_s, min(max(wish, view.low), view.high), view.current)
