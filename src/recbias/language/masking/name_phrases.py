"""The names of items as phrases that are looked for in texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.language.masking.text_words import WORD, TextWords, plain

ANYHOW, CAPITALISED = 2, 1
"""How a phrase must be written to count: anyhow, or with capitals at its ends."""

_BRANCH = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, eq=False)
class ItemNames:
    """The names of items, as words of a vocabulary of their own.

    Args:
        vocabulary: The code of each word that stands in a name.
        spelled: The spellings of each item's name, as codes; none where it has no name.
    """

    vocabulary: dict[str, int]
    spelled: list[tuple[tuple[int, ...], ...]]

    @classmethod
    def of(cls, names: Iterable[str | None]) -> ItemNames:
        """Take names to words."""
        vocabulary: dict[str, int] = {}
        spelled = [
            tuple(
                tuple(vocabulary.setdefault(word, len(vocabulary)) for word in words)
                for words in (spellings(name) if name else ())
            )
            for name in names
        ]
        return cls(vocabulary, spelled)

    def codes(self, block: TextWords) -> AnyArray:
        """Return the code of each word of some texts, -1 where no name has it."""
        return block.of_words(lambda each: self.vocabulary.get(plain(each), -1))

    def held_by_strangers(self, block: TextWords, items: AnyArray) -> AnyArray:
        """Return in how many texts of items that are not named so each word stands, ``int[v]``.

        Args:
            block: The texts.
            items: The item of each.
        """
        codes, n = self.codes(block), len(self.vocabulary)
        inside = codes >= 0
        text, code = np.divmod(np.unique(block.text[inside] * n + codes[inside]), max(n, 1))
        named = np.isin(items[text].astype(np.int64) * n + code, self._carried)
        return np.bincount(code[~named], minlength=n)

    def rare(self, strangers: AnyArray, reviews: AnyArray, common: float) -> BoolArray:
        """Return which words tell the items that are named so from the others, ``bool[v]``.

        Args:
            strangers: In how many texts of items that are not named so each word stands.
            reviews: How many texts each item has.
            common: The largest share of those texts.
        """
        items, codes = np.divmod(self._carried, max(len(self.vocabulary), 1))
        own = np.bincount(codes, weights=reviews[items], minlength=len(self.vocabulary))
        share = strangers / np.maximum(reviews.sum() - own, 1)
        letters = np.array([sum(map(str.isalpha, each)) for each in self.vocabulary], dtype=int)
        return np.asarray((share <= common) & (letters >= 3))

    @cached_property
    def _carried(self) -> AnyArray:
        """Which item carries which word, as ``item * v + code``, ascending."""
        n = len(self.vocabulary)
        found = {
            item * n + code
            for item, spelled in enumerate(self.spelled)
            for words in spelled
            for code in words
        }
        return np.array(sorted(found), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NameTree:
    """Phrases as a tree of words: from a state a word leads to another.

    Args:
        n_words: How many words there are.
        edges: ``state * n_words + word``, ascending.
        targets: The state that each leads to.
        ends: How a phrase that ends in a state must be written; 0 where none does.
    """

    n_words: int
    edges: AnyArray
    targets: AnyArray
    ends: AnyArray

    @classmethod
    def of(cls, names: ItemNames, rare: BoolArray, *, own: bool) -> NameTree:
        """Return the tree of all names, or one for each item's own.

        Args:
            names: The names.
            rare: The words that are phrases by themselves.
            own: Whether the state to begin with is the item; else it is 0.
        """
        n_words = len(names.vocabulary)
        ends = [0] * (len(names.spelled) if own else 1)
        edges: dict[int, int] = {}
        for item, words, end in _phrases(names, rare):
            state = item if own else 0
            for word in words:
                state = edges.setdefault(state * n_words + word, len(ends))
                ends += [0] * (state == len(ends))
            ends[state] = max(ends[state], end)
        order = np.array(sorted(edges), dtype=np.int64)
        targets = np.array([edges[each] for each in order.tolist()], dtype=np.int64)
        return cls(n_words, order, targets, np.array(ends))

    def find(self, block: TextWords, codes: AnyArray, states: AnyArray) -> AnyArray:
        """Return how many words the longest phrase has that begins at each word, ``int64[w]``.

        Args:
            block: The texts.
            codes: The code of each word, -1 where it is in no phrase.
            states: The state that each text begins in.
        """
        found = np.zeros(codes.size, dtype=np.int64)
        begin = np.flatnonzero(codes >= 0)
        state, length = states[block.text[begin]], 0
        while begin.size:
            place = begin + length
            state = self._next(state, codes[place])
            alive = state >= 0
            begin, state, place, length = begin[alive], state[alive], place[alive], length + 1
            capitals = block.is_capital[begin] & block.is_capital[place]
            ends = self.ends[state]
            found[begin[(ends == ANYHOW) | ((ends == CAPITALISED) & capitals)]] = length
            inside = place + 1 < codes.size
            inside[inside] = block.text[place[inside] + 1] == block.text[begin[inside]]
            begin, state = begin[inside], state[inside]
        return found

    def _next(self, states: AnyArray, codes: AnyArray) -> AnyArray:
        """Return the state that each word leads to, -1 where it leads nowhere."""
        if not self.edges.size:
            return np.full(states.size, -1, dtype=np.int64)
        wanted = states * self.n_words + codes
        place = np.minimum(np.searchsorted(self.edges, wanted), self.edges.size - 1)
        known = (codes >= 0) & (self.edges[place] == wanted)
        return np.where(known, self.targets[place], -1)


def spellings(name: str) -> list[tuple[str, ...]]:
    """Return the ways to write a name, as words that can be compared.

    They are the name in full and without what stands in brackets behind it, with ``Wendy's``
    as ``wendy`` and as ``wendys``. A name of fewer than two letters or digits has none.

    >>> spellings("Wendy's Grill (Airport)")
    [('wendy', 'grill', 'airport'), ('wendys', 'grill', 'airport'), ('wendy', 'grill'), \
('wendys', 'grill')]
    >>> spellings("A"), spellings("***")
    ([], [])
    """
    found: dict[tuple[str, ...], None] = {}
    name = unicodedata.normalize("NFC", name)
    for each in (name, _BRANCH.sub("", name)):
        words = WORD.findall(each)
        for written in (words, [word.replace("’", "").replace("'", "") for word in words]):
            plain_words = tuple(filter(None, map(plain, written)))
            if sum(map(len, plain_words)) > 1:
                found[plain_words] = None
    return list(found)


def _phrases(names: ItemNames, rare: BoolArray) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """Yield an item, a phrase of its name, and how it must be written."""
    for item, spelled in enumerate(names.spelled):
        for words in spelled:
            telling = [word for word in words if rare[word]]
            yield item, words, ANYHOW if telling else CAPITALISED
            yield from ((item, (word,), ANYHOW) for word in telling)
