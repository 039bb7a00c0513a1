"""Measures how far the names of Python files follow the vocabulary of the field."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

EMPTY_NAMES = frozenset(
    {
        *("each", "found", "made", "said", "told", "one", "known", "wanted", "held"),
        *("asked", "given", "written", "kept", "shown", "drawn", "place", "here", "what"),
        *("where", "who", "others", "several", "own", "some"),
    }
)
"""Pronouns and participles that do not say what a variable holds."""

PARTICIPLES = frozenset(
    {
        *("found", "made", "said", "told", "known", "held", "given", "written", "kept"),
        *("shown", "drawn", "sent", "taken", "built", "sought", "begun"),
    }
)
PREPOSITIONS = frozenset(
    {
        *("of", "in", "by", "with", "without", "over", "as", "to", "on", "at", "among"),
        *("inside", "against", "behind", "under", "past", "along"),
    }
)
NOUNS = frozenset(
    {
        *("seed", "embed", "speed", "feed", "need", "exceed", "string", "ranking"),
        *("embedding", "rating", "training"),
    }
)
"""Words that end like a participle but are none."""

CONVERSIONS = ("as_", "to_", "from_", "with_")
"""Prefixes of functions that need no verb."""


@dataclass(frozen=True)
class Vocabulary:
    """The names of Python files that do not follow the vocabulary.

    Args:
        n_names: How many times a variable is used.
        empty_names: Those of the uses that say nothing, as ``file:line: name``.
        n_functions: How many functions there are, without properties, overloads and tests.
        verbless: Those of the functions that start with a participle or a preposition.
    """

    n_names: int
    empty_names: tuple[str, ...]
    n_functions: int
    verbless: tuple[str, ...]

    @property
    def empty_per_1000(self) -> float:
        return 1000 * len(self.empty_names) / max(self.n_names, 1)

    @property
    def verbless_percent(self) -> float:
        return 100 * len(self.verbless) / max(self.n_functions, 1)


def measure_vocabulary(paths: Iterable[Path]) -> Vocabulary:
    """Count the empty names and the functions without a verb in Python files."""
    names: list[tuple[str, bool]] = []
    functions: list[tuple[str, bool]] = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name):
                names.append((f"{path}:{node.lineno}: {node.id}", node.id in EMPTY_NAMES))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and needs_verb(node):
                functions.append((f"{path}:{node.lineno}: {node.name}", lacks_verb(node.name)))
    return Vocabulary(len(names), select(names), len(functions), select(functions))


def select(entries: Iterable[tuple[str, bool]]) -> tuple[str, ...]:
    return tuple(text for text, selected in entries if selected)


def needs_verb(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether the name of a function should start with a verb."""
    decorators = " ".join(ast.unparse(decorator) for decorator in function.decorator_list)
    is_exempt = "property" in decorators or "overload" in decorators
    return not is_exempt and not function.name.startswith(("__", "test_"))


def lacks_verb(name: str) -> bool:
    """Return whether the name of a function starts with a participle or a preposition."""
    name = name.strip("_")
    word = name.split("_")[0]
    if name.startswith(CONVERSIONS) or word in NOUNS:
        return False
    return word in PREPOSITIONS | PARTICIPLES or word.endswith(("ed", "ing"))
