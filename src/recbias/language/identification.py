"""The language of texts, told by their most frequent words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, get_args

import numpy as np

from recbias.core.context import report_progress
from recbias.core.dataset import AnyArray, BoolArray, Dataset, Ids, encode_pairs
from recbias.core.errors import MissingEvidence, NothingLeft
from recbias.formats.yaml import read_marked
from recbias.language.masking import TextWords, divide_into_blocks
from recbias.language.terms import find_packaged

_Code = Literal["en", "fr", "de", "es", "it", "pt", "nl"]


@dataclass(frozen=True, kw_only=True)
class Language:
    """Keep the reviews in one language.

    A text is of another language if it has two more of the most frequent words of that one (of
    Spanish ``la``, ``que``, ``muy``) than of the one that is kept, or if most of its words are of
    another script than the Latin one. ``Great food!``, with none of any, is kept. A user's
    interaction with an item is excluded if all of its reviews are.

    Args:
        keep: The language: ``en``, ``fr``, ``de``, ``es``, ``it``, ``pt`` or ``nl``.

    Raises:
        MissingEvidence: The dataset has no review texts.
        NothingLeft: No review is of that language.

    Source:
        Grefenstette, "Comparing two language identification schemes", JADT 1995: the short words
        of a language.
    """

    keep: _Code = "en"

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset of the reviews in the language."""
        reviews, rows = dataset.reviews, dataset.interactions
        if reviews is None:
            remedy = "choose a dataset with review texts, and keep them"
            raise MissingEvidence("the dataset has no reviews, hence no language", remedy=remedy)
        is_kept = find_language(reviews.texts, self.keep)
        if not is_kept.any():
            raise NothingLeft(f"language {self.keep} left 0 of the {len(reviews):,} reviews")
        pairs = reviews.users.astype(np.int64) * max(rows.n_items, 1) + reviews.items
        of_row = encode_pairs(rows)
        is_lost = np.isin(of_row, pairs) & ~np.isin(of_row, pairs[is_kept])
        kept = np.flatnonzero(is_kept)
        reviews = replace(
            reviews,
            users=reviews.users[kept],
            items=reviews.items[kept],
            texts=reviews.texts[kept],
        )
        counts = dataset.counts | {"reviews_in_other_languages": int((~is_kept).sum())}
        return replace(dataset, reviews=reviews, counts=counts).select_rows(~is_lost)


@cache
def _load_frequent_words() -> dict[str, frozenset[str]]:
    """Return the most frequent words of each language."""
    languages = read_marked(find_packaged("words", "frequent.yaml")).mapping("the words")
    return {code: frozenset(words.text(code).split()) for code, words in languages.items()}


def find_language(texts: Ids, language: _Code) -> BoolArray:
    """Return which texts are in a language, ``bool[t]``.

    >>> texts = np.array(["The food was good", "La comida es muy rica", "Wow!", "很好吃"])
    >>> find_language(texts.astype(object), "en").tolist()
    [True, False, True, False]
    """
    is_in = np.zeros(len(texts), dtype=bool)
    for rows, block in divide_into_blocks(texts):
        counts = {code: _count_frequent(block, code) for code in get_args(_Code)}
        most = np.max([*counts.values()], axis=0)
        has_script = block.match_words(lambda word: word[0] < "ɐ")  # the letters of Latin end
        n_words, n_latin = (
            np.bincount(block.text, weights=weights, minlength=rows.size)
            for weights in (None, has_script)
        )
        is_in[rows] = (counts[language] > most - 2) & (2 * n_latin >= n_words)
        report_progress("identifying languages", int(rows[-1]) + 1, len(texts))
    return is_in


def _count_frequent(block: TextWords, language: _Code) -> AnyArray:
    words = _load_frequent_words()[language]
    is_frequent = block.match_words(lambda word: word.casefold().replace("’", "'") in words)
    n_texts = block.starts.size - 1
    return np.bincount(block.text, weights=is_frequent, minlength=n_texts)
