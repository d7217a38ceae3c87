"""Routers that don't look at load: each seed's requests are split over the replicas before anything is simulated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.traffic import ROUTER, stream


def round_robin(count: int, replicas: int, seed: int, name: str = ROUTER) -> NDArray[np.int64]:
    """The i-th arrival goes to replica i mod n; refused ones take their turn too. Returns (count,) replica indices."""
    return np.arange(count, dtype=np.int64) % replicas


def random(count: int, replicas: int, seed: int, name: str = ROUTER) -> NDArray[np.int64]:
    """Each arrival goes to a replica drawn uniformly from stream ``name``. Returns (count,) replica indices."""
    # One uniform a request keeps the choices comparable between fleets of different sizes.
    return np.asarray(stream(seed, name).random(count) * replicas, dtype=np.int64)


ROUTERS: dict[str, Callable[[int, int, int, str], NDArray[np.int64]]] = {"round_robin": round_robin, "random": random}
"""Static routing policies by their name in the scenario."""
