"""What must hold of a pipeline's steps, read from them alone."""

from __future__ import annotations

from itertools import pairwise

from tests.reference.model import Setup, Step

ALMOST = 1e-9  # a pass is added up stage by stage


def check_passes(setup: Setup, steps: list[Step], horizon: float) -> None:
    """AssertionError names the first step that breaks a law. `steps` are those of one replica, in order of start."""
    most, share = setup.max_num_seqs, 1 / setup.stages
    for before, after in pairwise(steps):
        assert after.start >= before.start + before.alone_s * share - ALMOST, f"{after} enters behind {before}"
        assert after.end >= before.end + after.alone_s * share - ALMOST, f"{after} overtakes {before}"
    for index in range(setup.stages):
        mine = [step for step in steps if step.lane == index]
        assert all(before.end <= after.start for before, after in pairwise(mine))
    for number, step in enumerate(steps):
        assert step.start < horizon, step
        assert 0 < step.R == step.running <= -(-most // setup.stages), step
        assert step.R <= step.T <= setup.max_num_batched_tokens, step
        assert step.n_decode <= step.R, step
        assert step.end >= step.start + step.alone_s - ALMOST, step
        base = setup.base(step.T) if callable(setup.base) else setup.base[step.T]
        alone = base + setup.seq_s * step.R + setup.kv_token_s * step.C + setup.prefill_pair_s * step.A
        assert step.alone_s == alone, step
        assert (step.limited_by == "none") == (step.waiting_after_admission == 0), step
        others = [other for other in steps[:number] if other.end > step.start]
        assert len({step.lane, *(other.lane for other in others)}) == 1 + len(others), step
        assert step.R + sum(other.R for other in others) <= most, step
        if setup.kv_capacity_tokens is not None:
            held = sum(other.kv_held_at_start + other.T for other in [*others, step])
            assert held <= setup.kv_capacity_tokens, step
