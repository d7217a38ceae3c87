"""Writes the tables and curves of the replayed runs into `docs/`: `python -m tests.vllm_runs.draw`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.vllm_runs.recorded import RUNS, Floats, Recorded, data_folder, read
from tests.vllm_runs.replay import (
    CORRELATED_ABOVE,
    Replay,
    correlation,
    figures,
    reaches,
    replay,
    stored,
    stored_profile,
    tpot_error,
)

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PAGE = DOCS / "accuracy.md"
TITLES = {
    "RTX4090_Llama-3.1-8B": "Llama-3.1-8B on one RTX 4090",
    "RTXPRO6000_Qwen3-32B": "Qwen3-32B on two RTX PRO 6000",
}
OURS, REAL, INK, GRID = "#0068ad", "#c44e00", "#0b1420", "#d5dbe4"
WIDTH, LEFT, RIGHT, TOP, PANEL, GAP, BOTTOM = 760, 52, 16, 56, 150, 44, 40

Replays = dict[str, tuple[Recorded, Replay]]


@dataclass(frozen=True)
class Panel:
    """One quantity of both sides over the recording's ticks."""

    title: str
    ours: Floats
    real: Floats


def replays(data: Path) -> Replays:
    """Both runs with their stored profiles."""
    recorded = {name: read(data, name) for name in RUNS}
    return {name: (run, replay(run, stored_profile(name))) for name, run in recorded.items()}


# -- tables ------------------------------------------------------------------------------------------------------------


def figures_table(recorded: Recorded, ours: Replay) -> str:
    """Ours, real, difference and what is allowed, a line a figure."""
    lines = [
        [f.name, f"{f.ours:.2f} s", f"{f.real:.2f} s", f"{f.difference:+.2%}", f"within {f.within:.0%}"]
        for f in figures(recorded, ours)
    ]
    for panel in panels(recorded, ours)[:2]:
        mean = [f"{values.mean():.1f}" for values in (panel.ours, panel.real)]
        alike = f"correlation {correlation(panel.ours, panel.real):.4f}"
        lines.append([f"{panel.title}, mean over the ticks", *mean, alike, f"above {CORRELATED_ABOVE}"])
    return _markdown(["", "ours", "real", "difference", "asked for"], lines)


def profile_table() -> str:
    """The fitted coefficients of both runs beside the least that the data sheets allow, in microseconds."""
    runs = stored()
    lines = []
    for coefficient in runs[RUNS[0]]["profile"]:
        line = [f"`{coefficient}`"]
        for name in RUNS:
            fitted, least = (runs[name][which][coefficient] * 1e6 for which in ("profile", "least"))
            line += [_plain(fitted), _plain(least) if least else "-"]
        lines.append(line)
    head = [text for name in RUNS for text in (f"{TITLES[name]}, fitted", "data sheet")]
    return _markdown(["microseconds", *head], lines)


def rules_table(runs: Replays) -> str:
    """How near the runs come under rules that their servers didn't follow, each with a profile fitted under them."""
    lines = []
    for name, (recorded, right) in runs.items():
        others = [(_name(rule["changes"]), other_replay(recorded, rule)) for rule in stored()[name]["other_rules"]]
        for title, ours in [("the run's own", right), *others]:
            off = [f"{f.difference:+.1%}" for f in figures(recorded, ours)]
            alike = [f"{correlation(p.ours, p.real):.3f}" for p in panels(recorded, ours)[:2]]
            tpot = f"{tpot_error(recorded, ours):.1%}"
            lines.append([TITLES[name], title, *off, *alike, "yes" if reaches(recorded, ours) else "no", tpot])
    names = [f.name for f in figures(*runs[RUNS[0]])]
    return _markdown(["run", "rule", *names, "running", "waiting", "near enough", "TPOT, each request"], lines)


def other_replay(recorded: Recorded, rule: dict[str, Any]) -> Replay:
    """The run under a changed rule, with the profile that was fitted under it."""
    return replay(recorded, rule["profile"], rule["changes"])


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _name(changes: dict[str, object]) -> str:
    return ", ".join(f"`{path.removeprefix('batching.')}: {value}`" for path, value in changes.items())


def _markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


# -- curves ------------------------------------------------------------------------------------------------------------


def panels(recorded: Recorded, ours: Replay) -> list[Panel]:
    """Running, waiting, and the KV cache where the run recorded it."""
    found = [
        Panel("requests running", ours.running, recorded.running),
        Panel("requests waiting", ours.waiting, recorded.waiting),
    ]
    if recorded.kv_usage.any():
        found.append(Panel("KV cache in use, %", ours.kv_usage * 100, recorded.kv_usage * 100))
    return found


def svg(recorded: Recorded, ours: Replay) -> str:
    """The run's curves: a line for ours, a dot a second for the real ones."""
    drawn = panels(recorded, ours)
    height = TOP + len(drawn) * (PANEL + GAP) - GAP + BOTTOM
    end = float(np.ceil(recorded.tick_s[-1] / 20) * 20)
    title = f"{TITLES[recorded.name]}: simulated and recorded"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="12" fill="{INK}" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{title}</text>',
        f'<line x1="480" y1="16" x2="504" y2="16" stroke="{OURS}" stroke-width="2"/>',
        '<text x="510" y="20">simulated</text>',
        f'<circle cx="590" cy="16" r="2.2" fill="{REAL}"/>',
        '<text x="598" y="20">recorded, once a second</text>',
    ]
    for i, panel in enumerate(drawn):
        parts += _panel(panel, recorded.tick_s, end, TOP + i * (PANEL + GAP))
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{height - 8}" text-anchor="end">seconds since the first arrival</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, tick_s: Floats, end: float, top: int) -> list[str]:
    most = float(max(panel.ours.max(), panel.real.max()))
    step = next(s for s in (10, 20, 25, 50, 100, 200) if most / s <= 5)
    ceiling = step * np.ceil(most / step)
    x = LEFT + tick_s / end * (WIDTH - LEFT - RIGHT)

    def height(values: Floats) -> Floats:
        return np.asarray(top + PANEL * (1 - values / ceiling))

    parts = [f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{panel.title}</text>']
    for level in np.arange(0, ceiling + step / 2, step):
        y = float(height(level))
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{GRID}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{level:.0f}</text>')
    for second in np.arange(0, end + 1, 20):
        at = LEFT + second / end * (WIDTH - LEFT - RIGHT)
        parts.append(f'<text x="{at:.1f}" y="{top + PANEL + 16}" text-anchor="middle">{second:.0f}</text>')
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, height(panel.ours), strict=True))
    parts.append(f'<polyline points="{line}" fill="none" stroke="{OURS}" stroke-width="2"/>')
    dots = "".join(f"M{a:.1f},{b:.1f}h0" for a, b in zip(x, height(panel.real), strict=True))
    parts.append(f'<path d="{dots}" stroke="{REAL}" stroke-width="3.6" stroke-linecap="round" fill="none"/>')
    return parts


# -- docs --------------------------------------------------------------------------------------------------------------


def image(name: str) -> Path:
    """Where a run's curves are kept."""
    return DOCS / "img" / f"vllm-{name.split('_')[0].lower()}.svg"


def blocks(runs: Replays) -> dict[str, str]:
    """The page's tables by the name that stands in their markers."""
    tables = {f"figures {name}": figures_table(*pair) for name, pair in runs.items()}
    return tables | {"profiles": profile_table(), "rules": rules_table(runs)}


def filled(page: str, tables: dict[str, str]) -> str:
    """The page with every table between its markers `<!-- name -->` and `<!-- end -->` replaced."""
    for name, table in tables.items():
        before, marker, rest = page.partition(f"<!-- {name} -->\n")
        assert marker, f"{PAGE.name} has no place for {name}"
        page = before + marker + table + "\n" + rest[rest.index("<!-- end -->") :]
    return page


def main() -> None:
    """Draw both runs and fill the page's tables."""
    runs = replays(data_folder())
    for name, pair in runs.items():
        image(name).write_text(svg(*pair))
    PAGE.write_text(filled(PAGE.read_text(), blocks(runs)))


if __name__ == "__main__":
    main()
