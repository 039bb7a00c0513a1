"""Pairs of terms of two groups, in packaged lists or YAML files, and texts with terms swapped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from recbias.core.errors import NothingLeft, UnknownName
from recbias.core.files import has_file
from recbias.core.text import normalize_name, suggest
from recbias.formats.yaml import MarkedValue, read_marked


def find_packaged(*parts: str) -> Path:
    """Return a packaged folder or file of words, templates or prompts."""
    return Path(__file__).parent.joinpath("packaged", *parts)


@dataclass(frozen=True)
class TermPairs:
    """The terms of one category, such as gender: those that name two groups, and attributes.

    Args:
        category: The category.
        groups: The first group, which the stereotypes are about, and the second.
        targets: Pairs of target terms, of the first group and of the second: (mother, father).
        attributes: Attribute terms of the first group, each with its counterpart or None.
        whole_words: Whether a term is a word between spaces or punctuation; False for languages
            that are written without spaces, where a term is found anywhere.

    >>> pairs = TermPairs("gender", ("female", "male"), (("mother", "father"),), (), True)
    >>> pairs.swap_targets("My Mother met a grandmother.")
    'My Father met a grandmother.'
    """

    category: str
    groups: tuple[str, str]
    targets: tuple[tuple[str, str], ...]
    attributes: tuple[tuple[str, str | None], ...] = ()
    whole_words: bool = False

    @property
    def target_terms(self) -> tuple[str, ...]:
        """The target terms of the first group (T1)."""
        return tuple(first for first, _ in self.targets)

    @property
    def attribute_terms(self) -> tuple[str, ...]:
        """The attribute terms (A1), with and without counterpart."""
        return tuple(first for first, _ in self.attributes)

    @property
    def attribute_pairs(self) -> tuple[tuple[str, str], ...]:
        """The attribute terms that have a counterpart, with it."""
        return tuple((first, second) for first, second in self.attributes if second is not None)

    def swap_targets(self, text: str, *, both_directions: bool = False) -> str:
        """Return a text with its target terms replaced; see ``swap_terms``."""
        return swap_terms(
            text, self.targets, both_directions=both_directions, whole_words=self.whole_words
        )

    def swap_attributes(self, text: str, *, both_directions: bool = False) -> str:
        """Return a text with its attribute terms replaced by counterparts; see ``swap_terms``."""
        return swap_terms(
            text,
            self.attribute_pairs,
            both_directions=both_directions,
            whole_words=self.whole_words,
        )

    def require_targets(self, texts: Iterable[str], where: str = "") -> None:
        """Raise an error if no text has a target term, as with terms of another language.

        Raises:
            NothingLeft: No text has one.
        """
        pattern = compile_terms(self.target_terms, whole_words=self.whole_words)
        n_texts = 0
        for text in texts:
            n_texts += 1
            if pattern.search(text):
                return
        shown = ", ".join(self.target_terms[:3])
        message = f"none of the {n_texts:,} sentences has a target term of {self.category}"
        remedy = f"use terms in the language and script of the sentences; these are {shown}, ..."
        raise NothingLeft(message, where=where, remedy=remedy)


def swap_terms(
    text: str,
    pairs: tuple[tuple[str, str], ...],
    *,
    both_directions: bool = False,
    whole_words: bool = False,
) -> str:
    """Return a text with the first term of each pair replaced by the second.

    The text is read once from the left; at each place the longest term is replaced, and what was
    inserted is not searched again, so that (a, b) and (b, c) do not turn a into c. Terms are found
    without regard to case; a replacement has an initial capital, or capitals, where the term has.

    Args:
        text: The text.
        pairs: The pairs. Of pairs with the same first term, the first is used.
        both_directions: Whether second terms are also replaced by first ones. A term that is the
            second of several pairs becomes the first term of the first of them; one that is also
            a first term is replaced as such.
        whole_words: Whether terms are words between spaces or punctuation.

    >>> swap_terms("a short man", (("short", "tall"), ("tall", "short"), ("man", "woman")))
    'a tall woman'
    >>> swap_terms("妈妈和爸爸", (("妈妈", "爸爸"),), both_directions=True)
    '爸爸和妈妈'
    """
    table = _build_table(pairs, both_directions=both_directions)
    if not table:
        return text
    pattern = compile_terms(tuple(table), whole_words=whole_words)

    def replace(match: re.Match[str]) -> str:
        term = match[0]
        return match_case(term, table.get(term.lower(), term))

    return pattern.sub(replace, text)


@lru_cache(maxsize=64)
def compile_terms(terms: tuple[str, ...], *, whole_words: bool = False) -> re.Pattern[str]:
    """Return a pattern that finds any of the terms, the longest first, without regard to case.

    Without terms it finds nothing.

    >>> compile_terms(("man", "manager"), whole_words=True).findall("The manager of a human man")
    ['manager', 'man']
    """
    longest_first = sorted({term.lower() for term in terms}, key=lambda term: (-len(term), term))
    choices = "|".join(map(re.escape, longest_first)) or "(?!)"
    bounded = rf"(?<!\w)(?:{choices})(?!\w)" if whole_words else f"(?:{choices})"
    return re.compile(bounded, re.IGNORECASE)


@lru_cache(maxsize=64)
def _build_table(pairs: tuple[tuple[str, str], ...], *, both_directions: bool) -> dict[str, str]:
    """Return the replacement of each term, by the term in lower case."""
    table: dict[str, str] = {}
    for first, second in pairs:
        table.setdefault(first.lower(), second)
    if both_directions:
        for first, second in pairs:
            table.setdefault(second.lower(), first)
    return table


def match_case(term: str, replacement: str) -> str:
    """Return a replacement with the capitals of a term."""
    if term.isupper() and len(term) > 1:
        return replacement.upper()
    if term[:1].isupper():
        return replacement[:1].upper() + replacement[1:]
    return replacement


_KEYS = ("about", "source", "whole_words", "categories")
"""The keys of a file of terms."""

_CATEGORY_KEYS = ("groups", "targets", "attributes")  # the keys of a category

_BLANKS = frozenset({"", "null", "~"})
"""How a file writes that an attribute term has no counterpart."""


@dataclass(frozen=True)
class _TermList:
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


def load_term_lists() -> dict[str, _TermList]:
    """Return the packaged files of terms by name."""
    return {path.stem: _read_list(path) for path in sorted(find_packaged("terms").glob("*.yaml"))}


def _read_list(path: Path) -> _TermList:
    top = read_marked(path).mapping("the file of terms", _KEYS)
    about, source = (" ".join(top[key].text(key).split()) for key in ("about", "source"))
    return _TermList(path.stem, about, source, read_terms(path))


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
    top = read_marked(path).mapping("the file of terms", _KEYS)
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
    settings = entry.mapping(f"the category {name}", _CATEGORY_KEYS)
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
        is_blank = terms[1].value in [*_BLANKS]  # not the set: the value may be of any type
        second = None if is_blank else terms[1].text(f"a {kind} term").strip()
        if first.lower() in {earlier.lower() for earlier, _ in pairs}:
            raise entry.fault(
                f"the {kind} term {first!r} has two pairs", remedy="keep one of them"
            )
        if second is not None and first.lower() == second.lower():
            raise entry.fault(f"the {kind} term {first!r} is paired with itself")
        pairs.append((first, second))
    return tuple(pairs)
