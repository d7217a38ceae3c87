"""How requests are grouped, and spread over replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from engine.scenario.errors import Problem, show
from engine.scenario.fields import HOUR, MAX_TOKENS, MINUTE, Section, param, section


def _pool(what: str) -> Any:
    return param(
        1,
        label=f"Replicas that {what}",
        unit="replicas",
        low=1,
        high=4096,
        step=1,
        usual=(1, 32),
        help=f"How many replicas only {what}.",
        why="the smallest such fleet",
    )


class Disaggregated(Section):
    """Two pools of replicas, one for prompts, one for answers, and the network between them."""

    prefill_replicas: int = _pool("read prompts")
    decode_replicas: int = _pool("write answers")
    transfer_gbps: float = param(
        400.0,
        label="Link between the pools",
        unit="Gbit/s",
        low=1e-3,
        high=1e6,
        log=True,
        usual=(10.0, 3200.0),
        help="Bandwidth at which a prompt's KV travels.",
        why="one port of a current cluster network",
    )
    transfer_latency_s: float = param(
        0.005,
        label="Latency between the pools",
        unit="s",
        low=0.0,
        high=MINUTE,
        step=0.001,
        usual=(0.0, 0.1),
        help="Added to every transfer.",
        why="a few milliseconds for the handshake",
    )


class Batching(Section):
    """How a replica chooses the work of a step."""

    policy: Literal["chunked", "prefill_first", "static", "disaggregated"] = param(
        "chunked",
        label="Grouping",
        flag="--enable-chunked-prefill",
        choices={
            "chunked": "prompts are read in chunks between answers (vLLM's default)",
            "prefill_first": "waiting prompts go first, answers pause",
            "static": "a group starts and ends together",
            "disaggregated": "prompts and answers on separate replicas",
        },
        help="What shares a step.",
        why="vLLM's default",
    )
    max_num_seqs: int = param(
        256,
        label="Seats",
        unit="requests",
        low=1,
        high=65_536,
        log=True,
        usual=(1, 1024),
        flag="--max-num-seqs",
        help="The most requests (sequences) that a replica works on at once: a ceiling, not a promise.",
        why="a usual vLLM setting",
    )
    max_num_batched_tokens: int = param(
        8192,
        label="Token budget of a step",
        unit="tokens",
        low=1,
        high=1_048_576,
        log=True,
        usual=(256, 32_768),
        flag="--max-num-batched-tokens",
        help="The most tokens a step works on, at least as many as seats. Smaller: shorter pauses, later first words.",
        why="a usual vLLM setting on large accelerators",
    )
    max_model_len: int | None = param(
        None,
        label="Longest conversation",
        unit="tokens",
        low=1,
        high=MAX_TOKENS,
        log=True,
        usual=(1024, 131_072),
        flag="--max-model-len",
        null="the model's own limit; none with a linear profile",
        help="Prompt and answer together; longer requests are refused.",
        why="what the model can do",
    )
    gpu_memory_utilization: float = param(
        0.92,
        label="Memory share",
        unit="share of device memory",
        low=0.01,
        high=1.0,
        step=0.01,
        usual=(0.5, 0.98),
        flag="--gpu-memory-utilization",
        help="Share of the device's whole memory that the engine may use. Other engines' flags mean other shares.",
        why="about vLLM's own default, which is 0.9 or 0.92 by version",
    )
    kv_policy: Literal["on_demand", "reserve"] = param(
        "on_demand",
        label="Memory for a conversation",
        choices={
            "on_demand": "taken as it grows; the last admitted gives way when it runs out (vLLM)",
            "reserve": "set aside at the start for the whole answer",
        },
        help="When a conversation's KV is taken. Replicas that only write answers always reserve.",
        why="what vLLM does",
    )
    kv_capacity_tokens: int | None = param(
        None,
        label="KV capacity",
        unit="tokens",
        low=1,
        high=1_000_000_000_000,
        log=True,
        usual=(1_000, 10_000_000),
        null="computed from the memory left; unlimited with a linear profile",
        help="How many tokens of context a replica can hold.",
        why="computed from model and accelerator",
    )
    reserve_output_tokens: int | None = param(
        None,
        label="Longest answer reserved",
        unit="tokens",
        low=1,
        high=MAX_TOKENS,
        log=True,
        usual=(16, 8192),
        null="the answer's true length",
        help="Memory is set aside for this many answer tokens, and answers are cut there.",
        why="the simulation knows how long an answer gets",
    )
    watermark: float = param(
        0.0,
        label="Memory kept free",
        unit="share of KV capacity",
        low=0.0,
        high=0.99,
        step=0.01,
        usual=(0.0, 0.5),
        help="New requests are admitted only while this share stays free; kv_policy on_demand only.",
        why="vLLM V1 keeps none",
    )
    batch_wait_s: float = param(
        0.0,
        label="Wait for company",
        unit="s",
        low=0.0,
        high=HOUR,
        step=0.01,
        usual=(0.0, 5.0),
        help="A static group that isn't full starts this long after its earliest arrival.",
        why="nobody waits for company",
    )
    disaggregated: Disaggregated = section(
        Disaggregated(), label="Separate pools", help="Settings of policy disaggregated.", why="one replica each"
    )

    def rules(self) -> Iterator[Problem]:
        if self.max_num_batched_tokens < self.max_num_seqs:
            yield Problem(
                "max_num_batched_tokens",
                show(self.max_num_batched_tokens),
                f"is below max_num_seqs ({self.max_num_seqs}): not all running could get a token, and vLLM refuses it",
                f"give at least {self.max_num_seqs}, or a smaller max_num_seqs",
                (self.max_num_seqs,),
            )
        if self.watermark > 0.0 and self.kv_policy != "on_demand":
            yield Problem(
                "watermark",
                show(self.watermark),
                f"has no effect with kv_policy {self.kv_policy}",
                "leave it at 0, or use kv_policy on_demand",
                (0,),
            )


class Routing(Section):
    """How the router chooses a replica."""

    policy: Literal["random", "round_robin", "least_outstanding", "power_of_two", "least_kv"] = param(
        "round_robin",
        label="Routing",
        choices={
            "random": "any replica",
            "round_robin": "each in turn",
            "least_outstanding": "the one with the fewest requests",
            "power_of_two": "the better of two drawn at random",
            "least_kv": "the one with the most free memory",
        },
        help="Which replica a request goes to.",
        why="the usual default of load balancers",
    )
    report_interval_s: float = param(
        0.1,
        label="Age of reports",
        unit="s",
        low=0.0,
        high=HOUR,
        step=0.1,
        usual=(0.0, 30.0),
        help="How often replicas tell the router their load; 0 is live.",
        why="a fast metrics endpoint",
    )
    count_own_sends: bool = param(
        True,
        label="Counts its own",
        help="Whether the router adds what it has sent itself since the last report.",
        why="without it, the router sends everybody to the same replica between reports",
    )
    ties: Literal["lowest", "rotate"] = param(
        "lowest",
        label="Ties",
        choices={"lowest": "lowest index", "rotate": "in turn"},
        help="Which of equally loaded replicas is taken.",
        why="simple and reproducible",
    )


class Fleet(Section):
    """How many replicas, and how requests reach them."""

    replicas: int = param(
        2,
        label="Replicas",
        unit="replicas",
        low=1,
        high=4096,
        step=1,
        usual=(1, 64),
        flag="--data-parallel-size",
        help="Identical copies of the model, each with its own queue; policy disaggregated has its own two numbers.",
        why="two, so that one may fail",
    )
    routing: Routing = section(Routing(), label="Router", help="How a replica is chosen.", why="each in turn")
