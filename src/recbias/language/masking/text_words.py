"""Texts divided into words and the separators between them, to find words and replace them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, Ids

CHARACTERS_PER_BLOCK = 2**22
"""The approximate number of characters in a block of texts."""

WORD = re.compile(r"([^\W_]+(?:['’][^\W_]+)*)")
"""A word: letters and digits, with apostrophes inside."""

_SENTENCE_END = re.compile(r"[.!?…:\n\r]")


@dataclass(frozen=True, eq=False)
class TextWords:
    """Texts, in Unicode normalization form C, divided into words.

    Args:
        pieces: For each text, separators and words in turn, beginning and ending with a separator
            that may be empty: ``object[2 w + t]`` for ``w`` words in ``t`` texts.
        starts: The position of the first piece of each text, and the end: ``int64[t + 1]``.
    """

    texts: list[str]
    pieces: Ids
    starts: AnyArray

    @classmethod
    def from_texts(cls, texts: Ids) -> TextWords:
        """Divide texts into words.

        >>> block = TextWords.from_texts(np.array(["Try Wendy's, it's good!", ""], dtype=object))
        >>> block.words.tolist(), block.text.tolist()
        (['Try', "Wendy's", "it's", 'good'], [0, 0, 0, 0])
        """
        normalized = [unicodedata.normalize("NFC", text) for text in texts]
        divided = [WORD.split(text) for text in normalized]
        sizes = np.array([len(pieces) for pieces in divided], dtype=np.int64)
        all_pieces = np.empty(int(sizes.sum()), dtype=object)
        all_pieces[:] = [piece for pieces in divided for piece in pieces]
        return cls(normalized, all_pieces, np.concatenate([[0], np.cumsum(sizes)]))

    @cached_property
    def text(self) -> AnyArray:
        """The index of the text of each word, ``int64[w]``."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts) // 2)

    @cached_property
    def positions(self) -> AnyArray:
        """The position of each word in ``pieces``, ``int64[w]``."""
        return 2 * np.arange(self.text.size) + self.text + 1

    @cached_property
    def words(self) -> Ids:
        """The words as written, text by text, ``object[w]``."""
        return self.pieces[self.positions]

    @cached_property
    def _spellings(self) -> tuple[AnyArray, Ids]:
        return pd.factorize(self.words)

    def map_words(self, function: Callable[[str], int | bool]) -> AnyArray:
        """Return the function's value for each word; it is called once per distinct spelling."""
        codes, spellings = self._spellings
        return np.array([function(word) for word in spellings] or [0])[codes]

    def match_words(self, predicate: Callable[[str], bool]) -> BoolArray:
        """Return which words satisfy a predicate, ``bool[w]``."""
        return np.asarray(self.map_words(predicate), dtype=bool)

    def match_separators(self, predicate: Callable[[str], bool]) -> BoolArray:
        """Return for which words the separator before them satisfies a predicate, ``bool[w]``."""
        codes, separators = pd.factorize(self.pieces[self.positions - 1])
        return np.array([predicate(text) for text in separators] or [False], dtype=bool)[codes]

    @cached_property
    def is_capitalized(self) -> BoolArray:
        """Whether each word does not begin with a lower-case letter."""
        return self.match_words(lambda word: not word[0].islower())

    @cached_property
    def is_first(self) -> BoolArray:
        """Whether each word is the first of its text."""
        return np.diff(self.text, prepend=-1) > 0

    @cached_property
    def begins_sentence(self) -> BoolArray:
        """Whether each word is the first of its text or follows ``.``, ``!``, ``?``, ``:``."""
        ends = self.match_separators(lambda text: _SENTENCE_END.search(text) is not None)
        return self.is_first | ends

    def find_spans(self) -> tuple[AnyArray, AnyArray]:
        """Return the start and end of each word in its text, in characters."""
        lengths = np.array([len(piece) for piece in self.pieces], dtype=np.int64)
        piece_ends = np.cumsum(lengths)
        text_starts = np.concatenate([[0], piece_ends])[self.starts[:-1]]
        ends = piece_ends[self.positions] - text_starts[self.text]
        return ends - lengths[self.positions], ends

    def replace_pieces(self, rows: AnyArray, positions: AnyArray, new: Ids | str) -> Ids:
        """Return the texts ``rows`` with ``new`` pieces at the positions, ``object[r]``."""
        replaced = self.pieces.copy()
        replaced[positions] = new
        pieces = replaced.tolist()
        spans = zip(self.starts[rows].tolist(), self.starts[rows + 1].tolist(), strict=True)
        texts = np.empty(rows.size, dtype=object)
        texts[:] = ["".join(pieces[start:end]) for start, end in spans]
        return texts


def divide_into_blocks(texts: Ids) -> Iterator[tuple[AnyArray, TextWords]]:
    """Yield texts in blocks of limited size: their indices, and the texts divided into words."""
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    start = 0
    while start < len(texts):
        n_before = ends[start - 1] if start else 0
        end = int(np.searchsorted(ends, n_before + CHARACTERS_PER_BLOCK, side="right"))
        end = max(end, start + 1)
        yield np.arange(start, end), TextWords.from_texts(texts[start:end])
        start = end


def mark_ranges(n: int, start: AnyArray, end: AnyArray) -> BoolArray:
    """Return which of ``n`` positions lie in a range from ``start`` to before ``end``."""
    change = np.zeros(n + 1, dtype=np.int64)
    np.add.at(change, start, 1)
    np.add.at(change, end, -1)
    return np.asarray(np.cumsum(change)[:-1] > 0)


def normalize_word(word: str) -> str:
    """Return a word for comparison: in lower case, without accents and the possessive.

    >>> [normalize_word(word) for word in ("Wendy's", "CAFÉ", "’Ono’s", "D'Agostino")]
    ['wendy', 'cafe', 'ono', 'dagostino']
    """
    word = word.casefold().replace("’", "'").removesuffix("'s").replace("'", "")
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
