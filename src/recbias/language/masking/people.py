"""The people that texts mention, without those of another column (authors)."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.stage_context import report_progress
from recbias.language.masking.person_names import FirstNames, PersonModel
from recbias.language.masking.text_words import TextWords, divide_into_blocks, normalize_word

MAX_SURNAMES = 3
"""Capitalized words after a first name that belong to it, where only first names are found."""


_HYPHENS = {"-", "‐", "‑"}
_DIVIDER = re.compile(r"[\s.,‐‑-]+")


def find_people(texts: Ids, finder: FirstNames | PersonModel, excluded: Ids) -> Ids:
    """Return the people that each text mentions, as ``Betsy Ray|Tacy``; None if there are none.

    Words of a person that only white space or a hyphen divides are one mention, which ends with a
    possessive. A mention is left out if it is of an excluded person: all of its words are in that
    person's name, and it has several words or is the last word of the name; or it follows the last
    word of the name and a comma (``Lovelace, Maud``). Such a name inside a mention divides it:
    of ``Tom Maud Lovelace`` stays ``Tom``. A first name alone may be of another person, so it
    stays.

    Args:
        texts: A text for each item, blank without one.
        finder: What finds the words that name persons.
        excluded: The people of each item that are left out, as ``Maud Hart Lovelace|Lois Lenski``;
            None if there are none.

    >>> texts = np.array(["Betsy Ray met Tacy. Betsy's author is Maud Lovelace."], dtype=object)
    >>> authors = np.array(["Maud Hart Lovelace"], dtype=object)
    >>> find_people(texts, FirstNames(), authors).tolist()
    ['Betsy Ray|Betsy']
    """
    if isinstance(finder, FirstNames):
        for _, block in divide_into_blocks(texts):
            finder.learn(block)
    people = np.full(len(texts), None, dtype=object)
    for rows, block in divide_into_blocks(texts):
        text, mention, before = _find_mentions(block, finder)
        pairs = pd.Series([*zip(mention, before, strict=True)], dtype=object)
        by_text = pairs.groupby(text, sort=True).agg(list)
        for row, mentions in zip(by_text.index.to_numpy(np.int64), by_text, strict=True):
            index = rows[row]
            names = [_split_name(name) for name in str(excluded[index] or "").split(SEPARATOR)]
            left = [
                person
                for name, word in dict.fromkeys(mentions)
                for person in _leave_out(name, word, names)
            ]
            people[index] = SEPARATOR.join(dict.fromkeys(left)) or None
        report_progress("finding people", int(rows[-1]) + 1, len(texts))
    return people


def _find_mentions(
    block: TextWords, finder: FirstNames | PersonModel
) -> tuple[AnyArray, Ids, Ids]:
    """Return the text of each mention, the mention as written, and the word and comma before it.

    A mention has no possessive; the word is blank where no comma stands before the mention.
    """
    is_person = finder.find(block)
    if not is_person.any():
        empty = np.empty(0, dtype=object)
        return np.empty(0, dtype=np.int64), empty, empty
    owns = block.match_words(lambda word: word.endswith(("'s", "’s")))
    is_inside = ~block.is_first & ~np.roll(owns, 1)
    has_hyphen = is_inside & block.match_separators(lambda text: text in _HYPHENS)
    follows = has_hyphen | (is_inside & block.match_separators(str.isspace))
    if isinstance(finder, FirstNames):
        is_person = _add_surnames(block, is_person, follows)
    begins = is_person & ~(follows & np.roll(is_person, 1))
    words = pd.Series(block.words[is_person]).str.replace(r"['’]s$", "", regex=True)
    joined = np.where(begins[is_person], "", np.where(has_hyphen[is_person], "-", " "))
    parts = pd.Series(joined.astype(object) + words.to_numpy(dtype=object))
    mention = parts.groupby(np.cumsum(begins)[is_person], sort=True).agg("".join)
    has_comma = ~block.is_first & block.match_separators(lambda text: text.strip() == ",")
    before = np.where(has_comma, np.roll(block.words, 1), "")[begins]
    return block.text[begins], mention.to_numpy(dtype=object), before


def _add_surnames(block: TextWords, is_person: BoolArray, follows: BoolArray) -> BoolArray:
    may_follow = follows & block.match_words(lambda word: word[0].isupper())
    for _ in range(MAX_SURNAMES):
        is_person = is_person | (may_follow & np.roll(is_person, 1))
    return is_person


def _split(name: str) -> list[str]:
    return [*filter(None, map(normalize_word, _DIVIDER.split(name)))]


def _split_name(name: str) -> list[str]:
    """Return the words of a name, the last name last, also of ``Lovelace, Maud Hart``."""
    before_comma, _, after_comma = name.partition(",")
    return _split(f"{after_comma} {before_comma}")


def _leave_out(mention: str, before: str, names: list[list[str]]) -> list[str]:
    """Return the parts of a mention without the excluded names.

    Args:
        mention: The mention.
        before: The word before it, if a comma divides them.
        names: The words of each excluded name.
    """
    words = _split(mention)
    for name in filter(None, names):
        if set(words) <= set(name) and (
            len(words) > 1 or words[-1:] == name[-1:] or _split(before)[-1:] == name[-1:]
        ):
            return []
    written = mention.split()
    divided = [_split(word) for word in written]
    for name in names:
        for start in range(len(written)):
            end = start
            while end < len(written) and divided[end] and set(divided[end]) <= set(name):
                end += 1
            if end - start > 1:
                parts = (" ".join(written[:start]), " ".join(written[end:]))
                return [left for part in parts if part for left in _leave_out(part, "", names)]
    return [mention]
