"""Pairs of terms of two groups, and texts with these terms swapped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from recbias.core.errors import NothingLeft


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
        return _match_case(term, table.get(term.lower(), term))

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


def _match_case(term: str, replacement: str) -> str:
    if term.isupper() and len(term) > 1:
        return replacement.upper()
    if term[:1].isupper():
        return replacement[:1].upper() + replacement[1:]
    return replacement
