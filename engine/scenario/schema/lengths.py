"""How long prompts and answers are: a distribution of tokens for each.

Every distribution exists twice, for prompts and for answers, because their defaults differ: whatever the
distribution, the default mean is that of the default class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag

from engine.scenario.errors import Problem, show
from engine.scenario.fields import MAX_TOKENS, Section, item, kind_of, param, tag

PROMPT_MEAN = 1155
ANSWER_MEAN = 211
MOST_VALUES = 10_000

_WHY_MEAN = "mean of a public chat trace (Azure, 2023)"
_TOKENS: dict[str, Any] = {"unit": "tokens", "low": 1, "high": MAX_TOKENS}


def _mean(default: int, what: str) -> Any:
    return param(
        float(default),
        label=f"Mean {what} length",
        usual=(8, 32_768),
        log=True,
        help=f"Average number of tokens of {what}s, before the shortest and longest allowed are applied.",
        why=_WHY_MEAN,
        **_TOKENS,
    )


def _value(default: int, what: str) -> Any:
    return param(
        default,
        label=f"{what.capitalize()} length",
        usual=(8, 32_768),
        log=True,
        help=f"Tokens of every {what}.",
        why=_WHY_MEAN,
        **_TOKENS,
    )


def _cv(default: float, what: str) -> Any:
    return param(
        default,
        label=f"Variation of {what} length",
        unit="standard deviations per mean",
        low=0.0,
        high=10.0,
        step=0.1,
        usual=(0.0, 3.0),
        help="Coefficient of variation: 0 makes all alike, 1 is as varied as public chat traces.",
        why="roughly that of public chat traces",
    )


def _end(default: int, what: str, which: str) -> Any:
    return param(
        default,
        label=f"{which.capitalize()} {what}",
        usual=(1, 32_768),
        log=True,
        help=f"The {which} length that can be drawn, included; all whole numbers between the two are equally likely.",
        why="keeps the mean of the default class",
        **_TOKENS,
    )


def _shortest() -> Any:
    return param(
        1,
        label="Shortest allowed",
        usual=(1, 32_768),
        log=True,
        help="A shorter draw counts as this many tokens.",
        why="a request has at least one token",
        **_TOKENS,
    )


def _longest() -> Any:
    return param(
        None,
        label="Longest allowed",
        usual=(1, 131_072),
        log=True,
        null="no limit",
        help="A longer draw counts as this many tokens.",
        why="nothing is cut unless asked for",
        **_TOKENS,
    )


class Constant(Section):
    """Always the same number of tokens."""

    dist: Literal["constant"] = tag("constant", "always the same")
    value: int = _value(PROMPT_MEAN, "prompt")
    min: int = _shortest()
    max: int | None = _longest()


class Lognormal(Section):
    """sigma^2 = ln(1 + cv^2), mu = ln(mean) - sigma^2 / 2; mean and cv are those before clipping."""

    dist: Literal["lognormal"] = tag("lognormal", "many short ones, a few very long")
    mean: float = _mean(PROMPT_MEAN, "prompt")
    cv: float = _cv(1.0, "prompt")
    min: int = _shortest()
    max: int | None = _longest()


class Uniform(Section):
    """Whole numbers from low to high, both included."""

    dist: Literal["uniform"] = tag("uniform", "anything between two ends, equally likely")
    low: int = _end(1, "prompt", "shortest")
    high: int = _end(2 * PROMPT_MEAN - 1, "prompt", "longest")
    min: int = _shortest()
    max: int | None = _longest()

    def rules(self) -> Iterator[Problem]:
        if self.low > self.high:
            yield Problem(
                "low", str(self.low), f"is above high ({self.high})", "give a low that is at most high", (self.high,)
            )


class Geometric(Section):
    """From 1, each further token with the same probability; the discrete exponential."""

    dist: Literal["geometric"] = tag("geometric", "may end after any token, equally likely")
    mean: float = _mean(PROMPT_MEAN, "prompt")
    min: int = _shortest()
    max: int | None = _longest()


_Weight = Annotated[
    float,
    item(label="Weight", help="How often this length is drawn, relative to others.", unit="weight", low=0.0, high=1e9),
]
_Tokens = Annotated[int, item(label="Length", help="A length that can be drawn.", **_TOKENS)]


class Empirical(Section):
    """`values` (tokens) drawn in proportion to `weights`."""

    dist: Literal["empirical"] = tag("empirical", "a table of lengths and how often each comes")
    values: tuple[_Tokens, ...] = param(
        (PROMPT_MEAN,),
        label="Lengths",
        shortest=1,
        longest=MOST_VALUES,
        help="The lengths that can be drawn, in tokens.",
        why=_WHY_MEAN,
    )
    weights: tuple[_Weight, ...] = param(
        (1.0,),
        label="How often each",
        shortest=1,
        longest=MOST_VALUES,
        help="One weight a length; only their ratios matter.",
        why="a single length needs a single weight",
    )
    min: int = _shortest()
    max: int | None = _longest()

    def rules(self) -> Iterator[Problem]:
        if len(self.weights) != len(self.values):
            yield Problem(
                "weights",
                "",
                f"has {len(self.weights)} entries where values has {len(self.values)}",
                "give one weight for each value",
            )
        elif not sum(self.weights) > 0:
            yield Problem("weights", "", "are all 0", "give at least one weight above 0")


class AnswerConstant(Constant):
    """`Constant`, with the default of answers."""

    value: int = _value(ANSWER_MEAN, "answer")


class AnswerLognormal(Lognormal):
    """`Lognormal`, with the defaults of answers."""

    mean: float = _mean(ANSWER_MEAN, "answer")
    cv: float = _cv(0.9, "answer")


class AnswerUniform(Uniform):
    """`Uniform`, with the defaults of answers."""

    low: int = _end(1, "answer", "shortest")
    high: int = _end(2 * ANSWER_MEAN - 1, "answer", "longest")


class AnswerGeometric(Geometric):
    """`Geometric`, with the default of answers."""

    mean: float = _mean(ANSWER_MEAN, "answer")


class AnswerEmpirical(Empirical):
    """`Empirical`, with the default of answers."""

    values: tuple[_Tokens, ...] = param(
        (ANSWER_MEAN,),
        label="Lengths",
        shortest=1,
        longest=MOST_VALUES,
        help="The lengths that can be drawn, in tokens.",
        why=_WHY_MEAN,
    )


Length = Lognormal | Constant | Uniform | Geometric | Empirical  # of prompts or of answers


def clip_problems(length: Length) -> Iterator[Problem]:
    """The rule that all distributions share: draws are clipped to [min, max], both included."""
    if length.max is not None and length.min > length.max:
        remedy = "give a min that is at most max"
        yield Problem("min", show(length.min), f"is above max ({length.max})", remedy, (length.max,))


_dist = Discriminator(kind_of("dist", "lognormal"))

PromptLength = Annotated[
    Annotated[Lognormal, Tag("lognormal")]
    | Annotated[Constant, Tag("constant")]
    | Annotated[Uniform, Tag("uniform")]
    | Annotated[Geometric, Tag("geometric")]
    | Annotated[Empirical, Tag("empirical")],
    _dist,
]
AnswerLength = Annotated[
    Annotated[AnswerLognormal, Tag("lognormal")]
    | Annotated[AnswerConstant, Tag("constant")]
    | Annotated[AnswerUniform, Tag("uniform")]
    | Annotated[AnswerGeometric, Tag("geometric")]
    | Annotated[AnswerEmpirical, Tag("empirical")],
    _dist,
]
