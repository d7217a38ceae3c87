"""What any packing must keep, checked from the problem alone."""

from __future__ import annotations

from collections import Counter, defaultdict

from engine.placement import Packing, Problem


def check(problem: Problem, packing: Packing) -> None:
    """Room, stock, hosts, and every replica whole: as many shards as its split, on different chips of one type."""
    count = Counter(used.chip for used in packing.used)
    for t, chip in enumerate(problem.chips):
        assert chip.max is None or count[t] <= chip.max
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, used in enumerate(packing.used):
        assert used.shards
        assert used.gb <= problem.chips[used.chip].cap * (1 - problem.headroom) * (1 + 1e-6)
        for shard in used.shards:
            places[shard.item, shard.replica].append(at)
            assert shard.tp in problem.items[shard.item].allowed_tp
            assert shard.gb == problem.items[shard.item].shard_gb(shard.tp, problem.chips[used.chip].type)
    for (item, replica), chips in places.items():
        splits = {s.tp for at in chips for s in packing.used[at].shards if (s.item, s.replica) == (item, replica)}
        assert splits == {len(chips)} == {len(set(chips))}, "split as it says, over different chips"
        assert len({packing.used[at].chip for at in chips}) == 1, "of one type"
    left = packing.left_out or (0,) * len(problem.items)
    for i, item in enumerate(problem.items):
        assert sorted(r for j, r in places if j == i) == list(range(item.replicas - left[i]))
    cost = sum(count[t] * chip.cost for t, chip in enumerate(problem.chips))
    assert abs(cost - packing.cost) < 1e-6
    if problem.spread:
        _check_hosts(problem, packing)


def _check_hosts(problem: Problem, packing: Packing) -> None:
    of_host: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, used in enumerate(packing.used):
        of_host[used.chip, used.host].append(at)
    hosts: dict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
    for (t, host), chips in of_host.items():
        assert len(chips) <= (problem.chips[t].per_host or 0)
        for at in chips:
            for shard in packing.used[at].shards:
                hosts[shard.item, shard.replica].add((t, host))
    assert all(len(found) == 1 for found in hosts.values()), "a replica's chips are in one host"
    taken = [(item, next(iter(found))) for (item, _), found in hosts.items()]
    assert len(taken) == len(set(taken)), "a host has one replica of a model"
