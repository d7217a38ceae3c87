"""The overload page's sentences, made from the facts of a story and of the ways that were tried. No Streamlit here."""

from __future__ import annotations

from collections.abc import Sequence

from engine.outcome.overload import Overload
from engine.outcome.story import Story
from engine.scenario import Scenario
from engine.study import Tried, Way
from ui.words import (
    NBSP,
    REASONS,
    count,
    digits,
    fraction,
    listed,
    moment,
    people,
    percent,
    rate,
    requests,
    seconds,
    sentence,
)

FATES = {
    "in_time": "in time",
    "late": "late",
    "refused": "refused",
    "gave_up": "timed out",
    "waiting": "too early to tell",
}
"""What becomes of a request."""
_NOTICEABLE = 0.005
_MUCH = 0.1
_MORE_THAN_ONCE = 1.02
_LONGER = 1.2
"""Times as long as the others', from which on it is worth a word who is refused."""
_WELL = 0.9


def headline(o: Overload, scenario: Scenario) -> str:
    """The verdict in one sentence."""
    shares, let_in = o.fates.shares, o.fates.of_let_in
    match o.kind:
        case "idle":
            return "Nothing arrives, so there is nobody to refuse."
        case "refused":
            return "Everybody is refused: nobody is served."
        case "storm":
            began = "The rush is over, the outage stays" if o.rush_over_s is not None else "Retries keep it overloaded"
            return f"{began}: at the end, {_good(o.end.share or 0.0, scenario)}."
        case "saved":
            rest = "everybody else" if let_in == 1.0 else f"{percent(let_in or 0.0)} of the others"
            return f"Refusing {fraction(shares['refused'])} keeps {rest} in time."
        case "late":
            lost = 1.0 - (let_in or 0.0)
            if shares["refused"] >= _NOTICEABLE:
                who = people(shares["refused"], "is refused", "are refused")
                rest = {"nobody": "none", "everybody": "all", "nearly everybody": "nearly all"}.get(fraction(lost))
                one, many = _lost(o)
                verb = one if rest is None and fraction(lost).startswith("1 ") else many
                return sentence(f"{who}, and {rest or fraction(lost)} of the others {verb} all the same")
            return sentence(f"nobody is refused, and {people(lost, *_lost(o))}")
    if let_in == 1.0:
        return f"No need to say no: {_good(1.0, scenario)}."
    return f"No need to say no: {percent(let_in or 0.0)} {_words(scenario)[1]}."


def _good(share: float, scenario: Scenario) -> str:
    return people(share, *_words(scenario))


def _words(scenario: Scenario) -> tuple[str, str]:
    return ("is served in time", "are served in time") if scenario.slo else ("gets an answer", "get an answer")


def _lost(o: Overload) -> tuple[str, str]:
    """What happens to those who were let in and aren't in time."""
    late, gone = o.fates.late, o.fates.gave_up
    if gone < _MUCH * (late + gone):
        return "is late", "are late"
    if late < _MUCH * (late + gone):
        return "times out", "time out"
    return "is late or times out", "are late or time out"


def explanation(o: Overload) -> str:
    """What stands behind the verdict; Markdown."""
    if o.kind == "idle":
        return "Raise the requests per second, or open a preset."
    can = f"{rate(o.fleet_rps)} can be served" if o.fleet_rps else "none can be served"
    again = f", each sent {digits(o.attempts, 2)} times" if o.attempts and o.attempts >= _MORE_THAN_ONCE else ""
    work = ""
    if o.spent.total and (lost := (o.spent.late + o.spent.for_nothing) / o.spent.total) >= _NOTICEABLE:
        why = "for answers that came late or that nobody waited for" if o.spent.for_nothing else "for late answers"
        work = f" **{percent(lost, 2)} of the work** was {why}."
    who = ""
    if (o.refused_length or 0.0) >= _LONGER:
        who = f" Those refused have prompts {digits(o.refused_length or 0.0, 2)} times as long as the others'."
    after = ""
    if o.kind == "late" and o.rush_over_s is not None and (o.end.share or 0.0) >= _WELL:
        after = f" The rush passes: at the end {percent(o.end.share or 0.0, 2)} are in time."
    return sentence(f"{requests(o.first_rps)} arrive{again}; {can}") + who + work + after


# -- one sentence a chart ----------------------------------------------------------------------------------------------


def load_sentence(o: Overload) -> str:
    """What to read in load and goodput over time."""
    end, fleet = o.end, o.fleet_rps
    if fleet is None:
        return "**No request of this mix fits on a replica, so nothing can be served.**"
    got = _answered(o)
    if o.kind == "idle":
        return "**Nothing arrives.**"
    if o.kind == "storm":
        own = f"people ask {rate(end.first_rps)}, their clients send {rate(end.offered_rps)}"
        when = f"The rush ends {moment(o.rush_over_s)}. " if o.rush_over_s is not None else ""
        return f"**{when}At the end {own}, and {got}.** Retries hold the load above the line."
    if end.offered_rps > fleet and end.in_time_rps > fleet:
        more = "more than of the whole mix" if (o.refused_length or 0.0) >= _LONGER else "about what can be served"
        return f"**{requests(end.offered_rps)} are sent at the end, {rate(fleet)} can be served, and {got}:** {more}."
    if end.offered_rps > fleet:
        return f"**{requests(end.offered_rps)} are sent at the end, {rate(fleet)} can be served, and {got}.**"
    if o.rush_over_s is not None:
        return (
            f"**First attempts are above what can be served until {moment(o.rush_over_s)}; "
            f"at the end {rate(end.first_rps)} arrive and {got}.**"
        )
    return f"**The load stays below what can be served ({rate(fleet)}): {got} at the end, of {rate(end.first_rps)}.**"


def _answered(o: Overload) -> str:
    """How many are answered in time at the end."""
    share = o.end.share or 0.0
    if share < _NOTICEABLE:
        return "hardly any is answered in time" if share else "none is answered in time"
    return f"{rate(o.end.in_time_rps)} are answered in time"


def lost_sentence(story: Story) -> str:
    """What to read in who got no answer, by reason; without any, all there is to say."""
    summary = story.summary
    offered = summary["requests"]["offered"]
    counts = {key: many for key, many in summary["rejected_by_reason"].items() if many}
    timed_out = summary["requests"]["timed_out"]
    if not offered:
        return "**Nobody came, so nobody is refused.**"
    if not counts and not timed_out:
        return "**Nobody is refused and nobody gives up.**"
    what = [f"{percent(many / offered, 2)} of attempts are refused ({REASONS[key]})" for key, many in counts.items()]
    what += [f"{percent(timed_out / offered, 2)} {'' if counts else 'of attempts '}time out"] if timed_out else []
    worst = story.refusals
    return (
        f"**{sentence(listed(what))}** At worst, {moment(worst.worst_at_s)}, {percent(worst.worst, 2)} get no answer."
    )


def amplification_sentence(o: Overload) -> str:
    """What to read in attempts per request; without retries, all there is to say."""
    if not o.attempts or o.attempts < _MORE_THAN_ONCE or not o.end.first_rps:
        return "**Hardly anybody asks twice**, so retries add no load."
    last = o.end.offered_rps / o.end.first_rps
    return f"**Each request is sent {digits(o.attempts, 2)} times on average**, {digits(last, 2)} times at the end."


def spent_sentence(o: Overload) -> str:
    """What to read in where the work went."""
    spent = o.spent
    if not spent.total:
        return "**No work was done.**"
    useful = f"**{percent(spent.in_time / spent.total, 2)} of the work was for answers in time**"
    parts = [
        f"{percent(amount / spent.total, 2)} {what}"
        for amount, what in ((spent.late, "for late ones"), (spent.for_nothing, "for callers who had left"))
        if amount
    ]
    return f"{useful}{', ' if parts else ''}{' and '.join(parts)}."


# -- ways of saying no -------------------------------------------------------------------------------------------------


def name(way: Way) -> str:
    """A way's name, short enough for an axis."""
    value = way.value or 0.0
    match way.kind:
        case "now":
            return "as it is now"
        case "everybody":
            return "refuse nobody"
        case "shed":
            return f"refuse predicted waits over {seconds(value)}"
        case "queue_timeout":
            return f"drop after {seconds(value)} in the queue"
        case "cap":
            return f"refuse above {value:,.0f} a replica"
        case "codel":
            return f"CoDel, {seconds(value)}"
        case "lifo":
            return f"newest first after {seconds(value)}"
        case "rate_limit":
            return f"rate limit {digits(value)} a second"
        case "throttle":
            return "a cap, and clients hold back"
        case "budget":
            return f"retry budget {percent(value)}"
        case "abort":
            return "stop when the caller leaves"


def button(way: Way) -> str:
    """What a button that sets the way says: a verb first."""
    value = way.value or 0.0
    match way.kind:
        case "now":
            return "Keep it"
        case "everybody":
            return "Refuse nobody"
        case "shed":
            return f"Refuse predicted waits over {seconds(value)}"
        case "queue_timeout":
            return f"Drop after {seconds(value)} in the queue"
        case "cap":
            return f"Refuse above {count(round(value), 'request')} a replica"
        case "codel":
            return f"Use CoDel with {seconds(value)}"
        case "lifo":
            return f"Serve the newest first after {seconds(value)}"
        case "rate_limit":
            return f"Limit the rate to {digits(value)} a second"
        case "throttle":
            return "Let clients hold back"
        case "budget":
            return f"Allow {percent(value)} retries"
        case "abort":
            return "Stop when the caller leaves"


def good_share(tried: Tried) -> float:
    """Share in time of all who came."""
    return tried.fates.shares.get("in_time", 0.0)


def shown(found: Sequence[Tried]) -> list[Tried]:
    """One of each kind, of the caps the best: the present way first, then from best to worst."""
    best: dict[str, Tried] = {}
    for tried in found:
        if tried.way.kind not in best or good_share(tried) > good_share(best[tried.way.kind]):
            best[tried.way.kind] = tried
    return sorted(best.values(), key=lambda tried: (tried.way.kind != "now", -good_share(tried)))


def ways_sentence(found: Sequence[Tried], scenario: Scenario) -> str:
    """What to read in the comparison of the ways."""
    now, *others = shown(found)
    word = "in time" if scenario.slo else "answered"
    if not now.fates.total:
        return "**Nobody comes, so there is nothing to compare.**"
    as_is = f"{percent(good_share(now), 2)} are {word} as it is now"
    if not others:
        return f"**{as_is}.**"
    best = others[0]
    if good_share(best) <= good_share(now) + _NOTICEABLE:
        return f"**{as_is}, and no way of saying no gets more.**"
    refused = best.fates.shares["refused"]
    price = f", {percent(refused, 2)} refused" if refused >= _NOTICEABLE else ""
    verb = button(best.way)
    what = f"{verb[:1].lower()}{verb[1:]}"
    return f"**{as_is}. Best of what was tried is to {what}:** {percent(good_share(best), 2)} {word}{price}."


def caps(found: Sequence[Tried]) -> list[Tried]:
    """The caps from the smallest on, then no cap at all."""
    nobody = [t for t in found if t.way.kind == "everybody"] or [t for t in found if t.way.kind == "now"]
    return sorted((t for t in found if t.way.kind == "cap"), key=lambda t: t.way.value or 0.0) + nobody[:1]


def caps_sentence(found: Sequence[Tried]) -> str:
    """What to read in the fates against the cap."""
    *capped, without = caps(found)
    best = max(capped, key=good_share)
    without_cap = f"without a cap {percent(good_share(without), 2)}"
    if good_share(best) <= good_share(without) + _NOTICEABLE:
        return f"**No cap does better than none:** {without_cap} are in time."
    refused = best.fates.shares["refused"]
    kept = f"{percent(good_share(best), 2)} are in time and {percent(refused, 2)} are refused"
    most = f"A cap of {count(round(best.way.value or 0), 'request')} a replica is best:"
    return f"**{most} {kept};** {without_cap} are in time. Smaller ones leave seats empty, larger ones a queue."


def source(found: Sequence[Tried]) -> str:
    """Where the comparison comes from."""
    first = found[0]
    runs = f"{count(first.runs, 'run')} of {seconds(first.horizon_s)}" if first.runs > 1 else seconds(first.horizon_s)
    return (
        f"From {runs}, the same requests for every way. Each stands alone: it takes the place of what is set now. "
        "A request counts by the attempt that decided it, and that attempt's wait. Undo takes a change back."
    )


def progress(done: int, all_of_them: int) -> str:
    """While the ways are being tried."""
    return f"Trying ways of saying no with the same requests: {done} of{NBSP}{all_of_them}."
