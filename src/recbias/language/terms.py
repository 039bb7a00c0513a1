"""Pairs of terms of two groups, in packaged lists or YAML files, and texts with terms swapped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from recbias.core.errors import NothingLeft, UnknownName
from recbias.core.files import has_file
from recbias.core.text import normalize_name, suggest
from recbias.formats.yaml import MarkedValue, read_marked

P = TypeVar("P")


def find_packaged(*parts: str) -> Path:
    """Return a packaged folder or file of words, templates or prompts."""
    return Path(__file__).parent.joinpath("packaged", *parts)


def find_by_name(entries: Mapping[str, P], name: str) -> P | None:
    """Return the entry of a name, however it is spelled; None if there is none."""
    found = (key for key in entries if normalize_name(key) == normalize_name(name))
    return entries.get(next(found, ""))


def find_packaged_or_read(
    packaged: Mapping[str, P], name: str, read: Callable[[Path], P], where: str, kind: str = ""
) -> P:
    """Return what a setting names: a packaged entry, or what a file holds.

    Args:
        packaged: The packaged entries by name.
        name: The name or the path.
        read: Reads a file.
        where: The setting.
        kind: What it names; by default, it is called as the setting.

    Raises:
        UnknownName: It is neither.
    """
    if (entry := find_by_name(packaged, name)) is not None:
        return entry
    if has_file(Path(name)):
        return read(Path(name))
    message = f"{name!r} is neither a packaged {kind or where} nor a file"
    raise UnknownName(message, where=where, remedy=suggest(name, packaged))


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


def load_terms(terms: str | Path) -> Mapping[str, TermPairs]:
    """Return the terms of a packaged name (``chbias``) or of a YAML file, by category.

    The file has ``categories``: each has ``groups`` (two names), ``targets`` (pairs of terms) and
    may have ``attributes`` (pairs, the second null where there is none). It may have ``about``,
    ``source`` and ``whole_words`` (true for languages that are written with spaces).

    >>> load_terms("chbias")["gender"].swap_targets("她的姐姐")
    '他的哥哥'

    Raises:
        UnknownName: It is neither a packaged name nor a file.
        BadYaml: The file is not YAML.
        MalformedLine: A key or value is invalid, or a first term occurs twice.
    """
    kind = "terms", "list of terms"
    return find_packaged_or_read(load_term_lists(), str(terms), _read_list, *kind).categories


def select_category(terms: Mapping[str, TermPairs], category: str) -> TermPairs:
    """Return the terms of a category.

    Raises:
        UnknownName: There is no such category.
    """
    if (pairs := find_by_name(terms, category)) is None:
        message = f"the terms have no category {category!r}"
        raise UnknownName(message, where="category", remedy=suggest(category, terms))
    return pairs


def _read_list(path: Path) -> _TermList:
    tree, what = read_marked(path), "the file of terms"
    needed = {"categories": "categories: {gender: {groups: [..], targets: [[..]]}}"}
    top = tree.mapping(what, ("about", "source", "whole_words", "categories"), needed)
    about, source = (" ".join(text.split()) for text in tree.texts("about", "source"))
    whole_words = tree.choose("whole_words", "false", "true") == "true"
    categories = {
        name: _parse_category(name, entry, whole_words=whole_words)
        for name, entry in top["categories"].mapping("categories").items()
    }
    return _TermList(path.stem, about, source, categories)


def _parse_category(name: str, entry: MarkedValue, *, whole_words: bool) -> TermPairs:
    needed = {"groups": "groups: [female, male]", "targets": "targets: [[mother, father]]"}
    settings = entry.mapping(f"the category {name}", (*needed, "attributes"), needed)
    groups = [group.text("a group") for group in settings["groups"].entries("groups")]
    if len(set(groups)) != 2:
        raise settings["groups"].fault("groups must be two different names")
    targets = _parse_pairs(settings["targets"], "target")
    complete = tuple((first, second) for first, second in targets if second is not None)
    if len(complete) < max(len(targets), 1):
        remedy = "give a term without counterpart the generic term of the second group"
        raise settings["targets"].fault("each target term needs a counterpart", remedy=remedy)
    written = settings.get("attributes", MarkedValue((), entry.where))
    attributes = _parse_pairs(written, "attribute")
    return TermPairs(name, (groups[0], groups[1]), complete, attributes, whole_words)


def _parse_pairs(marked: MarkedValue, kind: str) -> tuple[tuple[str, str | None], ...]:
    pairs: dict[str, tuple[str, str | None]] = {}
    for entry in marked.entries(f"the {kind} terms"):
        terms = entry.entries(f"a pair of {kind} terms")
        if len(terms) != 2:
            raise entry.fault(f"a pair of {kind} terms has two terms", remedy="write [a, b]")
        is_blank = terms[1].value in ["", "null", "~"]
        first, second = (
            "" if place and is_blank else term.text(f"a {kind} term").strip()
            for place, term in enumerate(terms)
        )
        if first.lower() in pairs:
            message = f"the {kind} term {first!r} has two pairs"
            raise entry.fault(message, remedy="keep one of them")
        if first.lower() == second.lower():
            raise entry.fault(f"the {kind} term {first!r} is paired with itself")
        pairs[first.lower()] = first, second or None
    return tuple(pairs.values())
