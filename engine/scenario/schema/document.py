"""The whole document, and the rules that concern several of its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from engine.scenario import availability
from engine.scenario.errors import Problem, show
from engine.scenario.fields import Section, param, section
from engine.scenario.schema.admission import Admission
from engine.scenario.schema.autoscaler import Autoscaler
from engine.scenario.schema.machine import Analytic, Hardware, Model, Parallelism, Performance
from engine.scenario.schema.promises import MOST_OBJECTIVES, Objective, Run
from engine.scenario.schema.serving import Batching, Fleet
from engine.scenario.schema.text import Text
from engine.scenario.schema.traffic import Traffic

SCHEMA = 1
MAX_REQUESTS = 20_000_000  # first attempts, all seeds together
MAX_BURSTS = 5_000_000  # of process mmpp, all seeds together


class Document(Section):
    """Everything that a run depends on, as the document writes it."""

    schema_number: int = param(
        SCHEMA,
        alias="schema",
        label="Schema",
        unit="version",
        low=SCHEMA,
        high=SCHEMA,
        help="Version of the document; newer ones are refused.",
        why="the present one",
    )
    name: Text = param(
        "", label="Name", longest=120, help="What you call this scenario; it changes nothing else.", why="unnamed"
    )
    traffic: Traffic = section(
        Traffic(), label="Traffic", help="Who arrives, when, with what.", why="a quiet chat service"
    )
    model: Model = section(Model(), label="Model", help="What is served.", why="a well-known open model")
    hardware: Hardware = section(
        Hardware(), label="Hardware", help="What it runs on.", why="the most measured accelerator"
    )
    parallelism: Parallelism = section(
        Parallelism(),
        label="Parallelism",
        help="How one copy is spread over accelerators.",
        why="four, sharing every layer",
    )
    performance: Performance = section(
        Analytic(), label="Step time", help="Where a step's duration comes from.", why="no measurement needed"
    )
    batching: Batching = section(
        Batching(), label="Batching", help="How a step's work is chosen.", why="vLLM's defaults"
    )
    fleet: Fleet = section(Fleet(), label="Fleet", help="How many replicas, and the router.", why="two, in turn")
    admission: Admission = section(Admission(), label="Admission", help="Who is refused.", why="nobody, as in vLLM")
    autoscaler: Autoscaler = section(Autoscaler(), label="Autoscaler", help="When replicas are added.", why="off")
    slo: tuple[Objective, ...] = section(
        (Objective(),),
        label="Promises",
        longest=MOST_OBJECTIVES,
        help="What is promised.",
        why="the first word in time",
    )
    run: Run = section(Run(), label="Run", help="How long and how often is simulated.", why="a quarter of an hour")

    def rules(self) -> Iterator[Problem]:
        yield from self._length_rules()
        for name, times in Counter(objective.name for objective in self.slo).items():
            if times > 1:
                yield Problem(
                    "slo", show(name), f"is the name of {times} promises", "give every promise a name of its own"
                )
        yield from availability.problems(self)

    def _length_rules(self) -> Iterator[Problem]:
        horizon, traffic = self.run.horizon_s, self.traffic
        if horizon is None:
            if traffic.process != "trace":
                yield Problem(
                    "run.horizon_s",
                    "null",
                    f"is only possible with a trace, and process is {traffic.process}",
                    "give the seconds to simulate",
                )
            elif traffic.growth is not None:
                yield Problem(
                    "run.horizon_s",
                    "null",
                    "leaves open when traffic.growth is complete",
                    "give the seconds to simulate",
                )
        elif traffic.process not in ("trace", "closed"):
            per_rps = traffic.shape.mean_factor(horizon) * horizon * self.run.seeds
            if traffic.rate_rps * per_rps > MAX_REQUESTS:
                yield Problem(
                    "traffic.rate_rps",
                    show(traffic.rate_rps),
                    f"brings about {traffic.rate_rps * per_rps:,.0f} requests in {self.run.seeds:,} seeds of "
                    f"{horizon:,g} s, more than {MAX_REQUESTS:,}",
                    "lower traffic.rate_rps, run.horizon_s or run.seeds",
                    (float(f"{MAX_REQUESTS / per_rps * 0.999999:.6g}"),),
                )
            yield from self._burst_rules(horizon)

    def _burst_rules(self, horizon_s: float) -> Iterator[Problem]:
        mmpp = self.traffic.mmpp
        seconds = mmpp.burst_fraction * horizon_s * self.run.seeds
        if self.traffic.process == "mmpp" and seconds / mmpp.mean_burst_s > MAX_BURSTS:
            yield Problem(
                "traffic.mmpp.mean_burst_s",
                show(mmpp.mean_burst_s),
                f"makes about {seconds / mmpp.mean_burst_s:,.0f} bursts in {self.run.seeds:,} seeds of {horizon_s:,g} "
                f"s, more than {MAX_BURSTS:,}",
                "give longer bursts, or use process poisson: so short ones can't be told from it",
                (float(f"{seconds / MAX_BURSTS * 1.000001:.6g}"),),
            )
