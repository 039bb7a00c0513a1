"""The people that texts mention, without those of another column (authors)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.stage_context import report_progress
from recbias.language.masking.person_names import FirstNames, PersonModel
from recbias.language.masking.text_words import TextWords, divide_into_blocks, normalize_word

MAX_SURNAMES = 3
"""Capitalized words after a first name that belong to it, where only first names are found."""


def find_people(texts: Ids, finder: FirstNames | PersonModel, excluded: Ids) -> Ids:
    """Return the people that each text mentions, as ``Betsy Ray|Tacy``; None if there are none.

    Words of a person that only white space divides are one mention, which ends with a possessive.
    A mention is left out if it is of an excluded person: all of its words are in that person's
    name, and it has several words or is the last word of the name. A first name alone may be of
    another person, so it stays.

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
        text, mention = _find_mentions(block, finder)
        by_text = pd.Series(mention, dtype=object).groupby(text, sort=True).agg(list)
        for row, mentions in zip(by_text.index.to_numpy(np.int64), by_text, strict=True):
            index = rows[row]
            names = [list(_split(name)) for name in str(excluded[index] or "").split(SEPARATOR)]
            new = [name for name in dict.fromkeys(mentions) if not _is_of_person(name, names)]
            people[index] = SEPARATOR.join(new) or None
        report_progress("finding people", int(rows[-1]) + 1, len(texts))
    return people


def _find_mentions(block: TextWords, finder: FirstNames | PersonModel) -> tuple[AnyArray, Ids]:
    """Return the text of each mention, and the mention as written, without a possessive."""
    is_person = finder.find(block)
    if not is_person.any():
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=object)
    owns = block.match_words(lambda word: word.endswith(("'s", "’s")))
    follows = block.match_separators(str.isspace) & ~block.is_first & ~np.roll(owns, 1)
    if isinstance(finder, FirstNames):
        is_person = _add_surnames(block, is_person, follows)
    begins = is_person & ~(follows & np.roll(is_person, 1))
    words = pd.Series(block.words[is_person]).str.replace(r"['’]s$", "", regex=True)
    mention = words.groupby(np.cumsum(begins)[is_person], sort=True).agg(" ".join)
    return block.text[begins], mention.to_numpy(dtype=object)


def _add_surnames(block: TextWords, is_person: BoolArray, follows: BoolArray) -> BoolArray:
    may_follow = follows & block.match_words(lambda word: word[0].isupper())
    for _ in range(MAX_SURNAMES):
        is_person = is_person | (may_follow & np.roll(is_person, 1))
    return is_person


def _split(name: str) -> Iterable[str]:
    return filter(None, map(normalize_word, name.replace(".", " ").split()))


def _is_of_person(mention: str, names: list[list[str]]) -> bool:
    words = list(_split(mention))
    return any(
        set(words) <= set(name) and (len(words) > 1 or words[-1:] == name[-1:])
        for name in names
        if name
    )
