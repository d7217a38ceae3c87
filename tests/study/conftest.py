"""What tests of studies share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.study import forget_capacities


@pytest.fixture
def nothing_remembered() -> Iterator[None]:
    """No capacity is known from a test before, nor in the test after."""
    forget_capacities()
    yield
    forget_capacities()
