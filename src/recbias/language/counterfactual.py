"""Counterfactual copies of texts: the same text about a person of another gender or race."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.dataset import AnyArray, Ids
from recbias.formats.yaml import read_marked
from recbias.language.masking import TextWords, divide_into_blocks
from recbias.language.templates import load_packaged
from recbias.language.terms import find_packaged, match_case

Side: TypeAlias = Literal["gender", "race"]
"""The attribute that is exchanged."""

_POSSESSIVE = " _"  # the suffix of words in Swaps that stand directly before a noun

_ALONE = {"her": "him", "him": "her", "hers": "his", "his": "hers", "hostess": "host"}
_BEFORE_A_NOUN = {"her": "his", "his": "her"}
_AMBIGUOUS_NAMES = {"Asia", "Kenya"}
"""First names that mean places in most texts; they are not replaced."""


@cache
def _load_words() -> dict[str, dict[str, None]]:
    """Return classes of English words, for the role of ``her`` and ``his``, and ``pairs``."""
    classes = read_marked(find_packaged("words", "english.yaml")).mapping("the words")
    return {name: dict.fromkeys(words.text(name).split()) for name, words in classes.items()}


_MODIFIER_ENDING = re.compile(
    r".{2,}(?:ly|[^e]ed|ful|less|able|ible|ous|ish|ier|iest)|\d+(?:st|nd|rd|th)?"
)
_MAX_WORDS = 6
"""The words after a pronoun that may decide its role."""


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
        if possessives := _find_possessives(block, codes):
            codes[possessives] = [
                self._codes[block.words[index].casefold() + _POSSESSIVE] for index in possessives
            ]
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
    for pair in _load_words()["pairs"]:
        woman, man = pair.split("/")
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
    for block_rows, block in divide_into_blocks(texts, "copying reviews"):
        codes = swaps.encode(block)
        swapped = np.flatnonzero(codes >= 0)
        replacements = swaps.sample(block.text[swapped], codes[swapped], rng)
        new = np.empty(swapped.size, dtype=object)
        pairs = zip(block.words[swapped], replacements, strict=True)
        divided = [(*swaps.divide_suffix(word), other) for word, other in pairs]
        new[:] = [match_case(stem, other) + suffix for stem, suffix, other in divided]
        copied = np.unique(block.text[swapped])
        rows.append(block_rows[copied])
        copies.append(block.replace_pieces(copied, block.positions[swapped], new))
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


def _find_possessives(block: TextWords, codes: AnyArray) -> list[int]:
    """Return the indices of ``her`` and ``his`` that belong to a noun."""
    is_pronoun = block.match_words(lambda word: word.casefold() in _BEFORE_A_NOUN)
    pronouns = np.flatnonzero(is_pronoun & (codes >= 0))
    ends = block.starts[block.text[pronouns] + 1].tolist()
    found: list[int] = []
    for index, position, end in zip(
        pronouns.tolist(), block.positions[pronouns].tolist(), ends, strict=True
    ):
        before = "" if block.is_first[index] else block.pieces[position - 2].casefold()
        phrase = _read_phrase(block.pieces[position + 1 : min(end, position + 2 * _MAX_WORDS)])
        if _precedes_noun(block.pieces[position].casefold(), before, phrase):
            found.append(index)
    return found


def _read_phrase(pieces: Ids) -> list[str]:
    """Return the words up to a punctuation mark, without a comma or "and" between modifiers."""
    words: list[str] = []
    for separator, word in zip(pieces[::2], pieces[1::2], strict=False):
        joins = separator.isspace() or (words and separator in {"-", "‐", "‑"})
        lists = separator.strip() == "," and words and _classify(words[-1]) == "modifier"
        if not joins and not (lists and _classify(word.casefold()) == "modifier"):
            break
        words.append(word.casefold().replace("’", "'"))
    classes = ["", *map(_classify, words), ""]
    return [
        word
        for index, word in enumerate(words, 1)
        if word != "and"
        or classes[index - 1] != "modifier"
        or not _continues(classes[index + 1 :])
    ]


def _continues(classes: list[str]) -> bool:
    """Return whether a phrase goes on after "and": ``her kind and diverse staff``."""
    return classes[0] == "modifier" or classes[:2] == ["noun", "noun"]


@cache
def _classify(word: str) -> str:
    stem = word.partition("'")[0]
    for name in ("noun", "modifier", "verb", "either"):
        if word in _load_words()[name]:
            return name
    if stem in _load_words()["stop"] or word.endswith("n't"):
        return "stop"
    if word in _load_words()["number"] or _MODIFIER_ENDING.fullmatch(word):
        return "modifier"
    return "participle" if word.endswith("ing") else "noun"


def _precedes_noun(pronoun: str, before: str, phrase: list[str]) -> bool:
    """Return whether ``her`` or ``his`` belongs to a noun of the phrase after it.

    The first word that is no modifier decides: ``her very old dog``, ``made her very happy``. A
    verb before ``her`` may still have it as an object: ``let her drive``, ``gave her flowers``.
    """
    classes = [*map(_classify, phrase), "stop"]
    head = next(index for index, name in enumerate(classes) if name != "modifier")
    if classes[head] in {"stop", "verb"}:
        return False
    return pronoun == "his" or not (
        (head == 0 and _governs_verb(before, phrase, classes))
        or _governs_nouns(before, phrase, classes, head)
    )


def _governs_verb(before: str, phrase: list[str], classes: list[str]) -> bool:
    """Return whether the word before ``her`` is a verb with what ``her`` does: ``let her go``."""
    acts = classes[0] == "either" and before in _load_words()["cause"] and classes[1] != "verb"
    acts_on = (
        before in _load_words()["cause"] | _load_words()["have"]
        and (*phrase, "", "")[1] in _load_words()["determiner"]
    )
    is_doing = classes[0] == "participle" and before in _load_words()["perceive"]
    moves = phrase[0] in {"back", "home"} and before in _load_words()["move"]
    return acts or acts_on or is_doing or moves


def _governs_nouns(before: str, phrase: list[str], classes: list[str], head: int) -> bool:
    """Return whether the word before ``her`` is a verb with the phrase as another object."""
    is_noun = [name in {"noun", "either", "participle"} for name in classes]
    end = is_noun.index(False, head)
    first, last, following = phrase[head], phrase[end - 1], (*phrase[end:], "")[0]
    modifiers = {
        word for word in phrase[:head] if word in _load_words()["number"] or word[0].isdigit()
    }
    if last in _load_words()["period"] and (modifiers or phrase[0] in {"last", "next", "every"}):
        return before != "" and _classify(before) != "stop"
    is_given = first not in _load_words()["owned"] and (
        last in _load_words()["mass"]
        or re.search("[^sui']s$", last) is not None
        or "one" in modifiers
    )
    if modifiers and before in _load_words()["count"] | _load_words()["give"]:
        return is_given
    return before in _load_words()["give"] and is_given and following not in {"to", "back"}
