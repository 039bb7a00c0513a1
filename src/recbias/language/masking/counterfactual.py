"""Counterfactual copies of texts: the same text about somebody of the other gender or race."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.stage_context import report_progress
from recbias.language.masking.text_words import TextWords, blocks
from recbias.language.templates.template_files import packaged

Side: TypeAlias = Literal["gender", "race"]
"""What is exchanged."""

BEHIND = " _"
"""Behind a word of ``Swaps``: what holds where the word stands right before a noun."""

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
"""Words for women and men; of several with one counterpart the first is the one it becomes."""

_ALONE = {"her": "him", "him": "her", "hers": "his", "his": "hers", "hostess": "host"}
_BEFORE_NOUN = {"her": "his", "his": "her"}
_PLACES = {"Asia", "Kenya"}
"""First names that are places in most texts."""

_NO_NOUN = """
a about after again against all also always an and any are around as at away back be because been
before being both but by can could did do does down during even for from had has have he her here
him his how i if in into is it its just like may me might my never no nor not now of off on once or
our out over she should since so some than that the their them then there these they this those
though through to today together too twice under until up us was we well were what when where
whether which while who why will with without would yet you your
"""
"""Words that do not begin what belongs to her or him: ``I told her that``."""


@dataclass(frozen=True, eq=False)
class Swaps:
    """Words and what each may become.

    Args:
        words: Words in small letters; ``her _`` is ``her`` right before a noun.
        names: Names, in small letters too: they count where they have a capital.
    """

    words: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[str, ...]]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {each: place for place, each in enumerate((*self.words, *self.names))}

    @cached_property
    def _others(self) -> tuple[Ids, AnyArray, AnyArray]:
        """What all words may become, one after another, and each word's first and number."""
        found = [*self.words.values(), *self.names.values()]
        sizes = np.array([len(each) for each in found], dtype=np.int64)
        listed = np.array([other for each in found for other in each], dtype=object)
        return listed, np.cumsum(sizes) - sizes, sizes

    def parts(self, word: str) -> tuple[str, str]:
        """Return a word and what is hung on to it: ``Emily``, ``'s``."""
        written = word.replace("’", "'")
        if written.casefold() in self._places:
            return written, ""
        head = written.partition("'")[0]
        return word[: len(head)], word[len(head) :]

    def codes(self, block: TextWords) -> AnyArray:
        """Return the place of each word of some texts among all words, -1 where it has none."""
        codes = block.of_words(self._code)
        before_noun = np.arange(len(self._places))
        for word, place in self._places.items():
            before_noun[place] = self._places.get(word + BEHIND, place)
        noun = (codes >= 0) & _before_noun(block)
        codes[noun] = before_noun[codes[noun]]
        return codes

    def drawn(self, text: AnyArray, codes: AnyArray, rng: np.random.Generator) -> Ids:
        """Return what words become; a word becomes the same everywhere in a text.

        Args:
            text: The text of each word.
            codes: Its place among all words.
            rng: Draws where there are several.
        """
        listed, first, sizes = self._others
        _, pair = np.unique(text * sizes.size + codes, return_inverse=True)
        chance = rng.random(pair.max(initial=-1) + 1)[pair]
        found: Ids = listed[first[codes] + (chance * sizes[codes]).astype(np.int64)]
        return found

    def _code(self, word: str) -> int:
        head = self.parts(word)[0]
        small = head.casefold()
        known = small in self.words or (head[0].isupper() and small in self.names)
        return self._places[small] if known else -1


def swaps_of(side: Side) -> Swaps:
    """Return the words that tell a gender, or the first names that tell a race, and the others.

    Names are those of the packaged templates. A name becomes one of the other side that has its
    other label: exchanging race keeps the gender.

    >>> swaps = swaps_of("gender")
    >>> swaps.words["mr"], swaps.words["her"], swaps.words["her _"], swaps.names["emily"][0]
    (('mrs',), ('him',), ('his',), 'Brad')
    """
    names = dict(_names(side))
    if side == "race":
        return Swaps({}, names)
    words: dict[str, tuple[str, ...]] = {}
    for pair in _PAIRS.strip().replace("\n", "|").split("|"):
        woman, man = pair.split()
        words.setdefault(woman, (man,))
        words.setdefault(man, (woman,))
    words |= {word: (other,) for word, other in _ALONE.items()}
    words |= {word + BEHIND: (other,) for word, other in _BEFORE_NOUN.items()}
    return Swaps(words, names)


def copies(texts: Ids, swaps: Swaps, rng: np.random.Generator) -> tuple[AnyArray, Ids]:
    """Return a counterfactual copy of each text in which a word of either side stands.

    Every such word is replaced by one of the other side, in the same letters (``SHE`` becomes
    ``HE``) and the same role (``her dog`` becomes ``his dog``, ``with her`` becomes ``with him``).

    >>> texts = np.array(["She likes her soup.", "Good soup", "I met Emily"], dtype=object)
    >>> rows, made = copies(texts, swaps_of("gender"), np.random.default_rng(0))
    >>> rows.tolist(), made.tolist()
    ([0, 2], ['He likes his soup.', 'I met Brad'])

    Args:
        texts: The texts, ``object[n]``.
        swaps: The words of both sides.
        rng: Draws the names.

    Returns:
        Which texts were copied, ``int64[c]`` ascending, and the copies, ``object[c]``.
    """
    rows, made = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=object)]
    for at, block in blocks(texts):
        codes = swaps.codes(block)
        found = np.flatnonzero(codes >= 0)
        others = swaps.drawn(block.text[found], codes[found], rng)
        new = np.empty(found.size, dtype=object)
        pairs = zip(block.words[found], others, strict=True)
        new[:] = [_written_as(*swaps.parts(word), other) for word, other in pairs]
        copied = np.unique(block.text[found])
        rows.append(at[copied])
        made.append(block.rebuilt(copied, block.places[found], new))
        report_progress("reviews looked through for copies", int(at[-1]) + 1, len(texts))
    return np.concatenate(rows), np.concatenate(made)


def _names(side: Side) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each name with those of the other side whose other labels are the same."""
    (listed,) = (
        kind.words["name"] for kind in packaged()["restaurants"].kinds if "name" in kind.words
    )
    kept = [label for label in listed.labels if label != side]
    rows = {
        name: (listed.labels[side][place], [listed.labels[label][place] for label in kept])
        for place, name in enumerate(listed.words)
        if name not in _PLACES
    }
    for name, (own, rest) in rows.items():
        yield (
            name.casefold(),
            tuple(each for each, found in rows.items() if found[0] != own and found[1] == rest),
        )


def _before_noun(block: TextWords) -> BoolArray:
    """Return which words stand, but for spaces, right before a word that may be a noun."""
    others = frozenset(_NO_NOUN.split())
    noun = np.asarray(block.of_words(lambda each: each.casefold() not in others), dtype=bool)
    follows = noun & block.of_gaps(str.isspace) & ~block.is_first
    return np.append(follows[1:], False)


def _written_as(head: str, tail: str, other: str) -> str:
    """Return another word in the letters of the first, with what hangs on to it."""
    if len(head) > 1 and head.isupper():
        return other.upper() + tail
    return (other[0].upper() + other[1:] if head[0].isupper() else other) + tail
