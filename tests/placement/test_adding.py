"""One more replica, with and without moving the others."""

from __future__ import annotations

from engine.placement import Chip, Item, Packing, Problem, Shard, Used, add_replica, solve
from tests.placement.check import check

PATIENCE_S = 60.0


def test_it_takes_the_room_that_is_left() -> None:
    problem = Problem((Item("a", 40.0, 2), Item("b", 20.0)), (Chip("80GB", 72.0, 4.0),))
    found = solve(problem, PATIENCE_S)
    assert found.packing is not None
    more = add_replica(problem, found.packing, 1, PATIENCE_S)
    assert more.beside is not None
    assert (more.beside.cost, more.saved) == (8.0, 0.0)
    assert set(found.packing.used) - set(more.beside.used) <= set(found.packing.used)


def test_repacking_saves_a_chip() -> None:
    # Two of 30 GB lie apart, each with 42 GB free; a third of 45 GB needs a chip of its own unless they move together.
    problem = Problem((Item("a", 30.0, 2), Item("b", 45.0, 0)), (Chip("80GB", 72.0, 4.0),))
    apart = Packing((Used(0, 0, (Shard(0, 0, 1, 30.0),)), Used(0, 0, (Shard(0, 1, 1, 30.0),))), 8.0)
    more = add_replica(problem, apart, 1, PATIENCE_S)
    assert more.beside is not None
    assert more.anew.packing is not None
    check(more.anew.problem, more.beside)
    assert (more.beside.cost, more.anew.packing.cost, more.saved) == (12.0, 8.0, 4.0)


def test_a_split_replica_uses_chips_with_room_first() -> None:
    problem = Problem((Item("a", 30.0, 1), Item("b", 80.0, 0, (1, 2))), (Chip("80GB", 72.0, 4.0, 2),))
    one = Packing((Used(0, 0, (Shard(0, 0, 1, 30.0),)),), 4.0)
    more = add_replica(problem, one, 1, PATIENCE_S)
    assert more.beside is not None
    assert more.beside.cost == 8.0
    assert [len(used.shards) for used in more.beside.used] == [2, 1]


def test_no_room() -> None:
    problem = Problem((Item("a", 40.0, 1),), (Chip("48GB", 43.2, 2.0, 1),))
    found = solve(problem, PATIENCE_S)
    assert found.packing is not None
    more = add_replica(problem, found.packing, 0, PATIENCE_S)
    assert (more.beside, more.anew.packing, more.saved) == (None, None, None)


def test_another_host() -> None:
    problem = Problem((Item("a", 20.0, 1),), (Chip("48GB", 43.2, 2.0, 4, 2),), spread=True)
    found = solve(problem, PATIENCE_S)
    assert found.packing is not None
    more = add_replica(problem, found.packing, 0, PATIENCE_S)
    assert more.beside is not None
    check(more.anew.problem, more.beside)
    assert [used.host for used in more.beside.used] == [0, 1]
