"""Named streams: a function of seed and name, unrelated to each other."""

from __future__ import annotations

import struct
from hashlib import blake2b

import numpy as np
import pytest
from scipy import stats

from engine.traffic import stream, streams


def test_a_stream_depends_on_seed_and_name_alone() -> None:
    first = stream(7, "prompt").random(5)
    stream(7, "output").random(100)
    stream(8, "prompt").random(100)
    assert np.array_equal(stream(7, "prompt").random(5), first)


@pytest.mark.parametrize(
    ("seed", "name", "expected"),
    [
        (1, "arrivals", [0.7692433130272681, 0.246712785547187, 0.4075603994146416]),
        (1, "prompt", [0.9986083934765144, 0.8081100469962089, 0.012056945477350811]),
        (2, "arrivals", [0.20769046554874226, 0.48422185520570993, 0.8272914765719255]),
    ],
)
def test_streams_stay_what_they_are(seed: int, name: str, expected: list[float]) -> None:
    """A change here changes every figure of every scenario ever shared."""
    assert stream(seed, name).random(3).tolist() == expected


def test_a_stream_is_pcg64_dxsm_with_the_hash_as_its_whole_state() -> None:
    """The generator written out: O'Neill's PCG, seeded with its 128-bit multiplier, run with the 64-bit one of DXSM."""
    seeding, multiplier = 0x2360ED051FC65DA44385DF649FCCF645, 0xDA942042E4DD58B5
    low64, low128 = 2**64 - 1, 2**128 - 1
    words = struct.unpack("<4Q", blake2b(b"5/router", digest_size=32).digest())
    increment = (((words[2] << 64 | words[3]) << 1) | 1) & low128
    state = ((increment + (words[0] << 64 | words[1])) * seeding + increment) & low128
    uniforms = []
    for _ in range(3):
        high, low = state >> 64, state & low64 | 1
        high ^= high >> 32
        high = high * multiplier & low64
        high ^= high >> 48
        uniforms.append((high * low & low64) >> 11)
        state = (state * multiplier + increment) & low128
    assert (stream(5, "router").random(3) * 2.0**53).tolist() == uniforms


def test_no_two_streams_are_alike() -> None:
    keys = {(seed, name) for seed in (*range(200), 1000, 10**12) for name in ("arrivals", "prompt", "1/prompt")}
    assert len({stream(seed, name).random() for seed, name in keys}) == len(keys)


def test_neighbouring_seeds_and_names_are_uncorrelated() -> None:
    names = ("arrivals", "class", "prompt", "output")
    numbers = np.array([stream(seed, name).random(4096) for seed in range(16) for name in names])
    correlation = np.corrcoef(numbers)[np.triu_indices(len(numbers), 1)] * np.sqrt(4096)
    # 2,016 correlations, each about standard normal: the largest is below 5 (but for one time in 1,000).
    assert np.abs(correlation).max() < 5
    assert correlation.std() == pytest.approx(1, abs=0.1)


def test_first_numbers_over_seeds_are_uniform() -> None:
    first = [stream(seed, "arrivals").random() for seed in range(4096)]
    assert stats.kstest(first, "uniform").pvalue > 0.01


def test_every_name_in_use_is_in_the_table() -> None:
    names = [value for key, value in vars(streams).items() if key.isupper() and isinstance(value, str)]
    assert len(names) >= 5
    for name in names:
        assert f"| `{name}` |" in (streams.__doc__ or "")


def test_the_words_behind_a_stream_are_used_whole() -> None:
    words = np.arange(4, dtype=np.uint64)
    with pytest.raises(ValueError, match="8 words of uint64 asked for"):
        streams._Words(words).generate_state(8, np.uint64)
