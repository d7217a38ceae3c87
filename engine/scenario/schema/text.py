"""Text as it may stand in a scenario: names and file names, no control characters."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def _printable(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("unprintable", "control characters")
    return text


Text = Annotated[str, AfterValidator(_printable)]
