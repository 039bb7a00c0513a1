"""The words of ``recbias list`` and ``recbias show``."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator

from recbias.config.describe import Parameter, parameters, summary
from recbias.core.errors import PluginError, UnknownName
from recbias.core.suggestions import did_you_mean, plain
from recbias.plugins import REGISTRIES
from recbias.reports.sources import about, list_published

KINDS = (
    *("datasets", "filters", "splits", "queries", "models", "detectors", "metrics", "tests"),
    *("templates", "prompts", "mitigations", "references"),
)
"""What ``recbias list`` takes."""


def entries(kind: str) -> list[tuple[str, str]]:
    """Return name and first sentence of everything of a kind.

    Raises:
        UnknownName: There is no such kind.
    """
    wanted = {plain(each): each for each in KINDS}.get(plain(kind))
    if wanted is None:
        raise UnknownName(f"no kind is called {kind!r}", remedy=did_you_mean(kind, KINDS))
    if wanted == "references":
        return [(name, about(name).title) for name in list_published()]
    if wanted not in REGISTRIES:
        return []
    registry = REGISTRIES[wanted]
    return [(name, _sentence(wanted, name)) for name in registry.names()]


def describe(name: str) -> str:
    """Return what a plug-in is, in words, whatever its kind.

    Raises:
        UnknownName: Nothing is called so.
    """
    found = list(_found(name))
    if not found:
        names = [each for registry in REGISTRIES.values() for each in registry.names()]
        raise UnknownName(f"no plug-in is called {name!r}", remedy=did_you_mean(name, names))
    return "\n\n".join(_page(kind, spelling) for kind, spelling in found)


def _found(name: str) -> Iterator[tuple[str, str]]:
    for kind, registry in REGISTRIES.items():
        try:
            yield kind, registry.canonical(name)
        except UnknownName:
            continue


def _sentence(kind: str, name: str) -> str:
    try:
        return summary(REGISTRIES[kind].load(name))
    except PluginError as error:
        return f"({error.found}; {error.remedy})"


def _page(kind: str, name: str) -> str:
    loaded = REGISTRIES[kind].load(name)
    lines = [f"{name}  ({REGISTRIES[kind].kind})", "", inspect.getdoc(loaded) or ""]
    facts = {
        "formula": "formula",
        "direction": "best",
        "values": "range",
        "needs": "needs",
        "provides": "provides",
        "source": "source",
    }
    known = [(word, vars(loaded)[each]) for each, word in facts.items() if each in vars(loaded)]
    lines += ["", *[_fact(word, value) for word, value in known if value]]
    rows = parameters(loaded)
    if rows:
        lines += ["", "parameters:"]
        lines += [f"  {row.name}: {row.type}{_default(row)}{_range(row.range)}" for row in rows]
    return "\n".join(lines).rstrip()


def _default(row: Parameter) -> str:
    return ", needed" if row.needed else f" = {row.default}"


def _range(words: str) -> str:
    return f"  ({words})" if words else ""


def _fact(word: str, value: object) -> str:
    text = ", ".join(sorted(value)) if isinstance(value, frozenset) else str(value)
    return textwrap.indent(f"{word}: {text}", "").rstrip()
