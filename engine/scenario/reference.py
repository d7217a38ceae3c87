"""docs/scenario-fields.md, written from the schema: `python -m engine.scenario.reference > docs/scenario-fields.md`."""

from __future__ import annotations

import dataclasses
import sys
from itertools import groupby

from engine.scenario import jsontext
from engine.scenario.describe import ParamInfo, describe, figure, parameters

_INTRO = """# The scenario, field by field

Written from the schema by `python -m engine.scenario.reference`: change the schema, not this page. `N` stands for the
number of a list's item, from 0.
"""
_HEADER = """
| field | what it is | unit | default | accepted | engine's flag | why this default |
|---|---|---|---|---|---|---|
"""


def reference_markdown() -> str:
    """The whole page: a table for each part of the document, a row for each field."""
    pages = [_INTRO]
    for part, infos in groupby(_merged(), key=lambda info: info.path.partition(".")[0]):
        own = describe(part)
        pages.append(f"\n## {own.label}: `{part}`\n\n{own.help}\n")
        pages.append(_HEADER + "".join(_row(info) for info in infos))
    return "".join(pages)


def _merged() -> list[ParamInfo]:
    """The leaves, those that several kinds of an object share alike told once, `kind` naming them all."""
    rows: dict[ParamInfo, list[str]] = {}
    for info in parameters():
        told = dataclasses.replace(info, kind="", default=jsontext.canonical(info.default))
        rows.setdefault(told, []).append(info.kind)
    return [dataclasses.replace(info, kind=", ".join(filter(None, kinds))) for info, kinds in rows.items()]


def _row(info: ParamInfo) -> str:
    only = f" ({info.kind})" if info.kind else ""
    meaning = f"**{info.label}**. {info.help}"
    cells = [f"`{info.path}`{only}", meaning, info.unit, _default(info), _accepted(info), _code(info.flag), info.why]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


def _default(info: ParamInfo) -> str:
    if info.default == "null":
        return f"null: {info.null}" if info.null else ""
    return f"`{info.default}`" if len(info.default) <= 60 else "see its keys"


def _accepted(info: ParamInfo) -> str:
    if info.choices:
        return "; ".join(f"`{c.value}` {c.word}" for c in info.choices)
    if info.form in ("integer", "number"):
        return f"{figure(info.low)} to {figure(info.high)}{', or null' if info.null else ''}"
    return info.accepted


def _code(flag: str | None) -> str:
    return f"`{flag}`" if flag else ""


if __name__ == "__main__":
    sys.stdout.write(reference_markdown())
