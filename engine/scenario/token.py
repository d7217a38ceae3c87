"""A difference as a short text for a URL: canonical JSON, deflate, a head that tells damage from truncation, base64url.

Both ends know a list of words that scenarios are made of (`words/`, one file a schema number), which spares spelling
them out. The bytes of a token are: schema number (1), length of the body (2), check of these three (1), CRC-32 of all
that precedes it and of the body (4), body (raw deflate of canonical JSON). The head is the same for all schema numbers.
"""

from __future__ import annotations

import base64
import re
import string
import zlib
from functools import cache
from pathlib import Path
from typing import Any, Literal

from engine.scenario import jsontext
from engine.scenario.errors import ScenarioError
from engine.scenario.salvage import complete_json
from engine.scenario.schema.document import SCHEMA

MAX_CHARACTERS = 6_000
MAX_INFLATED = 256_000
_HEAD = 8
_WORDS = Path(__file__).parent / "words"
_ALPHABET = string.ascii_letters + string.digits + "-_"
_REPAIRABLE = 600  # characters; trying every other character in every place takes under 0.1 s up to here

Kind = Literal[
    "damaged", "truncated", "too_long", "too_large", "newer_schema", "invalid", "unknown_preset", "changed_preset"
]


class TokenError(Exception):
    """A token that can't be read: `kind`, in words, and what of it can be read for certain."""

    def __init__(self, kind: Kind, reason: str, remedy: str, readable: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.remedy = kind, reason, remedy
        self.readable: dict[str, Any] = readable or {}


def encode(content: dict[str, Any], schema: int = SCHEMA) -> str:
    """The token that carries a plain JSON object. Raises `TokenError` ("too_long")."""
    text = jsontext.canonical(content).encode()
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=_words(schema))
    body = squeeze.compress(text) + squeeze.flush()
    characters = -(-(_HEAD + len(body)) * 4 // 3)
    if len(text) > MAX_INFLATED or characters > MAX_CHARACTERS:
        raise TokenError(
            "too_long",
            f"too long: this scenario needs {characters:,} characters, and a link has at most {MAX_CHARACTERS:,}",
            "save it as a file instead",
        )
    head = schema.to_bytes(1) + len(body).to_bytes(2)
    head += _check(head)
    packed = head + zlib.crc32(head + body).to_bytes(4) + body
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode(token: str) -> tuple[int, dict[str, Any]]:
    """(schema number, object) that a token carries. Raises `TokenError`."""
    token = re.sub(r"\s|^[^\w-]+|[^\w-]+$", "", token, flags=re.ASCII)  # what mail and chat programs put around links
    if len(token) > MAX_CHARACTERS:
        raise TokenError(
            "too_long",
            f"too long: {len(token):,} characters, and at most {MAX_CHARACTERS:,} are read",
            "ask for the scenario as a file",
        )
    if not set(token) <= set(_ALPHABET):
        raise _damaged(token, "it has characters that no link has")
    packed = _bytes(token)
    if packed[3:4] != _check(packed[:3]):
        if len(packed) < _HEAD:
            raise _truncated("only its beginning arrived", {})
        raise _damaged(token, "its beginning was altered")
    schema, length, body = packed[0], int.from_bytes(packed[1:3]), packed[_HEAD:]
    if len(body) < length:
        needed = -(-(_HEAD + length) * 4 // 3)
        readable = complete_json(_inflate(body, schema, whole=False))
        raise _truncated(f"{len(token):,} of its {needed:,} characters arrived", readable)
    if len(body) > length:
        raise _damaged(token, f"it has {len(body) - length} bytes too many")
    if not _sound(packed):
        raise _damaged(token, "its checksum doesn't match")
    if schema > SCHEMA:
        raise _newer(schema, body)
    try:
        content = jsontext.parse(_inflate(body, schema, whole=True))
    except ScenarioError as error:
        raise TokenError("invalid", f"wrong inside: {error}", "ask for the link again") from None
    if not isinstance(content, dict):
        raise TokenError("invalid", "wrong inside: not an object", "ask for the link again")
    return schema, content


@cache
def _words(schema: int) -> bytes:
    """What both ends know by heart. The file of a schema number that was ever released must not change."""
    return (_WORDS / f"{schema}.json").read_bytes()


def _check(head: bytes) -> bytes:
    return (zlib.crc32(head) & 0xFF).to_bytes(1)


def _sound(packed: bytes) -> bool:
    """Whether a packed token of the right length has the right checksum."""
    return zlib.crc32(packed[:4] + packed[_HEAD:]) == int.from_bytes(packed[4:_HEAD])


def _bytes(token: str) -> bytes:
    whole = token[:-1] if len(token) % 4 == 1 else token  # a lone last character says nothing
    return base64.urlsafe_b64decode(whole + "=" * (-len(whole) % 4))


def _inflate(body: bytes, schema: int, whole: bool) -> str:
    """The text of a deflated body: all of it, or as much as there is."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS, zdict=_words(min(schema, SCHEMA)))
    try:
        data = stream.decompress(body, MAX_INFLATED + 1)
    except zlib.error:
        data = b""
    if len(data) > MAX_INFLATED:
        raise TokenError(
            "too_large", f"too large: it unpacks to more than {MAX_INFLATED:,} bytes", "ask for the scenario as a file"
        )
    if whole and not stream.eof:
        raise TokenError("damaged", "damaged: it can't be unpacked", "ask for the link again")
    try:
        return data.decode(errors="strict" if whole else "ignore")
    except UnicodeDecodeError:
        raise TokenError("invalid", "wrong inside: not UTF-8 text", "ask for the link again") from None


def _truncated(reason: str, readable: dict[str, Any]) -> TokenError:
    return TokenError("truncated", f"cut short: {reason}", "copy the whole link again", readable)


def _newer(schema: int, body: bytes) -> TokenError:
    try:
        readable = complete_json(_inflate(body, schema, whole=False))
    except TokenError:
        readable = {}
    return TokenError(
        "newer_schema",
        f"made by a newer version (schema {schema}, this one reads up to {SCHEMA})",
        "update this installation, or open the link where it was made",
        readable,
    )


def _damaged(token: str, reason: str) -> TokenError:
    return TokenError("damaged", f"damaged: {reason}", "copy the link again", _mend(token))


def _mend(token: str) -> dict[str, Any]:
    """What the token says with one character put right; {} when no single character makes it sound.

    The two checks together make a wrong mending less likely than one in a million.
    """
    foreign = [position for position, char in enumerate(token) if char not in _ALPHABET]
    if len(token) > _REPAIRABLE or len(foreign) > 1:
        return {}
    for position in foreign or range(len(token)):
        for char in _ALPHABET:
            packed = _bytes(f"{token[:position]}{char}{token[position + 1 :]}")
            if packed[3:4] != _check(packed[:3]) or len(packed) - _HEAD != int.from_bytes(packed[1:3]):
                continue
            if _sound(packed) and 1 <= packed[0] <= SCHEMA:
                return complete_json(_inflate(packed[_HEAD:], packed[0], whole=False))
    return {}
