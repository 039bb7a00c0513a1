"""The names of items as phrases that are searched for in texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.language.masking.text_words import WORD, TextWords, normalize_word

ANY_CASE, CAPITALIZED = 2, 1
"""How a phrase must be written to match: in any case, or its first and last word with capitals."""

_BRANCH = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, eq=False)
class ItemNames:
    """The spellings of the name of each item, as codes of a vocabulary; empty without a name."""

    vocabulary: dict[str, int]
    spellings: list[tuple[tuple[int, ...], ...]]

    @classmethod
    def from_names(cls, names: Iterable[str | None]) -> ItemNames:
        """Encode names; None is an item without a name."""
        vocabulary: dict[str, int] = {}
        spellings = [
            tuple(
                tuple(vocabulary.setdefault(word, len(vocabulary)) for word in words)
                for words in (list_spellings(name) if name else ())
            )
            for name in names
        ]
        return cls(vocabulary, spellings)

    def encode(self, block: TextWords) -> AnyArray:
        """Return the code of each word of the texts, -1 for words in no name."""
        return block.map_words(lambda word: self.vocabulary.get(normalize_word(word), -1))

    def count_foreign_texts(self, block: TextWords, items: AnyArray) -> AnyArray:
        """Count the texts with each word, of items without the word in the name: ``int[v]``."""
        codes, n = self.encode(block), len(self.vocabulary)
        has_code = codes >= 0
        text, code = np.divmod(np.unique(block.text[has_code] * n + codes[has_code]), max(n, 1))
        in_name = np.isin(items[text].astype(np.int64) * n + code, self._item_words)
        return np.bincount(code[~in_name], minlength=n)

    def find_distinctive(
        self, n_foreign: AnyArray, n_reviews: AnyArray, common: float
    ) -> BoolArray:
        """Return which words distinguish the items with the word in their name, ``bool[v]``.

        They occur in at most the share ``common`` of the texts of the other items: ``n_foreign``
        of the words, ``n_reviews`` of each item.
        """
        items, codes = np.divmod(self._item_words, max(len(self.vocabulary), 1))
        n_own = np.bincount(codes, weights=n_reviews[items], minlength=len(self.vocabulary))
        share = n_foreign / np.maximum(n_reviews.sum() - n_own, 1)
        n_letters = np.array([sum(map(str.isalpha, word)) for word in self.vocabulary], dtype=int)
        return np.asarray((share <= common) & (n_letters >= 3))

    @cached_property
    def _item_words(self) -> AnyArray:
        """All pairs of an item and a word of its name, as ``item * v + code``, ascending."""
        n = len(self.vocabulary)
        pairs = {
            item * n + code
            for item, spellings in enumerate(self.spellings)
            for words in spellings
            for code in words
        }
        return np.array(sorted(pairs), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NameTree:
    """Phrases as a prefix tree (trie) of words.

    An edge is ``state * n_words + word``, ascending, and leads to the state in ``targets``.
    ``ends`` is how a phrase that ends in a state must be written; 0 if none does.
    """

    n_words: int
    edges: AnyArray
    targets: AnyArray
    ends: AnyArray

    @classmethod
    def build(cls, names: ItemNames, distinctive: BoolArray, *, per_item: bool) -> NameTree:
        """Build the tree of all names, or ``per_item`` a tree whose initial state is the item.

        The ``distinctive`` words are phrases by themselves.
        """
        n_words = len(names.vocabulary)
        ends = [0] * (len(names.spellings) if per_item else 1)
        targets: dict[int, int] = {}
        for item, words, spelling in _iterate_phrases(names, distinctive):
            state = item if per_item else 0
            for word in words:
                state = targets.setdefault(state * n_words + word, len(ends))
                ends += [0] * (state == len(ends))
            ends[state] = max(ends[state], spelling)
        edges = sorted(targets)
        sorted_targets = np.array([targets[edge] for edge in edges], dtype=np.int64)
        return cls(n_words, np.array(edges, dtype=np.int64), sorted_targets, np.array(ends))

    def find_longest(self, block: TextWords, codes: AnyArray, states: AnyArray) -> AnyArray:
        """Return the number of words of the longest phrase that begins at each word, ``int64[w]``.

        ``codes`` are those of the words, -1 in no phrase; ``states`` the first ones of the texts.
        """
        longest = np.zeros(codes.size, dtype=np.int64)
        begin = np.flatnonzero(codes >= 0)
        state, length = states[block.text[begin]], 0
        while begin.size:
            last = begin + length
            state = self._follow(state, codes[last])
            alive = state >= 0
            begin, state, last, length = begin[alive], state[alive], last[alive], length + 1
            capitals = block.is_capitalized[begin] & block.is_capitalized[last]
            ends = self.ends[state]
            matches = (ends == ANY_CASE) | ((ends == CAPITALIZED) & capitals)
            longest[begin[matches]] = length
            continues = last + 1 < codes.size
            continues[continues] = block.text[last[continues] + 1] == block.text[begin[continues]]
            begin, state = begin[continues], state[continues]
        return longest

    def _follow(self, states: AnyArray, codes: AnyArray) -> AnyArray:
        """Return the next state, -1 where no edge has the word."""
        if not self.edges.size:
            return np.full(states.size, -1, dtype=np.int64)
        keys = states * self.n_words + codes
        edge = np.minimum(np.searchsorted(self.edges, keys), self.edges.size - 1)
        exists = (codes >= 0) & (self.edges[edge] == keys)
        return np.where(exists, self.targets[edge], -1)


def list_spellings(name: str) -> list[tuple[str, ...]]:
    """Return the spellings of a name, as normalized words.

    They are the full name and the name without a final bracket, with ``Wendy's`` as ``wendy`` and
    as ``wendys``. A name of fewer than two letters or digits has none.

    >>> list_spellings("Wendy's Grill (Airport)")
    [('wendy', 'grill', 'airport'), ('wendys', 'grill', 'airport'), ('wendy', 'grill'), \
('wendys', 'grill')]
    >>> list_spellings("A"), list_spellings("***")
    ([], [])
    """
    spellings: dict[tuple[str, ...], None] = {}
    name = unicodedata.normalize("NFC", name)
    for variant in (name, _BRANCH.sub("", name)):
        words = WORD.findall(variant)
        for form in (words, [re.sub("['’]", "", word) for word in words]):
            spelling = tuple(filter(None, map(normalize_word, form)))
            if sum(map(len, spelling)) > 1:
                spellings[spelling] = None
    return list(spellings)


def _iterate_phrases(
    names: ItemNames, distinctive: BoolArray
) -> Iterator[tuple[int, tuple[int, ...], int]]:
    for item, spellings in enumerate(names.spellings):
        for words in spellings:
            distinctive_words = [word for word in words if distinctive[word]]
            yield item, words, ANY_CASE if distinctive_words else CAPITALIZED
            yield from ((item, (word,), ANY_CASE) for word in distinctive_words)
