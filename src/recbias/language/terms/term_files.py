"""Files of terms: the packaged lists, and a user's own YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from recbias.core.errors import UnknownName
from recbias.core.input_files import has_file
from recbias.core.suggestions import normalize_name, suggest
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.terms.term_pairs import TermPairs

KEYS = ("about", "source", "whole_words", "categories")
"""The keys of a file of terms."""

CATEGORY_KEYS = ("groups", "targets", "attributes")
"""The keys of a category."""

BLANKS = frozenset({"", "null", "~"})
"""How a file writes that an attribute term has no counterpart."""


@dataclass(frozen=True)
class TermList:
    """A packaged file of terms.

    Args:
        name: Its name, which ``terms`` of a model takes.
        about: What it holds, in one sentence.
        source: Where it comes from.
        categories: The terms by category.
    """

    name: str
    about: str
    source: str
    categories: Mapping[str, TermPairs]

    @property
    def content(self) -> str:
        """The groups and the terms of each category."""
        return "\n".join(line for pairs in self.categories.values() for line in _describe(pairs))


def _describe(pairs: TermPairs) -> Iterator[str]:
    """Yield the lines of a category: its name and groups, then its terms."""
    yield f"{pairs.category}: {' and '.join(pairs.groups)}"
    for kind, terms in (("target", pairs.targets), ("attribute", pairs.attributes)):
        words = [f"{first}/{second}" if second else first for first, second in terms]
        lines = [", ".join(words[start : start + 10]) for start in range(0, len(words), 10)]
        for number, line in enumerate(lines):
            yield f"    {line}" if number else f"  {len(words)} {kind} terms: {line}"


def load_term_lists() -> dict[str, TermList]:
    """Return the packaged files of terms by name."""
    with as_file(files("recbias.language").joinpath("packaged", "terms")) as folder:
        return {path.stem: _read_list(path) for path in sorted(folder.glob("*.yaml"))}


def _read_list(path: Path) -> TermList:
    top = read_marked(path).mapping("the file of terms", KEYS)
    about, source = (" ".join(top[key].text(key).split()) for key in ("about", "source"))
    return TermList(path.stem, about, source, read_terms(path))


def load_packaged_terms() -> dict[str, Mapping[str, TermPairs]]:
    """Return the packaged terms by name, then by category."""
    return {name: terms.categories for name, terms in load_term_lists().items()}


def load_terms(terms: str | Path) -> Mapping[str, TermPairs]:
    """Return the terms of a packaged name (``chbias``) or of a YAML file, by category.

    >>> load_terms("chbias")["gender"].swap_targets("她的姐姐")
    '他的哥哥'

    Raises:
        UnknownName: It is neither a packaged name nor a file.
        MalformedLine: The file has not the layout of terms; see ``read_terms``.
    """
    packaged = {normalize_name(name): pairs for name, pairs in load_packaged_terms().items()}
    if normalize_name(str(terms)) in packaged:
        return packaged[normalize_name(str(terms))]
    if has_file(Path(terms)):
        return read_terms(Path(terms))
    message = f"{str(terms)!r} is neither a packaged list of terms nor a file"
    raise UnknownName(message, where="terms", remedy=suggest(str(terms), packaged))


def select_category(terms: Mapping[str, TermPairs], category: str) -> TermPairs:
    """Return the terms of a category.

    Raises:
        UnknownName: There is no such category.
    """
    for name, pairs in terms.items():
        if normalize_name(name) == normalize_name(category):
            return pairs
    message = f"the terms have no category {category!r}"
    raise UnknownName(message, where="category", remedy=suggest(category, terms))


def read_terms(path: Path) -> dict[str, TermPairs]:
    """Return the terms of a YAML file by category.

    The file has ``categories``: each has ``groups`` (two names), ``targets`` (pairs of terms) and
    may have ``attributes`` (pairs, the second null where there is none). It may have ``about``,
    ``source`` and ``whole_words`` (true for languages that are written with spaces).

    Raises:
        MissingFile: The file does not exist.
        BadYaml: It is not YAML.
        MalformedLine: A key or value is invalid, or a first term occurs twice.
    """
    top = read_marked(path).mapping("the file of terms", KEYS)
    if "categories" not in top:
        remedy = "write categories: {gender: {groups: [..], targets: [[..]]}}"
        raise MarkedValue("", str(path)).fault("there are no categories", remedy=remedy)
    whole_words = top["whole_words"].text("whole_words") if "whole_words" in top else "false"
    if whole_words.lower() not in {"true", "false"}:
        raise top["whole_words"].fault("whole_words must be true or false")
    categories = top["categories"].mapping("categories")
    is_spaced = whole_words.lower() == "true"
    return {
        name: _parse_category(name, entry, whole_words=is_spaced)
        for name, entry in categories.items()
    }


def _parse_category(name: str, entry: MarkedValue, *, whole_words: bool) -> TermPairs:
    settings = entry.mapping(f"the category {name}", CATEGORY_KEYS)
    for key in ("groups", "targets"):
        if key not in settings:
            raise entry.fault(f"the category {name} has no {key}")
    groups = [group.text("a group") for group in settings["groups"].entries("groups")]
    if len(set(groups)) != 2:
        raise settings["groups"].fault("groups must be two different names")
    targets = _parse_pairs(settings["targets"], "target")
    if any(second is None for _, second in targets) or not targets:
        remedy = "give a term without counterpart the generic term of the second group"
        raise settings["targets"].fault("each target term needs a counterpart", remedy=remedy)
    attributes = (
        _parse_pairs(settings["attributes"], "attribute") if "attributes" in settings else ()
    )
    complete = tuple((first, str(second)) for first, second in targets)
    return TermPairs(name, (groups[0], groups[1]), complete, attributes, whole_words)


def _parse_pairs(marked: MarkedValue, kind: str) -> tuple[tuple[str, str | None], ...]:
    pairs: list[tuple[str, str | None]] = []
    for entry in marked.entries(f"the {kind} terms"):
        terms = entry.entries(f"a pair of {kind} terms")
        if len(terms) != 2:
            raise entry.fault(f"a pair of {kind} terms has two terms", remedy="write [a, b]")
        first = terms[0].text(f"a {kind} term").strip()
        is_blank = terms[1].value in [*BLANKS]  # not the set: the value may be of any type
        second = None if is_blank else terms[1].text(f"a {kind} term").strip()
        if first.lower() in {earlier.lower() for earlier, _ in pairs}:
            raise entry.fault(
                f"the {kind} term {first!r} has two pairs", remedy="keep one of them"
            )
        if second is not None and first.lower() == second.lower():
            raise entry.fault(f"the {kind} term {first!r} is paired with itself")
        pairs.append((first, second))
    return tuple(pairs)
