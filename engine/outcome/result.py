"""One run's result: the summary, and tables of requests and of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from engine.machine import ReplicaModel
from engine.scenario import Objective, Scenario
from engine.serving import COMPLETED, REASONS, REJECT_REASONS, REJECTED, STATES, TIMED_OUT, FleetRun, StepLog

from .cost import Cost, cost
from .gaps import largest_gaps
from .lag import Episode, episodes
from .meter import Meter
from .objectives import Attainment, Scored, attain, score
from .places import before_s
from .pools import POOLS, Pool
from .replicas import Replicas
from .rows import rows
from .spread import Floats, Spread, number, spread
from .timeline import timeline
from .usage import Usage

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Result:
    """What a scenario's run says. Everything is computed when first asked for.

    Latencies are those of completed requests that arrived in [warmup_s, horizon); ``summary()["requests"]`` says how
    many others there were.
    """

    scenario: Scenario
    model: ReplicaModel
    run: FleetRun
    meter: Meter
    steps: Callable[[], StepLog]
    """All steps of the run, made again if they weren't kept."""
    capacity_rps: float | None
    """Completed requests per second of one saturated replica with this traffic's mix."""
    notes: tuple[str, ...]
    wall_s: float
    first_seed: int
    pools_rps: tuple[float, float] | None = None
    """With two pools, whose capacity is the smaller one's: requests per second that a saturated replica of the first
    reads, and that one of the second writes (infinity where answers are one token)."""

    @cached_property
    def log(self) -> StepLog:
        """Every step of the run; only the tables and the largest gaps need it."""
        return self.steps()

    # -- who counts ----------------------------------------------------------------------------------------------------

    @cached_property
    def warmup_s(self) -> float:
        """Start of the window that the summary covers, seconds."""
        return float(self.scenario.run.warmup_s)

    @cached_property
    def counted(self) -> Bools:
        """(attempts,): arrived in the window."""
        counted: Bools = self.run.attempts.arrival_s >= self.warmup_s
        return counted

    @cached_property
    def observed(self) -> Bools:
        """(attempts,): counted and completed, so in the latencies."""
        observed: Bools = self.counted & (self.run.attempts.state == COMPLETED)
        return observed

    @cached_property
    def observed_start(self) -> NDArray[np.int64]:
        """(seeds + 1,): where each seed's observed attempts begin among all observed ones."""
        total = np.concatenate([[0], np.cumsum(self.observed)])
        return np.asarray(total[self.run.attempts.seed_start], np.int64)

    # -- metrics -------------------------------------------------------------------------------------------------------

    @cached_property
    def ttft_s(self) -> Floats:
        """(attempts,): time to the first token, front end included; ``nan`` where there was none."""
        a = self.run.attempts
        return a.first_token_s - a.arrival_s + self.model.frontend_s

    @cached_property
    def e2e_s(self) -> Floats:
        """(attempts,): time to the last token, front end included; ``nan`` unless completed."""
        a = self.run.attempts
        return a.finish_s - a.arrival_s + self.model.frontend_s

    @cached_property
    def queue_s(self) -> Floats:
        """(attempts,): time until the first step that worked on it; ``nan`` where there was none."""
        return self.run.attempts.scheduled_s - self.run.attempts.arrival_s

    @cached_property
    def tpot_s(self) -> Floats:
        """(attempts,): mean time per output token after the first; ``nan`` unless completed with two tokens or more."""
        a = self.run.attempts
        with np.errstate(invalid="ignore", divide="ignore"):
            each = (a.finish_s - a.first_token_s) / (a.output_tokens - 1)
        return np.where(a.output_tokens > 1, each, np.nan)

    @cached_property
    def max_itl_s(self) -> Floats:
        """(attempts,): the largest gap between two tokens that it got; ``nan`` with fewer than two."""
        return largest_gaps(self.run, self.log)

    def metric(self, name: str) -> Floats:
        """(attempts,): an objective's metric, seconds; ``nan`` where not known or not defined."""
        if name == "max_itl":
            return np.where(self.run.attempts.state == COMPLETED, self.max_itl_s, np.nan)
        return {"ttft": self.ttft_s, "e2e": self.e2e_s, "queue": self.queue_s, "tpot": self.tpot_s}[name]

    def measured(self, objective: Objective) -> Floats:
        """(attempts,): an objective's metric as its place measures it, seconds; ``nan`` where not known or defined."""
        rtt = self.scenario.traffic.client.network_rtt_s
        return self.metric(objective.metric) + before_s(objective, self.run.attempts, rtt)

    @cached_property
    def latency(self) -> dict[str, Spread]:
        """Figures of ``ttft``, ``tpot``, ``itl``, ``e2e`` and ``queue``, seconds."""
        return {name: self._spread(name) for name in ("ttft", "tpot", "itl", "e2e", "queue")}

    def _spread(self, name: str) -> Spread:
        if name == "itl":
            return self.meter.itl(self.run)
        values, start = self.metric(name)[self.observed], self.observed_start
        if name == "tpot":
            defined = ~np.isnan(values)
            start = np.concatenate([[0], np.cumsum(defined)])[start]
            values = values[defined]
        return spread(values, start)

    # -- promises ------------------------------------------------------------------------------------------------------

    def scored(self, objective: Objective) -> Scored:
        """Every attempt judged by one objective; at the client every request."""
        return score(objective, self.run.attempts, self.measured(objective), self.run.horizon_s)

    @cached_property
    def attainments(self) -> tuple[Attainment, ...]:
        """The scenario's objectives, in its order."""
        start = self.run.attempts.seed_start
        return tuple(attain(o, self.scored(o), self.counted, start) for o in self.scenario.slo)

    @cached_property
    def kept(self) -> Bools:
        """(attempts,): completed and kept every promise; one that has no meaning for a request isn't broken by it."""
        kept: Bools = self.run.attempts.state == COMPLETED
        for objective in self.scenario.slo:
            metric = self.measured(objective)
            kept = kept & (np.isnan(metric) | (metric <= objective.threshold_s))
        return kept

    # -- the fleet -----------------------------------------------------------------------------------------------------

    @cached_property
    def usage(self) -> Usage:
        """Busy time, batch and limits."""
        return self.meter.usage(self.run)

    @cached_property
    def pools(self) -> tuple[Pool, ...] | None:
        """The pool that reads prompts and the one that writes answers; ``None`` where all replicas do both."""
        if self.run.attempts.handover is None:
            return None
        rates = self.pools_rps or (None, None)
        usages = self.meter.by_pool(self.run)
        return tuple(Pool(*facts) for facts in zip(self.meter.pools, rates, usages, strict=True))

    @cached_property
    def throughput(self) -> dict[str, float | None]:
        """Requests completed, tokens made and goodput, per second of the window."""
        window = float(self.usage.window_s.sum())
        if window <= 0:
            return {"requests_per_s": None, "output_tokens_per_s": None, "goodput_per_s": None}
        a = self.run.attempts
        finished = (a.state == COMPLETED) & self._in_window(a.finish_s)
        kept = finished & self.kept
        return {
            "requests_per_s": float(finished.sum()) / window,
            "output_tokens_per_s": float(self.tokens_made.sum()) / window,
            "goodput_per_s": float(kept.sum()) / window,
        }

    @cached_property
    def tokens_made(self) -> Floats:
        """(seeds,): output tokens that came in [warmup_s, horizon): first tokens, and one at the end of every gap."""
        a = self.run.attempts
        first = np.bincount(a.seed_index[self._in_window(a.first_token_s)], minlength=a.seeds)
        return first + self.latency["itl"].counts - self.meter.tokens_at_end(self.run)

    def _in_window(self, time_s: Floats) -> Bools:
        """Which times are in [warmup_s, horizon); without a horizon the last event's instant is included."""
        end = self.scenario.run.horizon_s
        return np.asarray((time_s >= self.warmup_s) & (time_s < (np.inf if end is None else end)))

    @cached_property
    def wasted(self) -> dict[str, float]:
        """Work done for attempts of the window that timed out: tokens, and their share of the steps' seconds."""
        a = self.run.attempts
        late = self.counted & (a.state == TIMED_OUT)
        return {"tokens": int(a.spent_tokens[late].sum()), "busy_s": float(a.spent_s[late].sum())}

    @cached_property
    def cost(self) -> Cost:
        """Money: per hour, per million output tokens, and the share that pays for spare capacity."""
        window = float(self.usage.window_s.sum())
        offered = float(self.counted.sum()) / window if window > 0 else None
        end, made = self.run.horizon_s, self.throughput["output_tokens_per_s"]
        paid, ready = (mean(self.warmup_s, end) for mean in (self.replicas.mean_paid, self.replicas.mean_ready))
        return cost(self.scenario, self.model, made, offered, self.capacity_rps, paid, ready)

    @cached_property
    def replicas(self) -> Replicas:
        """When replicas were starting, ready, working and paid for."""
        return Replicas.of(self.run)

    @cached_property
    def episodes(self) -> tuple[Episode, ...] | None:
        """Demand above the ready replicas' capacity, and when help came; ``None`` without an autoscaler.

        Whom they harmed is judged by the first objective, without any by who got no answer.
        """
        if self.run.lives is None or not self.capacity_rps:
            return None
        a = self.run.attempts
        bad = a.state != COMPLETED
        if self.scenario.slo:
            scored = self.scored(self.scenario.slo[0])
            bad = scored.valid & ~scored.good
        return episodes(self.run, self.replicas, self.capacity_rps, bad)

    # -- tables --------------------------------------------------------------------------------------------------------

    def summary(self) -> dict[str, object]:
        """The stable JSON summary; ``None`` where something is absent, never ``nan``."""
        a, u, run = self.run.attempts, self.usage, self.scenario.run
        states = {name: int((a.state[self.counted] == code).sum()) for code, name in enumerate(STATES)}
        offered, first = int(self.counted.sum()), int((self.counted & (a.attempt == 0)).sum())
        reasons = np.bincount(a.reason[self.counted & (a.state == REJECTED)], minlength=len(REASONS))
        end = run.horizon_s if run.horizon_s is not None else float(u.window_s.mean()) + self.warmup_s
        apart = {} if self.pools is None else {"pools": dict(zip(POOLS, map(Pool.as_summary, self.pools), strict=True))}
        return {
            "requests": {"offered": offered, "first_attempts": first, **states, "retries": offered - first},
            "rejected_by_reason": {name: int(reasons[REASONS.index(name)]) for name in REJECT_REASONS},
            "preemptions": int(a.preemptions[self.counted].sum()),
            "latency_s": {name: figures.as_summary() for name, figures in self.latency.items()},
            "slo": [attained.as_summary() for attained in self.attainments],
            "throughput": self.throughput,
            "replica": {
                "capacity_rps": self.capacity_rps,
                "kv_capacity_tokens": self.model.kv_capacity_tokens,
                "weights_bytes": self.model.weights_bytes or None,
                "utilization": u.utilization,
                "mean_batch": u.mean_batch,
                "limited_by": u.limited_by,
            },
            **apart,
            "autoscaler": self._autoscaler(),
            "cost": self.cost.as_summary(),
            "wasted": self.wasted,
            "notes": list(self.notes),
            "run": {
                "seeds": a.seeds,
                "horizon_s": number(end),
                "warmup_s": self.warmup_s,
                "wall_s": self.wall_s,
                "simulated_requests": int(a.arrival_s.size),
            },
        }

    def _autoscaler(self) -> dict[str, object] | None:
        if self.run.lives is None:
            return None
        end, ready = self.run.horizon_s, self.replicas.ready
        return {
            "episodes": [episode.as_summary(self.first_seed) for episode in self.episodes or ()],
            "replica_hours": float(self.replicas.paid.seconds(0.0, end).mean()) / 3600.0,
            "mean_ready": self.replicas.mean_ready(0.0, end),
            "most_ready": ready.most(end.size),
        }

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row an attempt in order (seed, request, attempt), warm-up and refused included; see ``outcome.rows``."""
        return rows(self.run, self.max_itl_s, self.first_seed)

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """One row a (seed, bin); see ``outcome.timeline``."""
        frame = timeline(self.run, self.log, self.ttft_s, self.model.kv_capacity_tokens, self.capacity_rps)
        frame["seed"] += self.first_seed
        return frame
