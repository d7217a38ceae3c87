"""How much context a scenario's requests typically have, which decides what sliding windows save."""

from __future__ import annotations

from engine.scenario import Constant, Empirical, Geometric, Lognormal, Scenario, Uniform


def typical_context(s: Scenario) -> float | None:
    """Mean context in tokens of a request half-way through its answer; None when a trace brings the lengths.

    Means are those of the distributions, cut to their clips; a mix weighs its classes by their requests.
    """
    lengths = typical_lengths(s)
    return None if lengths is None else lengths[0] + lengths[1] / 2


def typical_lengths(s: Scenario) -> tuple[float, float] | None:
    """Mean tokens of a prompt and of an answer; None when a trace brings the lengths."""
    if s.traffic.process == "trace":
        return None
    classes = s.traffic.classes
    total = sum(one.weight for one in classes)
    prompt = sum(one.weight / total * _mean(one.prompt_tokens) for one in classes)
    return prompt, sum(one.weight / total * _mean(one.output_tokens) for one in classes)


def _mean(length: Constant | Lognormal | Uniform | Geometric | Empirical) -> float:
    """Mean of a length distribution of the scenario, cut to its clip."""
    match length:
        case Constant():
            mean = float(length.value)
        case Uniform():
            mean = (length.low + length.high) / 2
        case Empirical():
            pairs = zip(length.values, length.weights, strict=True)
            mean = sum(value * weight for value, weight in pairs) / sum(length.weights)
        case Lognormal() | Geometric():
            mean = length.mean
    longest = mean if length.max is None else float(length.max)
    return max(float(length.min), min(mean, longest))
