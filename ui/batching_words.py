"""The batching page's sentences, made from the group's figures and a story. No Streamlit here."""

from __future__ import annotations

import numpy as np

from engine.machine import Memory, Sharing
from engine.outcome import GroupCourse, InFlight
from engine.outcome.story import Story
from engine.scenario import Scenario
from engine.study import Group, Grouped, Record
from ui.words import NBSP, count, digits, listed, moment, percent, seconds, sentence

PARTS = {
    "weights": "weights",
    "overhead": "overhead",
    "communication": "communication",
    "compute": "compute",
    "kv": "KV",
}
"""Parts of a step in the order in which they are stacked: first what is shared."""
WAYS = {
    "chunked": "joining at any step",
    "prefill_first": "joining, prompts first",
    "disaggregated": "prompts elsewhere",
    "static": "groups that end together",
}
_GIB = 2.0**30
_FEW = 8
_DOUBLED_FROM = 8
"""The second gain is that of a doubling from at least so many on."""
_MUCH = 0.05
_OWN = 0.99
"""Share of its context below which a conversation's own KV isn't all of it."""
_NEARLY = 1.05
PIPELINE = (
    "In a pipeline (PP) a group is one batch on its way through the stages. Up to {} are under way at a time: a "
    "replica writes so many times what one group does."
)
"""Takes the number of stages."""


def size_of(story: Story) -> int | None:
    """The group of the formula: the average one while a replica is busy, a whole number."""
    mean: float | None = story.summary["replica"]["mean_batch"]
    return None if mean is None else max(1, round(mean))


def headline(g: Group, size: int | None) -> str:
    """How many share a read, and what caps the group."""
    seats = seats_of(g.record)
    then = seats if g.grown is None else seats_of(g.grown)
    seats += f", and at {then} in the end" if then != seats else ""
    cap = f"memory caps the group at {seats}" if g.limit(g.record) == "kv" else f"the setting caps the group at {seats}"
    if size is None:
        return sentence(f"nobody shares the read of the weights now; {cap}")
    if size == 1:
        return sentence(f"a conversation mostly has the read of the weights to itself; {cap}")
    return sentence(f"{size:,} conversations share each read of the weights; {cap}")


def seats_of(record: Record) -> str:
    """How many fit, in digits."""
    return digits(record.seats, 2) if record.seats < 10 else f"{record.seats:,.0f}"


def explanation(g: Group, size: int, story: Story) -> str:
    """The formula in words, and what kept people waiting; Markdown."""
    s, at = g.sharing, g.sharing.at(size)
    step, own, word = (float(x[at]) for x in (s.step_s, s.own_s, s.word_s))
    found = (
        f"A step takes {seconds(s.shared_s)} whoever is in it, and {seconds(own)} more for each conversation. "
        f"With {size:,} in the group a word (token) takes {seconds(word)} of the replica's time, "
        f"and everybody gets one every **{seconds(step)}**."
    )
    return f"{found} {_waited(story)}".strip()


def _waited(story: Story) -> str:
    limits: dict[str, float | None] = story.summary["replica"]["limited_by"]
    words = {"kv": "KV memory", "max_num_seqs": "a seat (`max_num_seqs`)", "token_budget": "their turn to be read"}
    found = [f"for {words[name]} in {percent(limits[name] or 0.0, 2)}" for name in words if (limits[name] or 0) > _MUCH]
    return f"Somebody waited {listed(found)} of the busy time." if found else ""


# -- tiles -------------------------------------------------------------------------------------------------------------


def shared_parts(s: Sharing) -> str:
    """The largest two shared parts of a step: "weights 42 ms, overhead 2.8 ms"."""
    return _largest({PARTS[name]: float(s.parts[name][0]) for name in s.parts if name not in ("kv", "compute")})


def own_parts(s: Sharing, at: int) -> str:
    """The largest two parts of what a conversation adds: reading its KV, and arithmetic where that doesn't hide."""
    kv = float(s.parts["kv"][at] / s.sizes[at])
    return _largest({"KV": kv, "arithmetic and bookkeeping": float(s.own_s[at]) - kv})


def _largest(parts: dict[str, float]) -> str:
    largest = sorted(parts, key=lambda name: -parts[name])[:2]
    return ", ".join(f"{name} {seconds(parts[name])}" for name in largest if parts[name] > 0)


# -- one sentence a chart ----------------------------------------------------------------------------------------------


def gains(s: Sharing, most: int) -> list[tuple[int, int, float]]:
    """(from, to, times the words a second): of the first conversations, and of the last doubling up to `most`."""
    top = min(most, int(s.sizes[-1]))
    found = [(1, min(_FEW, top))] if top > 1 else []
    power = 1 << (top.bit_length() - 1)
    if power >= 2 * _DOUBLED_FROM:
        found.append((power // 2, power))
    return [(few, many, s.gain(few, many)) for few, many in found]


def sharing_sentence(g: Group) -> str:
    """What a larger group gains, and where that ends."""
    s = g.sharing
    found = [f"{few:,} to {many:,}: {_times(gain)}" for few, many, gain in gains(s, g.max_num_seqs)]
    said = f"**{listed_by_semicolons(found)}.** " if found else ""
    if s.knee is None:
        return f"{said}Doubling the group adds more than a third at every size that a step can have."
    if s.knee == 1:
        return f"{said}There is next to nothing to share: doubling the group never adds more than a third."
    room = " Memory is full before." if g.record.seats < s.knee and g.limit(g.record) == "kv" else ""
    return (
        f"{said}From the knee at {s.knee:,} conversations on, twice the group adds a third at most, "
        f"and everybody's words come slower.{room}"
    )


def _times(gain: float) -> str:
    more = digits(gain, 2)
    return "no more" if more == "1" else f"{more} times the words a second"


def listed_by_semicolons(items: list[str]) -> str:
    """Clauses that have colons; what they have in common is said once."""
    first, *others = items
    return "; ".join([first, *(other.removesuffix(" the words a second") for other in others)])


def memory_sentence(g: Group, m: Memory, flight: InFlight | None) -> str:
    """What takes an accelerator's memory, and for how many conversations the rest is enough."""
    size, capacity = g.record.held_tokens, g.kv_capacity_tokens or 0
    shared = ", without what is cached and shared" if size < _OWN * g.record.context_tokens else ""
    fits = f"{seats_of(g.record)} conversations of {digits(size)} tokens"
    if g.limit(g.record) == "max_num_seqs":
        fits = f"more than {g.max_num_seqs:,} seats (`max_num_seqs`) need with {digits(size)} tokens each"
    said = (
        f"**Weights take {_gb(m.weights)} of an accelerator's {_gb(m.device)}{NBSP}GiB; {_gb(m.kv)}{NBSP}GiB are left "
        f"for conversations (KV).** That is {capacity:,} tokens a replica: {fits}, the average "
        f"conversation half-way through its answer{shared}."
    )
    if flight is None or not capacity:
        return said
    share = flight.mean_tokens / capacity
    when = "At the present rate and pace" if g.grown is None else "As long as lengths don't grow"
    full = "all of it, so somebody waits" if share >= 1 else f"{percent(share, 2)} of it"
    return (
        f"{said} {when} {digits(flight.conversations, 2)} conversations would be under way, with "
        f"{digits(flight.mean_tokens)} ± {digits(flight.sd_tokens, 2)} tokens: {full}."
    )


def _gb(size: float) -> str:
    return digits(size / _GIB, 3)


def seats_sentence(g: Group) -> str:
    """Which of setting and memory caps the group, and from which length on the other would."""
    record = g.record
    if g.crossover_tokens is None:
        return (
            f"**The measured profile has no end of memory, so the setting alone caps the group: "
            f"{count(g.max_num_seqs, 'conversation')} (`max_num_seqs`), however long.**"
        )
    if g.limit(record) == "kv":
        said = (
            f"**Conversations of {digits(record.held_tokens)} tokens find {seats_of(record)} seats, whatever "
            f"`max_num_seqs` says:** its {g.max_num_seqs:,} could be reached below "
            f"{digits(g.crossover_tokens)} tokens only."
        )
    else:
        said = (
            f"**`max_num_seqs` caps the group at {g.max_num_seqs:,}: memory would be the limit from "
            f"{digits(g.crossover_tokens)} tokens a conversation on**, and they have {digits(record.held_tokens)}."
        )
    if g.grown is None:
        return said
    return (
        f"{said} At the end of the run they have {digits(g.grown.held_tokens)} tokens, and {seats_of(g.grown)} seats "
        "(hollow)."
    )


def course_sentence(c: GroupCourse, scenario: Scenario) -> str:
    """When memory fills up, and when somebody pays for it."""
    grows = scenario.traffic.growth is not None
    if c.full_from_s is None:
        return "**Memory never limits the group" + (" though lengths change.**" if grows else ".**") + _trouble(c)
    began = f"memory begins to limit the group {moment(c.full_from_s)}"
    if grows and (troubles := _begun(c)):
        return f"**No setting changes, and yet {began}; {troubles}.** Longer conversations leave fewer seats."
    if grows:
        return f"**No setting changes, and yet {began}.** Longer conversations leave fewer seats."
    return f"**{sentence(began)}**{_trouble(c)}"


def _begun(c: GroupCourse) -> str:
    found = []
    if c.preempted_from_s is not None:
        found.append((c.preempted_from_s, "some of those who come {} on are preempted", "from "))
    if c.lost_from_s is not None:
        what = "callers begin to give up {}" if c.gave_up else "refusals begin {}"
        found.append((c.lost_from_s, what, "around "))
    return listed([what.format(moment(at, about)) for at, what, about in sorted(found)])


def _trouble(c: GroupCourse) -> str:
    if begun := _begun(c):
        return f" {sentence(begun)}"
    some = np.nansum(c.lost) + np.nansum(c.preempted) > 0
    return " Hardly anybody is refused or preempted." if some else " Nobody is refused, and nobody is preempted."


def ways_sentence(g: Grouped) -> str:
    """What it costs when a group starts and ends together."""
    joined, static = g.continuous, g.static
    if not joined.capacity_rps or not static.capacity_rps:
        return "**No request of this mix fits on a replica.**"
    times = joined.capacity_rps / static.capacity_rps
    if times < _NEARLY:
        more = (
            "A replica that always has a queue serves as many either way: seats that are kept cost it next to nothing."
        )
    else:
        more = (
            f"Letting people join at any step (continuous batching) serves {digits(times, 2)} times the requests of "
            "groups that end together (static): those who have their answer keep their seats until the longest is done."
        )
    said = f"**{more}**"
    if joined.ttft_p95_s is not None and static.ttft_p95_s is not None:
        one, other = seconds(joined.ttft_p95_s), seconds(static.ttft_p95_s)
        wait = (
            f"{one} for the first word (TTFT) either way"
            if one == other
            else f"{one} for the first word (TTFT), {other} in static groups"
        )
        said += f" The slowest 5{NBSP}% wait {wait}."
    if joined.itl_p99_s is not None and static.itl_p99_s is not None and joined.itl_p99_s > _NEARLY * static.itl_p99_s:
        said += (
            f" The price: others' prompts lengthen 1 gap between words in 100 (ITL) to {seconds(joined.itl_p99_s)}, "
            f"{seconds(static.itl_p99_s)} in static groups."
        )
    return said


def ways_source(g: Grouped) -> str:
    """How the comparison came about."""
    return (
        f"{count(g.runs, 'run')} of {seconds(g.horizon_s)} each way, the same requests, no autoscaler; the course from "
        f"{count(g.course.runs, 'run')} of the whole length."
    )


def pace(g: Group, story: Story, size: int | None) -> float:
    """Seconds a word as they were in the run, others' prompts included; a step's that only writes where lengths grow,
    because the pace is then that of longer prompts, and where nobody wrote."""
    mean: float | None = story.summary["latency_s"]["itl"]["mean"]
    if mean is not None and g.grown is None:
        return mean
    return float(g.sharing.step_s[g.sharing.at(size or 1)])


def flight_rate(story: Story, scenario: Scenario) -> float | None:
    """Requests per second that come to one replica; with two pools to one of those that write."""
    pools = scenario.batching.policy == "disaggregated"
    replicas = scenario.batching.disaggregated.decode_replicas if pools else scenario.fleet.replicas
    return None if story.offered_rps is None else story.offered_rps / replicas
