"""The scaling page's sentences, made from the facts of a story and of the rules that were tried. No Streamlit here."""

from __future__ import annotations

from collections.abc import Sequence

from engine.outcome.lag import Episode
from engine.outcome.relief import Part, Relief, Stage
from engine.outcome.story import Promise, Story
from engine.outcome.traps import Trap
from engine.scenario import Autoscaler, Scenario, describe
from engine.study import RuleName, RuleOutcome, Spare
from ui.words import NBSP, count, digits, fraction, listed, moment, money, percent, rate, seconds, sentence

STAGES: dict[Stage, str] = {
    "detection": "noticing and deciding",
    "orders": "further orders",
    "provision": "getting a machine",
    "image_pull": "pulling the image",
    "weights_load": "loading weights",
    "warmup": "warming up",
    "falling": "demand falls to capacity",
    "alone": "nothing ordered",
    "drain": "draining the queue",
}
NAMES: dict[RuleName, str] = {
    "hpa": "Kubernetes HPA",
    "keda": "KEDA",
    "knative": "Knative",
    "ray_serve": "Ray Serve",
    "aibrix": "AIBrix",
    "schedule": "by the clock",
    "fixed": "fixed fleet, with spare",
}
_STARTUP = ("provision", "image_pull", "weights_load", "warmup")


def headline(r: Relief) -> str:
    """The verdict in one sentence."""
    e = r.episode
    if not r.offered:
        return "Nothing arrives, so no help is needed."
    if e is None:
        return "No help is needed: demand never outgrows the replicas that are ready."
    if e.lag_s is None:
        return "Help doesn't arrive: nothing is ordered." if e.decided_s is None else "Help isn't enough by the end."
    if e.decided_s is None:
        return f"No help is ordered: for {seconds(e.lag_s)} more arrives than can be served."
    if not r.helped:
        return f"Demand falls before help is there: for {seconds(e.lag_s)} more arrives than can be served."
    return sentence(f"help arrives {seconds(e.lag_s)} late: {_made_of(r)}")


def _made_of(r: Relief) -> str:
    """The parts of a lag that ended with help, in a few words."""
    found = {part.stage: part.seconds for part in r.parts}
    start = sum(found.get(stage, 0.0) for stage in _STARTUP)
    detection = found.get("detection", 0.0)
    first = f"{seconds(detection)} to decide" if detection >= 0 else f"ordered {seconds(-detection)} ahead"
    more = [f"{seconds(found['orders'])} of further orders"] if "orders" in found else []
    last = [f"{seconds(found['falling'])} until demand fits"] if "falling" in found else []
    return listed([first, *more, f"{seconds(start)} to start", *last])


def explanation(r: Relief, promise: Promise | None, spare: Spare | None) -> str:
    """What stands behind the verdict; Markdown."""
    found = [_harm(r), _kept(promise), _bridge(spare, promise)]
    return " ".join(part for part in found if part).replace("$", "\\$")


def _harm(r: Relief) -> str:
    e = r.episode
    if e is None:
        return ""
    until = "until the queue had drained" if e.drained_s is not None else "up to the end"
    who = fraction(r.harmed / r.offered) if r.offered else "nobody"
    many = f"{digits(r.harmed)} of a run's {digits(r.offered)} requests"
    return f"From demand above capacity {until}, {many} ({who}) broke the promise."


def _kept(promise: Promise | None) -> str:
    if promise is None or promise.attainment.attainment is None:
        return ""
    share, objective = promise.attainment.attainment, promise.objective
    kept = "is **kept**: for" if share >= objective.target else "is **broken**: kept for"
    return f"The promise ({seconds(objective.threshold_s, 3)} for {percent(objective.target)}) {kept} {percent(share)}."


def _bridge(spare: Spare | None, promise: Promise | None) -> str:
    if spare is None or promise is None or not spare.spare:
        return ""
    cost = f", for {money(spare.price)} an hour, day and night" if spare.price else ""
    return (
        f"**{count(spare.spare, 'spare replica')} would have bridged it**{cost}: {percent(spare.attainment)} in time."
    )


# -- tiles -------------------------------------------------------------------------------------------------------------


def lag(r: Relief) -> str:
    """The lag's figure."""
    if r.episode is None:
        return "none"
    if r.episode.decided_s is None:
        return "never"
    return "not by the end" if r.episode.lag_s is None else seconds(r.episode.lag_s)


def lag_below(r: Relief) -> str:
    """What it is made of, or what there is to say without one."""
    e = r.episode
    if e is None:
        return "demand never above capacity"
    if e.detection_s is None:
        return "nothing ordered"
    if e.provisioning_s is None:
        return f"ordered after {seconds(max(e.detection_s, 0.0))}"
    if not r.helped:
        return "demand fell before"
    if e.detection_s < 0:
        return f"ordered {seconds(-e.detection_s)} before"
    return f"{seconds(e.detection_s)} to decide, {seconds(e.provisioning_s)} to start"


def lag_help(r: Relief) -> str:
    """How the runs differ."""
    known = sorted(lag for lag in r.lags_s if lag is not None)
    text = (
        "Autoscaler lag: from demand above what the ready replicas can serve until capacity is enough again. Of "
        f"{count(r.runs, 'run')}, {len(r.lags_s)} had demand above capacity; shown is the one with the median lag."
    )
    if len(known) > 1:
        text += f" They took {seconds(known[0], 3)} to {seconds(known[-1], 3)}."
    missing = len(r.lags_s) - len(known)
    return text + (f" In {count(missing, 'run')} help wasn't enough by the end." if missing else "")


# -- one sentence a chart ----------------------------------------------------------------------------------------------


def course_sentence(r: Relief) -> str:
    """What to read in demand, queue and replicas."""
    e = r.episode
    high = float(r.demand.demand_rps.max(initial=0.0))
    if e is None:
        return f"**Demand peaks at {rate(high)}, and the ready replicas can always serve it.**"
    peak = int(r.queue.max(initial=0))
    at = moment(e.demand_crossed_s, "")
    ordered = (
        "nothing is ordered" if e.decided_s is None else f"the first order is given {_after(e.detection_s or 0.0)}"
    )
    enough = "capacity is enough" if r.helped else "demand is back below it"
    ready = "" if e.ready_s is None else f", and {enough} {_after(e.lag_s or 0.0)}"
    drained = (
        f"The queue grows to {count(peak, 'request')}"
        + (f" and is gone {seconds(e.drained_s - e.ready_s)} later" if e.drained_s and e.ready_s else "")
        + "."
    )
    return f"**Demand outgrows capacity in {at}; {ordered}{ready}.** {drained}"


def _after(passed_s: float) -> str:
    if passed_s < 0:
        return f"{seconds(-passed_s)} before that"
    return "at that moment" if not passed_s else f"{seconds(passed_s)} after that"


def waterfall_sentence(r: Relief) -> str:
    """What to read in the parts of the lag."""
    e = r.episode
    if e is None:
        return "**There is no lag to take apart.**"
    found = [part for part in r.parts if part.stage != "drain" and part.seconds > 0]
    if e.lag_s is None:
        return "**Help isn't enough by the end**; up to there the time went into this."
    if e.decided_s is None:
        return f"**Nothing is ordered:** after {seconds(e.lag_s)} demand is back below capacity by itself."
    longest = max(found, key=lambda part: part.seconds)
    told = f"**{seconds(e.lag_s)} of lag, of which {STAGES[longest.stage]} takes {seconds(longest.seconds)}.**"
    drain = next((part.seconds for part in r.parts if part.stage == "drain"), None)
    return told if drain is None else f"{told} Draining what had piled up takes another {seconds(drain)}."


# -- traps -------------------------------------------------------------------------------------------------------------


def trap(t: Trap, s: Scenario) -> str:
    """A trap that the scenario fell into: what, why, what to try."""
    a = s.autoscaler
    metric = _word("autoscaler.metric", a.metric)
    match t.kind:
        case "never_up":
            return (
                f"**The metric saturates below the target.** {metric} can't exceed {digits(t.value, 2)} times the "
                f"target of {digits(a.target)}, which is within the tolerance: nothing is ordered. Try `outstanding`, "
                "or a lower target."
            )
        case "saturates":
            return (
                f"**The metric saturates.** {metric} can't exceed {digits(t.value, 2)} times the target, however long "
                f"the queue: a decision asks for {digits(t.value, 2)} times as many replicas at most. "
                "`outstanding` sees the queue."
            )
        case "one_request":
            return (
                "**The busy fraction says nothing about load.** A replica with one request is as busy as a full one: "
                f"any traffic that never stops reads as {digits(1 / a.target, 2)} times the target, and more replicas "
                "don't lower it. `outstanding` tells one request from a hundred."
            )
        case "over_orders":
            return (
                f"**Starting replicas aren't counted, so the same shortage is answered again at every tick:** up to "
                f"{count(int(t.value), 'replica')} were on their way at once. Count starting replicas."
            )
        case "flaps":
            return (
                f"**It removes what it needs again.** {count(int(t.value), 'replica')} left less than a start "
                f"({seconds(startup_s(a))}) before others were ordered: the rule waits for less than that before it "
                "removes any. Lengthen its window, or raise the fewest replicas."
            )
        case "called_off":
            return (
                f"**{count(int(t.value), 'start')} {'was' if t.value == 1 else 'were'} called off before being of "
                "use**, and paid for up to there."
            )


def startup_s(a: Autoscaler) -> float:
    """How long a start takes."""
    return a.startup.provision_s + a.startup.image_pull_s + a.startup.weights_load_s + a.startup.warmup_s


def _word(path: str, value: str) -> str:
    word = next(choice.word for choice in describe(path).choices if choice.value == value)
    return word[:1].upper() + word[1:]


# -- rules side by side ------------------------------------------------------------------------------------------------


def rules_sentence(found: Sequence[RuleOutcome], target: float | None) -> str:
    """Which rule does best on this traffic."""
    judged = [o for o in found if o.attainment is not None]
    if not judged:
        return "**The same traffic under each rule.**"
    best = max(judged, key=lambda o: (o.attainment or 0.0, -o.replica_hours))
    kept = [o for o in judged if target is not None and (o.attainment or 0.0) >= target]
    reacting = [o for o in judged if o.rule not in ("schedule", "fixed")]
    told = f"**{_capital(NAMES[best.rule])} keeps most in time: {percent(best.attainment or 0.0)}.**"
    if reacting and best not in reacting and not any(o in kept for o in reacting):
        first = max(reacting, key=lambda o: o.attainment or 0.0)
        told += (
            f" Of the rules that wait for the load, the best is {NAMES[first.rule]} with "
            f"{percent(first.attainment or 0.0)}: none can be faster than a start."
        )
    elif kept:
        told += f" The promise is kept by {listed([NAMES[o.rule] for o in kept])}."
    return told


def rule_button(o: RuleOutcome) -> str:
    """What a button that uses a rule says."""
    if o.rule == "fixed":
        return f"Use {count(o.replicas, 'fixed replica')}"
    return f"Use {'a schedule' if o.rule == 'schedule' else NAMES[o.rule]}"


def rules_source(found: Sequence[RuleOutcome], s: Scenario) -> str:
    """How the comparison came about."""
    runs = max((o.runs for o in found), default=0)
    return (
        f"{count(runs, 'run')} of each, the same requests; metric, target, bounds and start-up are yours, interval and "
        f"window each rule's own (Ray Serve's loop 1{NBSP}s) unless it is the one in use. The schedule "
        "knows the traffic beforehand. "
        "The fixed fleet is the smallest that keeps the promise."
    )


def lag_of(o: RuleOutcome) -> str:
    """A rule's lag in a table."""
    if not o.runs_short:
        return "never short"
    return "not by the end" if o.lag_s is None else seconds(o.lag_s, 3)


def part_label(part: Part) -> str:
    """A part's duration at its bar."""
    return seconds(part.seconds, 3) if part.seconds >= 0 else f"{seconds(-part.seconds, 3)} ahead"


def switched_off(story: Story, s: Scenario) -> str:
    """Without an autoscaler: the verdict."""
    above = story.arrivals.above_s
    if story.arrivals.capacity_rps is None:
        return "No replica can serve this, and no help would come."
    if not above:
        return "The fleet is fixed, and as it is nobody needs help."
    return f"The fleet is fixed: for {seconds(above)} more arrives than it can serve, and no help comes."


def episode_rules(e: Episode, helped: bool) -> list[tuple[float, str]]:
    """(moment, name) of what happens in an episode."""
    known = (
        (e.demand_crossed_s, "short"),
        (e.decided_s, "decided"),
        (e.ready_s, "ready" if helped else "fits again"),
        (e.drained_s, "drained"),
    )
    return [(at, name) for at, name in known if at is not None]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
