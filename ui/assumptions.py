"""What a scenario assumes, what it runs on and costs, and how the figures came about: in words."""

from __future__ import annotations

from engine.machine import replica_evidence
from engine.outcome.story import Story
from engine.scenario import Analytic, Scenario
from ui.words import count, digits, money, percent, plain, seconds

_PROCESS = {
    "deterministic": "evenly, like clockwork",
    "poisson": "independently of each other (Poisson)",
    "trace": "as recorded in the trace",
}
_STATUS = {
    "measured": "fitted on published measurements of this accelerator",
    "alike": "fitted on published measurements of its family",
    "judgement": "by judgement, for lack of measurements",
}


def assumptions(scenario: Scenario) -> list[str]:
    """Three lines: who arrives, how they are served, what isn't modelled."""
    t, b = scenario.traffic, scenario.batching
    how = _PROCESS.get(t.process, f"in clumps (gaps vary {digits(t.cv)} times as much as their mean)")
    classes = "" if t.process == "trace" else f" {_lengths(scenario)}"
    limit = scenario.admission.max_outstanding
    refused = "nobody is refused" if limit is None else f"a replica with {count(limit, 'request')} refuses the next"
    return [
        f"**Traffic:** requests arrive {how}.{classes} Callers wait as long as it takes, and don't ask again.",
        f"**Serving:** as vLLM does: prompts are read in chunks of up to {b.max_num_batched_tokens:,} tokens a step "
        f"between other people's words, up to {b.max_num_seqs:,} conversations share a step, "
        f"requests go to the replicas {_ROUTING[scenario.fleet.routing.policy]}, {refused}.",
        "**Not modelled:** the network, failures of machines, what the answers are worth.",
    ]


_ROUTING = {"round_robin": "in turn", "random": "at random"}


def _lengths(scenario: Scenario) -> str:
    kinds = scenario.traffic.classes
    if len(kinds) > 1:
        return f"There are {len(kinds)} kinds of them: {', '.join(plain(kind.name) for kind in kinds)}."
    prompt, answer = (getattr(kinds[0], what) for what in ("prompt_tokens", "output_tokens"))
    return f"Prompts have {_length(prompt)}, answers {_length(answer)}."


def _length(length: object) -> str:
    for name, words in (("mean", "{:,.0f} tokens on average"), ("value", "{:,} tokens")):
        if hasattr(length, name):
            return words.format(getattr(length, name))
    return f"{length.low:,} to {length.high:,} tokens" if hasattr(length, "low") else "one of several lengths"


def machines(story: Story, scenario: Scenario) -> str:
    """What it runs on, what that costs, how busy it is."""
    chips, replicas = scenario.parallelism.tp, scenario.fleet.replicas
    device = plain(scenario.hardware.accelerator)
    what = f"{count(replicas, 'replica')} of {plain(scenario.model.name)}"
    parts = [f"{what} on {count(chips * replicas, device, device)}"]
    cost = story.summary["cost"]
    if cost["per_hour"] is not None:
        each = cost["per_million_output_tokens"]
        parts.append(f"{money(cost['per_hour'])} an hour")
        if each is not None:
            parts.append(f"{money(each)} per million output tokens")
    if cost["spare_share"] is not None:
        parts.append(f"{percent(cost['spare_share'], 2)} of the capacity is spare on average")
    return " · ".join(parts).replace("$", "\\$")


def footer(story: Story, scenario: Scenario) -> str:
    """How the figures came about."""
    run = story.summary["run"]
    parts = [
        f"{count(run['seeds'], 'run')} of {seconds(run['horizon_s'])}, "
        f"{count(run['simulated_requests'], 'request')} simulated in {seconds(run['wall_s'])}",
    ]
    if isinstance(scenario.performance, Analytic):
        found = replica_evidence(scenario)
        if found is not None:
            figures = f"step times from the data sheet of {plain(scenario.hardware.accelerator)}"
            parts.append(f"{figures}, constants {_STATUS[found.status]}")
    else:
        parts.append("step times from a measured profile")
    return " · ".join(parts)
