"""Counterfactual copies of texts: the same text about a person of another gender or race."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.context import report_progress
from recbias.core.dataset import AnyArray, BoolArray, Ids
from recbias.language.masking import TextWords, divide_into_blocks
from recbias.language.templates import load_packaged

Side: TypeAlias = Literal["gender", "race"]
"""The attribute that is exchanged."""

_POSSESSIVE = " _"  # the suffix of words in Swaps that stand directly before a noun

_PAIRS = """
she he|herself himself|woman man|women men|girl boy|girls boys|lady gentleman|ladies gentlemen
female male|females males|gal guy|madam sir|ma'am sir|mrs mr|ms mr|mother father|mothers fathers
mom dad|moms dads|mum dad|mommy daddy|mama papa|daughter son|daughters sons|sister brother
sisters brothers|wife husband|wives husbands|girlfriend boyfriend|girlfriends boyfriends
fiancée fiancé|fiancee fiance|bride groom|aunt uncle|aunts uncles|niece nephew|nieces nephews
grandmother grandfather|grandma grandpa|granny grandpa|granddaughter grandson
stepmother stepfather|stepdaughter stepson|stepsister stepbrother|waitress waiter
waitresses waiters|actress actor
"""
"""Words for women and men; of several pairs with one word, the first is its replacement."""

_ALONE = {"her": "him", "him": "her", "hers": "his", "his": "hers", "hostess": "host"}
_BEFORE_A_NOUN = {"her": "his", "his": "her"}
_AMBIGUOUS_NAMES = {"Asia", "Kenya"}
"""First names that mean places in most texts; they are not replaced."""

_NOT_A_NOUN = """
a about after again against all also always an and any are around as at away back be because been
before being both but by can could did do does down during even for from had has have he her here
him his how i if in into is it its just like may me might my never no nor not now of off on once or
our out over she should since so some than that the their them then there these they this those
though through to today together too twice under until up us was we well were what when where
whether which while who why will with without would yet you your
"""
"""Words before which ``her`` or ``his`` is not a possessive: ``I told her that``."""


@dataclass(frozen=True, eq=False)
class Swaps:
    """Words in lower case and their replacements; ``her _`` is ``her`` directly before a noun.

    In texts, names match only with a capital.
    """

    words: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[str, ...]]

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {word: code for code, word in enumerate((*self.words, *self.names))}

    @cached_property
    def _replacements(self) -> tuple[Ids, AnyArray, AnyArray]:
        """All replacements, and the position of the first and the number for each word."""
        lists = [*self.words.values(), *self.names.values()]
        sizes = np.array([len(replacements) for replacements in lists], dtype=np.int64)
        words = [word for replacements in lists for word in replacements]
        return np.array(words, dtype=object), np.cumsum(sizes) - sizes, sizes

    def divide_suffix(self, word: str) -> tuple[str, str]:
        """Return a word without its suffix, and the suffix: ``Emily``, ``'s``."""
        spelling = word.replace("’", "'")
        if spelling.casefold() in self._codes:
            return spelling, ""
        stem = spelling.partition("'")[0]
        return word[: len(stem)], word[len(stem) :]

    def encode(self, block: TextWords) -> AnyArray:
        """Return the code of each word of the texts, -1 for words without a replacement."""
        codes = block.map_words(self._encode_word)
        possessive_codes = np.arange(len(self._codes))
        for word, code in self._codes.items():
            possessive_codes[code] = self._codes.get(word + _POSSESSIVE, code)
        is_possessive = (codes >= 0) & _precedes_noun(block)
        codes[is_possessive] = possessive_codes[codes[is_possessive]]
        return codes

    def sample(self, text: AnyArray, codes: AnyArray, rng: np.random.Generator) -> Ids:
        """Return a replacement for the code of each word, the same for all occurrences in a text.

        ``text`` is that of each word; ``rng`` selects one of several replacements.
        """
        words, first, sizes = self._replacements
        _, pair = np.unique(text * sizes.size + codes, return_inverse=True)
        fraction = rng.random(pair.max(initial=-1) + 1)[pair]
        replacements: Ids = words[first[codes] + (fraction * sizes[codes]).astype(np.int64)]
        return replacements

    def _encode_word(self, word: str) -> int:
        stem = self.divide_suffix(word)[0]
        lower = stem.casefold()
        matches = lower in self.words or (stem[0].isupper() and lower in self.names)
        return self._codes[lower] if matches else -1


def build_swaps(side: Side) -> Swaps:
    """Return the words that express a gender, or the first names that suggest a race.

    The names are those of the packaged templates. A name is replaced by one that differs in
    ``side`` only: exchanging race preserves the gender.

    >>> swaps = build_swaps("gender")
    >>> swaps.words["mr"], swaps.words["her"], swaps.words["her _"], swaps.names["emily"][0]
    (('mrs',), ('him',), ('his',), 'Brad')
    """
    names = dict(_iterate_names(side))
    if side == "race":
        return Swaps({}, names)
    words: dict[str, tuple[str, ...]] = {}
    for pair in _PAIRS.strip().replace("\n", "|").split("|"):
        woman, man = pair.split()
        words.setdefault(woman, (man,))
        words.setdefault(man, (woman,))
    words |= {word: (replacement,) for word, replacement in _ALONE.items()}
    words |= {word + _POSSESSIVE: (replacement,) for word, replacement in _BEFORE_A_NOUN.items()}
    return Swaps(words, names)


def make_counterfactuals(
    texts: Ids, swaps: Swaps, rng: np.random.Generator
) -> tuple[AnyArray, Ids]:
    """Return the indices of the texts with a word of ``swaps``, and counterfactual copies of them.

    Every such word is replaced, with the same capitals (``SHE`` becomes ``HE``) and in the same
    role (``her dog`` becomes ``his dog``, ``with her`` becomes ``with him``); ``rng`` selects one
    of several replacements.

    >>> texts = np.array(["She likes her soup.", "Good soup", "I met Emily"], dtype=object)
    >>> swaps, rng = build_swaps("gender"), np.random.default_rng(0)
    >>> rows, copies = make_counterfactuals(texts, swaps, rng)
    >>> rows.tolist(), copies.tolist()
    ([0, 2], ['He likes his soup.', 'I met Brad'])
    """
    rows, copies = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=object)]
    for block_rows, block in divide_into_blocks(texts):
        codes = swaps.encode(block)
        swapped = np.flatnonzero(codes >= 0)
        replacements = swaps.sample(block.text[swapped], codes[swapped], rng)
        new = np.empty(swapped.size, dtype=object)
        pairs = zip(block.words[swapped], replacements, strict=True)
        new[:] = [_match_capitals(*swaps.divide_suffix(word), other) for word, other in pairs]
        copied = np.unique(block.text[swapped])
        rows.append(block_rows[copied])
        copies.append(block.replace_pieces(copied, block.positions[swapped], new))
        report_progress("copying reviews", int(block_rows[-1]) + 1, len(texts))
    return np.concatenate(rows), np.concatenate(copies)


def _iterate_names(side: Side) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each name with the names that differ from it in ``side`` only."""
    kinds = load_packaged()["restaurants"].kinds
    (word_list,) = (kind.words["name"] for kind in kinds if "name" in kind.words)
    other_labels = [values for label, values in word_list.labels.items() if label != side]
    columns = zip(word_list.words, word_list.labels[side], *other_labels, strict=True)
    rows = [row for row in columns if row[0] not in _AMBIGUOUS_NAMES]
    for name, value, *labels in rows:
        replacements = [
            candidate
            for candidate, candidate_value, *candidate_labels in rows
            if candidate_value != value and candidate_labels == labels
        ]
        yield name.casefold(), tuple(replacements)


def _precedes_noun(block: TextWords) -> BoolArray:
    not_nouns = frozenset(_NOT_A_NOUN.split())
    is_noun = block.match_words(lambda word: word.casefold() not in not_nouns)
    follows = is_noun & block.match_separators(str.isspace) & ~block.is_first
    return np.append(follows[1:], False)


def _match_capitals(stem: str, suffix: str, replacement: str) -> str:
    """Return the replacement with the capitals of the replaced word, and its suffix."""
    if len(stem) > 1 and stem.isupper():
        return replacement.upper() + suffix
    return (
        replacement[0].upper() + replacement[1:] if stem[0].isupper() else replacement
    ) + suffix
