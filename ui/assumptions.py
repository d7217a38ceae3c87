"""What a scenario assumes, what it runs on and costs, and how the figures came about: in words."""

from __future__ import annotations

from engine.machine import accelerators_of
from engine.outcome.story import Story
from engine.scenario import Admission, Batching, Client, Scenario, describe
from ui import confidence
from ui.words import NBSP, count, digits, money, percent, plain, seconds


def assumptions(scenario: Scenario) -> list[str]:
    """Four lines: who arrives, how they are served, how sure step times are, what isn't modelled."""
    b = scenario.batching
    return [
        f"**Traffic:** {_who(scenario)} arrive {_arrivals(scenario)}. {_lengths(scenario)}"
        f"{_callers(scenario.traffic.client)}",
        f"**Serving:** {_word('batching.policy', b.policy)}{_pools(b)}; a step has up to "
        f"{b.max_num_batched_tokens:,} tokens of up to {b.max_num_seqs:,} conversations; the router takes "
        f"{_word('fleet.routing.policy', scenario.fleet.routing.policy)}; {_refusing(scenario.admission)}.",
        confidence.assumption(scenario),
        f"**Not modelled:** {_network(scenario)}, failures of machines, what the answers are worth.",
    ]


def _network(scenario: Scenario) -> str:
    if all(objective.measured_at != "client" for objective in scenario.slo):
        return "the network"
    return f"the network but for its round trip of {seconds(scenario.traffic.client.network_rtt_s)} at the client"


def _pools(b: Batching) -> str:
    """What is taken for granted about two pools."""
    if b.policy != "disaggregated":
        return ""
    pools = b.disaggregated
    reading, writing = (count(many, "replica") for many in (pools.prefill_replicas, pools.decode_replicas))
    link = f"{digits(pools.transfer_gbps)}{NBSP}Gbit/s and {seconds(pools.transfer_latency_s)}"
    return (
        f" ({reading} for prompts, {writing} for answers; each prompt's KV travels alone, at {link}, and room for the "
        "whole answer is set aside)"
    )


def _word(path: str, value: str) -> str:
    """What the scenario's description calls one of a setting's choices."""
    return next(choice.word for choice in describe(path).choices if choice.value == value)


def _who(scenario: Scenario) -> str:
    """Requests, or the actions that they belong to."""
    calls = scenario.traffic.client.fan_out
    return "requests" if calls == 1 else f"actions of {calls:,} requests each"


def _arrivals(scenario: Scenario) -> str:
    traffic = scenario.traffic
    if traffic.process == "gamma":
        return f"in clumps (gaps vary {digits(traffic.cv)} times as much as their mean)"
    if traffic.process == "closed":
        return f"from {count(traffic.closed.users, 'user')}, each waiting for an answer"
    return _word("traffic.process", traffic.process)


def _callers(client: Client) -> str:
    limits = [limit for limit in (client.timeout_s, client.ttft_timeout_s) if limit is not None]
    patience = f"give up after {seconds(min(limits))}" if limits else "wait as long as it takes"
    again = f"ask again up to {count(client.max_retries, 'time')}" if client.max_retries else "don't ask again"
    return f"Callers {patience}, and {again}."


def _refusing(admission: Admission) -> str:
    if admission == Admission():
        return "nobody is refused"
    limit = admission.max_outstanding
    return "some are refused, by the limits set" if limit is None else f"a replica with {limit:,} requests refuses more"


def _lengths(scenario: Scenario) -> str:
    kinds = scenario.traffic.classes
    if scenario.traffic.process == "trace":
        return ""
    if len(kinds) > 1:
        return f"There are {len(kinds)} kinds of them: {', '.join(plain(kind.name) for kind in kinds)}. "
    prompt, answer = (getattr(kinds[0], what) for what in ("prompt_tokens", "output_tokens"))
    return f"Prompts have {_length(prompt)}, answers {_length(answer)}. "


def _length(length: object) -> str:
    for name, words in (("mean", "{:,.0f} tokens on average"), ("value", "{:,} tokens")):
        if hasattr(length, name):
            return words.format(getattr(length, name))
    return f"{length.low:,} to {length.high:,} tokens" if hasattr(length, "low") else "one of several lengths"


def machines(story: Story, scenario: Scenario) -> str:
    """What it runs on, what that costs, how busy it is."""
    chips, device = accelerators_of(scenario), plain(scenario.hardware.accelerator)
    low = high = scenario.replicas
    if story.relief is not None:
        low, high = story.relief.fewest_ready, story.relief.most_ready
    many = f"{low} to {count(high, 'replica')}" if low < high else count(high, "replica")
    on = f"{chips * low} to {chips * high}{NBSP}{device}" if low < high else count(chips * high, device, device)
    parts = [f"{many} of {plain(scenario.model.name)} on {on}"]
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
    parts.append(plain(confidence.status(scenario)))
    if run["warmup_s"]:
        parts.append(f"the first {seconds(run['warmup_s'])} (grey) aren't counted")
    return " · ".join(parts)
