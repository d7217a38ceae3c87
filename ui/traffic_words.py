"""The traffic page's sentences, made from what arrived and from what resembles it. No Streamlit here."""

from __future__ import annotations

from math import sqrt

from engine.outcome import Arriving, Joint, Lengths
from engine.outcome.story import Story
from engine.scenario import Scenario
from engine.study import Sized, SizedFleet
from engine.traffic import Candidate, Clumps, Fit, RealTraffic, real_traffic
from ui.words import METRICS, NBSP, count, digits, listed, moment, money, percent, rate, requests, seconds, sentence

SLICES = {60.0: "minute", 10.0: "10-second stretch", 1.0: "second"}
SEVERAL = {60.0: "minutes", 10.0: "10-second stretches", 1.0: "seconds"}
BRIEF = {60.0: "minute", 10.0: "10 s", 1.0: "second"}
"""The same where there is little room."""
PROCESSES = {
    "poisson": "independent arrivals (Poisson)",
    "gamma": "clumped gaps (gamma)",
    "mmpp": "calm and bursts by turns (MMPP)",
}
"""Processes that are fitted."""
NAMES = {"poisson": "independent", "gamma": "clumped gaps", "mmpp": "calm and bursts"}
"""The same where there is little room."""
_HARDLY = 1.25
"""A worst minute of less than so many average ones is no news."""
_CLUMPED, _EVEN = 1.5, 0.7
_ALIKE = 2.5
"""Factor from which on dispersions aren't alike any more."""
_GROWS = 2.0
"""Times as clumped by the minute as by the second, from which on the clumps are long."""
_WEAK, _NOTHING = 0.1, 0.005


def headline(a: Arriving, scenario: Scenario) -> str:
    """How far the worst minute is from the average one."""
    c = a.clumps
    if not c.requests:
        return "Nothing arrives."
    if c.worst is None:
        return "Everything arrives at once." if not c.span_s else "The run is too short to have a worst second."
    word = SLICES[c.slice_s]
    if scenario.traffic.process == "closed":
        many = count(scenario.traffic.closed.users, "user")
        return f"{many} bring {requests(c.rate_rps)}: as fast as they are answered."
    if c.worst < _HARDLY:
        return f"The worst {word} is hardly worse than the average one: {digits(c.worst, 3)} times as many arrive."
    return f"The worst {word} brings {digits(c.worst, 2)} times the average one."


def explanation(a: Arriving, scenario: Scenario) -> str:
    """Rates, and how clumped; Markdown."""
    c = a.clumps
    if c.requests and c.worst is None:
        return f"{count(round(c.requests), 'request')} in a run: give it more time to tell windows apart."
    if c.worst is None or c.worst_rps is None:
        return "Raise the requests per second, or open a preset."
    said = f"On average {requests(c.rate_rps)} arrive, {rate(c.worst_rps)} in the worst {SLICES[c.slice_s]} of a run."
    if scenario.traffic.process == "closed":
        return f"{said} Users who wait for their answers can't come in bursts: a slow service slows its own traffic."
    known = [(width, value) for width, value in c.dispersion.items() if value is not None]
    if not known:
        return said
    width, value = known[-1]
    window = SLICES[width]
    windows = max(int(c.span_s / width) * scenario.run.seeds, 1)
    chance = 2.0 * sqrt(2.0 / windows)  # how far independent arrivals are from 1, in 19 of 20 cases
    if value >= max(_CLUMPED, 1.0 + chance):
        return f"{said} Counts by the {window} vary **{digits(value, 2)} times** as much as independent arrivals would."
    if value <= min(_EVEN, 1.0 - chance):
        return f"{said} Arrivals are more even than independent ones."
    return f"{said} Counts by the {window} vary about as independent arrivals do."


# -- one sentence a chart ----------------------------------------------------------------------------------------------


def arrivals_sentence(story: Story) -> str:
    """The worst minute against what can be served."""
    a, fleet = story.arriving, story.fleet_rps
    c = a.clumps
    if c.worst is None:
        return "**Too little time passes to tell windows apart.**" if c.requests else "**Nothing arrives.**"
    word, worst = SLICES[c.slice_s], float(a.slice_rps.max(initial=0.0))
    first = "In the first run " if story.summary["run"]["seeds"] > 1 else ""
    said = (
        f"**{first}{rate(worst)} arrive in the worst {word} ({moment(a.worst_at_s, 'from ')} on), "
        f"{digits(float(a.second_rps.max(initial=0.0)), 2)} in the worst {_fine(a)}.**"
    )
    if not fleet:
        return f"{said} Nothing of it can be served."
    above = int((a.slice_rps > fleet).sum())
    if above:
        part = f"{above:,} of {a.slice_rps.size:,} {SEVERAL[c.slice_s]}"
        return f"{said} In {part} more arrives than the {digits(fleet, 2)} that can be served: the rest has to wait."
    if float(a.second_rps.max(initial=0.0)) > fleet:
        return f"{said} The {digits(fleet, 2)} that can be served are enough for every {word}, not for every second."
    return f"{said} The {digits(fleet, 2)} that can be served are always enough."


def _fine(a: Arriving) -> str:
    return "second" if a.seconds.width_s >= 1.0 else "tenth of one"


def clumps_sentence(c: Clumps) -> str:
    """At which scale arrivals clump, and which real service that is like."""
    short, long = c.dispersion[1.0], c.dispersion[60.0]
    beside = _beside(c)
    if short is None and long is None:
        return f"**The run is too short, or its clock too coarse, to tell how clumped arrivals are.**{beside}"
    if long is None:
        assert short is not None
        return f"**From second to second counts vary {digits(short, 2)} times as much as independent ones.**{beside}"
    if short is None:
        return f"**From minute to minute counts vary {digits(long, 2)} times as much as independent ones.**{beside}"
    by_second, by_minute = digits(short, 2), digits(long, 2)
    figures = f"{by_second} times the variance of independent arrivals by the second, {by_minute} by the minute"
    if long > _CLUMPED and long > _GROWS * short:
        said = "what looks independent by the second clumps by the minute" if short < _CLUMPED else "clumps are long"
    elif max(short, long) < _CLUMPED:
        said = "arrivals are no more clumped than independent ones"
    else:
        said = "clumps are short"
    return f"**{sentence(f'{said}: {figures}')}**{beside}"


def _beside(c: Clumps) -> str:
    """The real service that is like it, if one is."""
    like, off = nearest(c)
    if like is None or off <= _ALIKE:
        return f" Nearest of the real services: {like.title}." if like is not None else ""
    mine = [(width, value) for width, value in c.dispersion.items() if value]
    if all((real.dispersion[width] or value) >= value for real in real_traffic() for width, value in mine):
        return " All of the real services clump more."
    return " None of the real services clumps like that."


def nearest(c: Clumps) -> tuple[RealTraffic | None, float]:
    """The real trace whose dispersions are least off in the windows that both have, and by which factor at most."""
    found: list[tuple[float, RealTraffic | None]] = []
    for real in real_traffic():
        ratios = [
            max(mine / theirs, theirs / mine)
            for width, mine in c.dispersion.items()
            if mine and (theirs := real.dispersion[width])
        ]
        if ratios:
            found.append((max(ratios), real))
    off, like = min(found, key=lambda entry: entry[0], default=(1.0, None))
    return like, off


def sized_sentence(z: Sized, scenario: Scenario) -> str:
    """What a fleet for the average does in the worst minute, and what one for that takes."""
    word, few, many = SLICES[z.slice_s], z.average, z.worst
    who = f"sized for the average ({rate(z.rate_rps)}: {count(few.replicas, 'replica')})"
    if few.kept_worst is not None and few.kept is not None:
        share = percent(few.kept_worst, 2) if few.kept_worst else "none"
        does = f"keeps the promise for {share} of those who come in the worst {word}, {percent(few.kept, 2)} of all"
    else:
        name, term = METRICS[scenario.slo[0].metric if scenario.slo else "ttft"]
        does = f"lets the slowest 5{NBSP}% of the worst {word} wait {_time(few.p95_worst_s)} for the {name} ({term})"
    more = f" and {money(many.per_hour - few.per_hour)} more an hour" if many.per_hour and few.per_hour else ""
    then = f": {percent(many.kept_worst, 2)} then" if many.kept_worst is not None else ""
    target = scenario.slo[0].target if scenario.slo else 0.0
    short = many.kept_worst is not None and many.kept_worst < target and z.slice_s > 1.0
    why = f"inside the {word} there are worse seconds, and what was left from before"
    if many.kept_worst is not None and many.kept is not None and many.kept_worst >= many.kept:
        why = "the promise is kept no better at other times"
    inside = f" Still not {percent(target)}: {why}." if short else ""
    if many.replicas == few.replicas:
        enough = f"As many replicas can serve the worst {word} on average ({rate(z.worst_rps)}), too"
        return f"**A service {who} {does}.** {enough}{f', but {why}' if short else ''}."
    return (
        f"**A service {who} {does}.** The worst {word} ({rate(z.worst_rps)}) takes "
        f"{count(many.replicas, 'replica')}{more}{then}.{inside}"
    ).replace("$", "\\$")


def _time(value: float | None) -> str:
    return "for ever" if value is None else seconds(value)


def fleet_name(fleet: SizedFleet, for_what: str) -> str:
    """A bar's name."""
    return f"for the {for_what}:<br>{count(fleet.replicas, 'replica')}"


def lengths_sentence(prompt: Lengths, output: Lengths, scenario: Scenario) -> str:
    """How wordy, and how uneven."""
    grows = _grows(scenario)
    if prompt.cv == output.cv == 0:
        return f"**All prompts have {digits(prompt.mean)} tokens, all answers {digits(output.mean)}.**{grows}"
    return (
        f"**Half of the prompts have {_tokens(prompt, 0.5)} tokens or fewer, 1 in 100 more than "
        f"{_tokens(prompt, 0.99)}; answers {_tokens(output, 0.5)} and {_tokens(output, 0.99)}.** On average "
        f"{digits(prompt.mean)} and {digits(output.mean)}.{grows}"
    )


def _grows(scenario: Scenario) -> str:
    """How lengths change in the course of a run."""
    growth = scenario.traffic.growth
    factors = {} if growth is None else {"prompts": growth.prompt_factor, "answers": growth.output_factor}
    found = [f"{what} {factor:g} times" for what, factor in factors.items() if factor != 1.0]
    return f" In the course of a run they grow: {listed(found)}." if found else ""


def _tokens(lengths: Lengths, share: float) -> str:
    return digits(lengths.quantile(share))


def joint_sentence(j: Joint) -> str:
    """Whether long prompts have long answers."""
    r = j.rank_correlation
    if r is None:
        return "**All prompts, or all answers, are equally long.**"
    figure = f"rank correlation {abs(r):.2f}" if r >= 0 or abs(r) < _NOTHING else f"rank correlation −{abs(r):.2f}"
    if abs(r) < _WEAK:
        return f"**A long prompt says nothing about the answer's length ({figure}).**"
    return f"**Longer prompts tend to have {'longer' if r > 0 else 'shorter'} answers ({figure}).**"


# -- the fit of a trace ------------------------------------------------------------------------------------------------


def fit_sentence(f: Fit) -> str:
    """What resembles the trace, how well, and whether blocks of it do better."""
    best = f.best
    name = PROCESSES[best.process]
    if best.good:
        said = f"the arrivals are like {name}{settings(best)}"
        how = f" Every window is met within a factor of {digits(best.off, 2)}." if best.off > 1.0 else ""
    else:
        said = f"no simple process has clumps like the trace's: {name} come nearest"
        how = f" One window is off by a factor of {digits(best.off, 2)}."
    poor = [what for what, law in (("prompts", f.prompt), ("answers", f.output)) if law.poor]
    lengths = (
        f" Lognormal {listed(poor)} miss the recorded shares by up to {_points(f)}."
        if poor
        else f" Lognormal lengths meet the recorded shares within {_points(f)}."
    )
    better = " **Blocks of the trace itself resemble it better: resample it.**" if f.resample else ""
    return f"**{sentence(said)}**{how}{lengths}{better}"


def _points(f: Fit) -> str:
    """How far the worse of the two lognormals is off."""
    distance = max(f.prompt.ks, f.output.ks)
    return f"{digits(100 * distance, 2)}{NBSP}points (KS distance {digits(distance, 2)})"


def settings(candidate: Candidate) -> str:
    """The fitted figures: ", 3.2 a second, CV 2.5"."""
    law = candidate.settings
    found = [f", {rate(law['rate_rps'])}"]
    if "cv" in law:
        found.append(f", gaps with a CV of {digits(law['cv'], 2)}")
    if "mmpp" in law:
        m = law["mmpp"]
        found.append(
            f", {digits(m['burst_ratio'], 2)} times as many in bursts of {seconds(m['mean_burst_s'])}, "
            f"{percent(m['burst_fraction'], 2)} of the time"
        )
    return "".join(found)


def no_fit() -> str:
    """For a trace that is too short."""
    return "The trace has too few requests, or takes too little time, to fit anything to it."


def real_source() -> str:
    """Where the real figures are from; Markdown."""
    parts = [f"{real.title}: {real.source} ({real.note})" for real in real_traffic()]
    return "Real traffic: " + "; ".join(parts) + "."
