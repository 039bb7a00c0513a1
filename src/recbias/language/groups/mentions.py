"""The occurrences of group words in texts, sentence by sentence."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.language.groups.group_words import GroupWords
from recbias.language.sentence_splitting import split_sentences


@dataclass(frozen=True, eq=False)
class Mentions:
    """The occurrences of group words in the sentences of texts.

    Args:
        sentences: The sentences with an occurrence, in Unicode normalization form C.
        text: The text of each sentence, ``int64[s]``.
        spans: The sentence, start and end of each occurrence, ``int64[m, 3]``.
        named: The occurrence and the group of each pair of these, ``int64[p, 2]``: a word may name
            groups of several kinds.
        omitted: The number of occurrences of each text after its first ``limit``, ``int64[n]``.
    """

    sentences: list[str]
    text: AnyArray
    spans: AnyArray
    named: AnyArray
    omitted: AnyArray

    @classmethod
    def find(cls, texts: Sequence[str], words: GroupWords, limit: int = sys.maxsize) -> Mentions:
        """Return the first ``limit`` occurrences in each text, and how many more there are."""
        sentences: list[str] = []
        of_text: list[int] = []
        spans: list[tuple[int, int, int]] = []
        named: list[tuple[int, int]] = []
        omitted = np.zeros(len(texts), dtype=np.int64)
        for row, text in enumerate(texts):
            n_left = limit
            for sentence in split_sentences(unicodedata.normalize("NFC", text)):
                found = list(words.find(sentence))
                matches = found[:n_left]
                n_left -= len(matches)
                omitted[row] += len(found) - len(matches)
                if matches:
                    named += [
                        (len(spans) + at, group)
                        for at, (_, _, groups) in enumerate(matches)
                        for group in groups
                    ]
                    spans += [(len(sentences), start, end) for start, end, _ in matches]
                    sentences.append(sentence)
                    of_text.append(row)
        return cls(
            sentences,
            np.array(of_text, dtype=np.int64),
            np.array(spans, dtype=np.int64).reshape(-1, 3),
            np.array(named, dtype=np.int64).reshape(-1, 2),
            omitted,
        )

    def __len__(self) -> int:
        """Return the number of occurrences."""
        return len(self.spans)
