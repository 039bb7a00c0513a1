"""Many texts as the words in them and what stands between, to look at words and replace some."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, Ids

CHARACTERS_AT_ONCE = 2**22
"""About how many characters a block of texts has."""

WORD = re.compile(r"([^\W_]+(?:['’][^\W_]+)*)")
"""A word: letters and digits, with apostrophes inside."""

_END = re.compile(r"[.!?…:\n\r]")


@dataclass(frozen=True, eq=False)
class TextWords:
    """Some texts, taken to words.

    Args:
        texts: The texts, in Unicode's composed form (NFC).
        pieces: For each text what stands before its first word, the word, what stands between it
            and the next, and so on to what stands behind the last: ``object[2 w + t]``.
        starts: Where the pieces of each text begin, ``int64[t + 1]``.
    """

    texts: list[str]
    pieces: Ids
    starts: AnyArray

    @classmethod
    def of(cls, texts: Ids) -> TextWords:
        """Take texts to words.

        >>> found = TextWords.of(np.array(["Try Wendy's, it's good!", ""], dtype=object))
        >>> found.words.tolist(), found.text.tolist()
        (['Try', "Wendy's", "it's", 'good'], [0, 0, 0, 0])
        """
        composed = [unicodedata.normalize("NFC", each) for each in texts]
        parts = [WORD.split(each) for each in composed]
        sizes = np.array([len(each) for each in parts], dtype=np.int64)
        pieces = np.empty(int(sizes.sum()), dtype=object)
        pieces[:] = [piece for each in parts for piece in each]
        return cls(composed, pieces, np.concatenate([[0], np.cumsum(sizes)]))

    @cached_property
    def text(self) -> AnyArray:
        """The text of each word, ``int64[w]``."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts) // 2)

    @cached_property
    def places(self) -> AnyArray:
        """Where each word stands in the pieces, ``int64[w]``."""
        return 2 * np.arange(self.text.size) + self.text + 1

    @cached_property
    def words(self) -> Ids:
        """The words as written, text by text, ``object[w]``."""
        return self.pieces[self.places]

    def of_words(self, rule: Callable[[str], int | bool]) -> AnyArray:
        """Return what a rule says of each word; it is asked once for each spelling."""
        codes, spellings = self._spellings
        return np.array([rule(each) for each in spellings] or [0])[codes]

    @cached_property
    def _spellings(self) -> tuple[AnyArray, Ids]:
        codes, spellings = pd.factorize(self.words)
        return codes, spellings

    def of_gaps(self, rule: Callable[[str], bool]) -> BoolArray:
        """Return what a rule says of what stands before each word, ``bool[w]``."""
        codes, gaps = pd.factorize(self.pieces[self.places - 1])
        return np.array([rule(each) for each in gaps] or [False], dtype=bool)[codes]

    @cached_property
    def is_capital(self) -> BoolArray:
        """Whether each word begins with a capital, or with a sign that has none."""
        return np.asarray(self.of_words(lambda each: not each[0].islower()), dtype=bool)

    @cached_property
    def is_first(self) -> BoolArray:
        """Whether each word is the first of its text."""
        return np.diff(self.text, prepend=-1) > 0

    @cached_property
    def begins_sentence(self) -> BoolArray:
        """Whether each word is the first of its text or comes after ``.``, ``!``, ``?``, ``:``."""
        return self.is_first | self.of_gaps(lambda each: _END.search(each) is not None)

    def spans(self) -> tuple[AnyArray, AnyArray]:
        """Return where each word begins and ends in its text, in characters."""
        lengths = np.array([len(each) for each in self.pieces], dtype=np.int64)
        ends = np.cumsum(lengths)
        before = np.concatenate([[0], ends])[self.starts[:-1]]
        end = ends[self.places] - before[self.text]
        return end - lengths[self.places], end

    def rebuilt(self, rows: AnyArray, places: AnyArray, new: Ids | str) -> Ids:
        """Return some texts with other pieces, ``object[r]``.

        Args:
            rows: The texts, ``int[r]``.
            places: Which pieces are replaced.
            new: What by, one for each place or one for all.
        """
        pieces = self.pieces.copy()
        pieces[places] = new
        listed = pieces.tolist()
        ends = zip(self.starts[rows].tolist(), self.starts[rows + 1].tolist(), strict=True)
        made = np.empty(rows.size, dtype=object)
        made[:] = ["".join(listed[start:end]) for start, end in ends]
        return made


def blocks(texts: Ids) -> Iterator[tuple[AnyArray, TextWords]]:
    """Yield the positions of some texts, and them as words, until all are through."""
    total = np.cumsum([len(each) for each in texts], dtype=np.int64)
    start = 0
    while start < len(texts):
        before = total[start - 1] if start else 0
        end = int(np.searchsorted(total, before + CHARACTERS_AT_ONCE, side="right"))
        end = max(end, start + 1)
        yield np.arange(start, end), TextWords.of(texts[start:end])
        start = end


def plain(word: str) -> str:
    """Return a word as it is compared: in small letters, without accents and possessive.

    >>> plain("Wendy's"), plain("CAFÉ"), plain("’Ono’s"), plain("D'Agostino")
    ('wendy', 'cafe', 'ono', 'dagostino')
    """
    word = word.casefold().replace("’", "'").removesuffix("'s").replace("'", "")
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFKD", word)
    return "".join(each for each in letters if not unicodedata.combining(each))
