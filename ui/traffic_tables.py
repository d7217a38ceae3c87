"""What the traffic page's charts show, as tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from engine.outcome import SHARES, Arriving, Joint, Lengths
from engine.study import Sized
from engine.traffic import WIDTHS_S, Clumps, Fit, real_traffic
from ui.traffic_words import PROCESSES, SLICES


def arrivals_table(a: Arriving, fleet_rps: float | None) -> pd.DataFrame:
    """Arrivals by the second, and of the minute around it."""
    minute = np.searchsorted(a.slices.start_s, a.seconds.start_s, side="right") - 1
    around = a.slice_rps[minute] if a.slice_rps.size else np.full(minute.size, np.nan)
    return pd.DataFrame(
        {
            "from (s)": a.seconds.start_s,
            "most in a second": a.second_rps,
            f"per second, by the {SLICES[a.slices.width_s]}": around,
            "can be served per second": fleet_rps,
        }
    )


def clumps_table(c: Clumps) -> pd.DataFrame:
    """This scenario beside the real services."""
    rows = [("here", c.rate_rps, c.worst, c.dispersion, c.gap_cv)]
    rows += [(real.title, real.rate_rps, real.worst, real.dispersion, real.gap_cv) for real in real_traffic()]
    return pd.DataFrame(
        [
            {"traffic": name, "requests per second": rate, "worst minute over average": worst}
            | {f"dispersion, {width:g} s": dispersion[width] for width in WIDTHS_S}
            | {"CV of gaps": cv}
            for name, rate, worst, dispersion, cv in rows
        ]
    )


def sized_table(z: Sized) -> pd.DataFrame:
    """Both fleets."""
    word = SLICES[z.slice_s]
    return pd.DataFrame(
        [
            {
                "sized for the": what,
                "replicas": fleet.replicas,
                "kept the promise (%)": None if fleet.kept is None else 100 * fleet.kept,
                f"in the worst {word} (%)": None if fleet.kept_worst is None else 100 * fleet.kept_worst,
                "p95 (s)": fleet.p95_s,
                f"p95 in the worst {word} (s)": fleet.p95_worst_s,
                "$ an hour": fleet.per_hour,
            }
            for what, fleet in (("average", z.average), (f"worst {word}", z.worst))
        ]
    )


def lengths_table(prompt: Lengths, output: Lengths) -> pd.DataFrame:
    """Lengths by share of the requests."""
    return pd.DataFrame({"up to (% of requests)": 100 * SHARES, "prompt": prompt.tokens, "answer": output.tokens})


def joint_table(j: Joint) -> pd.DataFrame:
    """Cells that have any requests."""
    answer, prompt = np.nonzero(j.share)
    return pd.DataFrame(
        {
            "prompt from": j.prompt_edges[prompt],
            "to": j.prompt_edges[prompt + 1],
            "answer from": j.output_edges[answer],
            "to ": j.output_edges[answer + 1],
            "requests (%)": 100 * j.share[answer, prompt],
        }
    )


def fit_table(f: Fit) -> pd.DataFrame:
    """The trace, and what each fitted process has in draws of its length."""
    rows = [("the trace", f.measured, None), *((PROCESSES[c.process], c.clumps, c.off) for c in f.candidates)]
    return pd.DataFrame(
        [
            {"process": name, "worst minute over average": clumps.worst}
            | {f"dispersion, {width:g} s": clumps.dispersion[width] for width in WIDTHS_S}
            | {"CV of gaps": clumps.gap_cv, "off by a factor of": off}
            for name, clumps, off in rows
        ]
    )
