"""The scenario: the validated document, and the ways in and out of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from engine.scenario import jsontext
from engine.scenario.errors import ScenarioError, show
from engine.scenario.explain import explain
from engine.scenario.paths import with_changes
from engine.scenario.schema.document import Document


class Scenario(Document):
    """Everything that a run depends on; immutable, validated, hashable. `Scenario()` is a quiet service."""

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The scenario that a document stands for; missing keys take their defaults. Raises `ScenarioError`."""
        values = jsontext.plain(document)
        if not isinstance(values, dict):
            raise ScenarioError.of("", show(values), "is not an object", "give a scenario: {...}")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ScenarioError(explain(error)) from None

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """The scenario in a file, or in a text that begins with "{". Raises `ScenarioError`."""
        if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("{"):
            return cls.from_dict(jsontext.parse(source.lstrip("\ufeff")))
        return cls.from_dict(jsontext.read(Path(source)))

    @classmethod
    def from_link(cls, link: str) -> Scenario:
        """The scenario of a URL, a query string or a bare token. Raises `LinkError`."""
        from engine.scenario.link import from_query  # which needs Scenario itself

        return from_query(link)

    def to_dict(self) -> dict[str, Any]:
        """The complete document, defaults filled in, of plain JSON types."""
        return self.model_dump(mode="json", by_alias=True)

    def to_link(self, preset: str | None = None) -> str:
        """The query string that carries this scenario ("s=..."). Raises `LinkError` when it would be too long."""
        from engine.scenario.link import to_query

        return to_query(self, preset)

    @cached_property
    def token(self) -> str:
        """A digest of the document: equal for equal scenarios, different otherwise; a key for caches."""
        return hashlib.blake2b(jsontext.canonical(self.to_dict()).encode(), digest_size=16).hexdigest()

    @property
    def replicas(self) -> int:
        """Replicas that the fleet begins with: of both pools, where prompts and answers have one each."""
        pools = self.batching.disaggregated
        apart = self.batching.policy == "disaggregated"
        return pools.prefill_replicas + pools.decode_replicas if apart else self.fleet.replicas

    def replace(self, changes: Mapping[str, Any]) -> Self:
        """A copy with settings changed, by dotted path ("traffic.rate_rps", "slo.0.target"). Raises `ScenarioError`."""
        return type(self).from_dict(with_changes(self.to_dict(), changes))
