"""Read the re-rankers of a model's entry, each of which makes an entry beside the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recbias.config.labels import distinguish_plugins
from recbias.config.plugin_spec import PluginSpec, Reranked
from recbias.config.search_space import ResolveMetric
from recbias.core.errors import ConfigError, Contradiction, OutOfRange, UserError, WrongType
from recbias.core.models.rerankers import RerankedModel
from recbias.core.models.selected_models import SelectedModel
from recbias.core.registry import Registry
from recbias.formats.yaml.source_map import Document, KeyPath


@dataclass(frozen=True)
class RerankerReader:
    """Reads the value of ``rerank``; faults are recorded in the document.

    Args:
        registry: The re-rankers.
        resolve: Resolves an entry of a kind.
        k: The length of the lists.
    """

    document: Document
    registry: Registry
    resolve: ResolveMetric
    k: int

    def read(self, raw: Any, location: KeyPath) -> tuple[PluginSpec, ...]:
        """Return the re-rankers of an entry, or of a list; one for each value of its dial."""
        entries: list[tuple[Any, KeyPath]] = [(raw, location)]
        if isinstance(raw, list):
            entries = [(entry, (*location, at)) for at, entry in enumerate(raw)]
        if not entries:
            self._blame(location, "is an empty list", "name a re-ranker, or remove the key")
        read = [item for entry in entries for item in self._read_entry(*entry)]
        specs, values = [spec for spec, _ in read], [value for _, value in read]
        return tuple(distinguish_plugins(specs, values))

    def _read_entry(
        self, entry: Any, location: KeyPath
    ) -> Iterator[tuple[PluginSpec, dict[str, Any]]]:
        """Yield the re-rankers of an entry, each with the value of its dial in a list of them."""
        if isinstance(entry, dict) and "name" not in entry and "attribute" in entry:
            remedy = "name the re-ranker; without a name it was DetGreedy: add name: DetGreedy"
            self._blame(location, "has no name", remedy)
            return
        dial = self._find_dial(entry, location)
        if not dial or not isinstance(entry.get(dial), list):
            if (spec := self._resolve(entry, location)) is not None:
                yield spec, {}
            return
        if not entry[dial]:
            self._blame((*location, dial), "is an empty list", f"give values, or leave {dial} out")
        if "tune" in entry:
            remedy = f"remove tune, or the values of {dial}"
            self._blame(location, f"has values of {dial} and a search", remedy, Contradiction)
            return
        for value in self._refuse_repeated(entry[dial], (*location, dial)):
            spec = self._resolve(entry | {dial: value}, location)
            if spec is None:
                return
            yield spec, {dial: value}

    def _refuse_repeated(self, values: Sequence[Any], location: KeyPath) -> Sequence[Any]:
        """Return values each once; one that is there twice is a fault."""
        unique = [value for at, value in enumerate(values) if value not in values[:at]]
        if len(unique) < len(values):
            self._blame(location, "has a value twice", "list each value once", Contradiction)
        return unique

    def _find_dial(self, entry: Any, location: KeyPath) -> str:
        """Return the setting of which there may be several values, blank for a faulty entry."""
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            return ""
        try:
            cls: Any = self.registry.load(name, base=self.document.mark(location).folder)
        except UserError:  # reported where the entry is resolved
            return ""
        dial = getattr(cls, "dial", "")
        return dial if isinstance(dial, str) else ""

    def _resolve(self, entry: Any, location: KeyPath) -> PluginSpec | None:
        spec = self.resolve("rerankers", entry, location)
        n = None if spec is None else spec.parameters.get("candidates")
        if isinstance(n, int) and n < self.k:
            message = f"{n} candidates are fewer than k, which is {self.k}"
            where = (*location, "candidates") if "candidates" in entry else location
            self._blame(where, message, f"set candidates: {max(100, 10 * self.k)}", OutOfRange)
        return spec

    def _blame(
        self, location: KeyPath, message: str, remedy: str, kind: type[ConfigError] = WrongType
    ) -> None:
        self.document.add_fault(location, message, remedy=remedy, kind=kind)


def make_reranked(base: PluginSpec, reranker: PluginSpec) -> PluginSpec:
    """Return the entry of a model whose lists are re-ranked: ``EASE + calibration``."""
    settings: Mapping[str, Any] = {"name": reranker.name, **reranker.parameters}
    return replace(
        base,
        label=f"{base.label} + {reranker.label}",
        plugin=RerankedModel(SelectedModel(base.name, base.plugin), reranker.plugin),
        parameters=base.parameters | {"rerank": settings},
        where=reranker.where,
        tune=reranker.tune,
        rerankers=(),
        reranked=Reranked(replace(base, rerankers=()), reranker),
    )
