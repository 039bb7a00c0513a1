"""Sentences with slots, the labelled words that fill them, and the filling."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Ids
from recbias.core.errors import MalformedLine
from recbias.core.outputs.sentences import MASK

PRONOUNS = {
    "his/her": {"male": "his", "female": "her", None: "their"},
    "he/she": {"male": "he", "female": "she", None: "they"},
    "him/her": {"male": "him", "female": "her", None: "them"},
}
"""What stands for the pronoun of the word before it, by that word's ``gender``."""

NEUTRAL = "neutral"
"""The label of prompts that name nothing, and how they are called."""

_TOKEN = re.compile(rf"\[([^\[\]]+)\]|\b({'|'.join(PRONOUNS)})\b")


@dataclass(frozen=True)
class WordList:
    """The words of a slot.

    Args:
        words: Each once.
        labels: What is known of each word, by label: ``{"gender": ("female", "male")}``; None
            where a word does not carry the label.
    """

    words: tuple[str, ...]
    labels: Mapping[str, tuple[str | None, ...]]


@dataclass(frozen=True)
class Kind:
    """Sentences that ask about one thing.

    Args:
        name: Its name.
        sentences: The sentences, with slots as ``[name]``.
        words: The words of each slot.
    """

    name: str
    sentences: tuple[str, ...]
    words: Mapping[str, WordList]

    @property
    def labels(self) -> dict[str, tuple[str, str]]:
        """The slot and label behind each label column: ``first_gender`` where slots are many."""
        named: dict[str, tuple[str, str]] = {}
        for slot, listed in self.words.items():
            for label in listed.labels:
                named[f"{slot}_{label}" if len(self.words) > 1 else label] = (slot, label)
        return named

    def __len__(self) -> int:
        """Return the number of prompts."""
        sizes = {slot: len(each.words) for slot, each in self.words.items()}
        counts = [[sizes[slot] for slot in slots_of(each)] for each in self.sentences]
        return int(sum(np.prod(each) for each in counts))


@dataclass(frozen=True)
class TemplateSet:
    """Sentences of several kinds.

    Args:
        about: What they are, one sentence.
        source: Where sentences and words are from; may be blank.
        kinds: The kinds, in order.
    """

    about: str
    source: str
    kinds: tuple[Kind, ...]

    @property
    def names(self) -> list[str]:
        """The names of the kinds."""
        return [each.name for each in self.kinds]


def slots_of(sentence: str) -> list[str]:
    """Return the slots of a sentence, each once.

    >>> slots_of("A table for my [first] and his/her [second]")
    ['first', 'second']
    """
    return list(dict.fromkeys(match[1] for match in _TOKEN.finditer(sentence) if match[1]))


def filled(
    kinds: Iterable[Kind], *, masked: Collection[str] = (), neutral: bool = False
) -> pd.DataFrame:
    """Return every sentence with every word, a row each.

    The columns are ``id``, ``text``, ``kind``, ``template``, one for each slot and one for each
    label; a cell that does not apply is None. The words of two slots of a sentence are crossed;
    ``orientation`` follows from the genders of ``first`` and ``second``.

    Args:
        kinds: The sentences and words.
        masked: Slots whose word is not told: ``[MASK]`` stands in the text, and a pronoun that
            does not fit any gender. The columns are those of the word all the same.
        neutral: Add each sentence with no word told, behind those with words: a row that has no
            word or label but 1 in the column ``neutral``, where all others have 0.

    >>> words = {"name": WordList(("Ann", "Bob"), {"gender": ("female", "male")})}
    >>> made = filled([Kind("names", ("A table for [name] and his/her friend",), words)])
    >>> made[["id", "text", "gender"]].to_numpy().tolist()[1]
    ['names-01:Bob', 'A table for Bob and his friend', 'male']
    """
    chosen = list(kinds)
    blocks = [
        block
        for kind in chosen
        for number, sentence in enumerate(kind.sentences, 1)
        for block in _blocks(kind, sentence, _name(kind, number), (masked, neutral))
    ]
    slots = dict.fromkeys(slot for kind in chosen for slot in kind.words)
    labels = dict.fromkeys(label for kind in chosen for label in kind.labels)
    columns = list(dict.fromkeys(["id", "text", "kind", "template", *slots, *labels]))
    if {"first_gender", "second_gender"} <= labels.keys():
        columns.append("orientation")
    if neutral:
        columns.append(NEUTRAL)
    return pd.DataFrame({name: _stacked(blocks, name) for name in columns})


def _name(kind: Kind, number: int) -> str:
    width = max(2, len(str(len(kind.sentences))))
    return f"{kind.name}-{number:0{width}d}"


def _blocks(
    kind: Kind, sentence: str, template: str, hidden: tuple[Collection[str], bool]
) -> Iterator[dict[str, AnyArray]]:
    """Yield the columns of one sentence, with words and then as neutral."""
    masked, neutral = hidden
    made = _block(kind, sentence, template, masked)
    yield {**made, NEUTRAL: np.zeros(made["id"].size)}
    if neutral:
        first = {slot: np.zeros(1, dtype=np.intp) for slot in slots_of(sentence)}
        yield {
            "id": _same(f"{template}:{NEUTRAL}", 1),
            "text": _texts(kind, sentence, first, first),
            "kind": _same(kind.name, 1),
            "template": _same(template, 1),
            NEUTRAL: np.ones(1),
        }


def _block(
    kind: Kind, sentence: str, template: str, masked: Collection[str]
) -> dict[str, AnyArray]:
    """Return the columns of one sentence with every word, ``object[n]`` each."""
    slots = slots_of(sentence)
    sizes = [len(kind.words[slot].words) for slot in slots]
    places = dict(zip(slots, np.indices(sizes).reshape(len(slots), -1), strict=True))
    n = int(np.prod(sizes))
    made = {"kind": _same(kind.name, n), "template": _same(template, n)}
    made |= {slot: _cells(kind.words[slot].words)[at] for slot, at in places.items()}
    for column, (slot, label) in kind.labels.items():
        if slot in places:
            made[column] = _cells(kind.words[slot].labels[label])[places[slot]]
    made["text"] = _texts(kind, sentence, places, masked)
    made["id"] = made["template"]
    for slot in slots:
        made["id"] = made["id"] + ":" + made[slot]
    if {"first_gender", "second_gender"} <= made.keys():
        made["orientation"] = _orientation(made["first_gender"], made["second_gender"])
    return made


def _texts(
    kind: Kind, sentence: str, places: Mapping[str, AnyArray], masked: Collection[str]
) -> Ids:
    """Return a sentence with each choice of words, ``object[n]``."""
    text: Ids = _same("", next(iter(places.values())).size)
    end, before = 0, next(iter(places))
    for match in _TOKEN.finditer(sentence):
        text = text + sentence[end : match.start()]
        before, end = match[1] or before, match.end()
        listed = kind.words[before]
        if before in masked:
            listed = WordList((MASK,) * len(listed.words), {})
        words = listed.words if match[1] else _pronouns(listed, match[2])
        text = text + _cells(words)[places[before]]
    whole: Ids = text + sentence[end:]
    return whole


def _pronouns(listed: WordList, written: str) -> tuple[str, ...]:
    known = PRONOUNS[written]
    genders = listed.labels.get("gender", (None,) * len(listed.words))
    return tuple(known.get(each, known[None]) for each in genders)


def _orientation(first: Ids, second: Ids) -> Ids:
    known = pd.notna(first) & pd.notna(second)
    made = np.where(first == second, "homosexual", "heterosexual").astype(object)
    made[~known] = None
    return made


def _stacked(blocks: list[dict[str, AnyArray]], name: str) -> AnyArray:
    return np.concatenate([each.get(name, _same(None, each["id"].size)) for each in blocks])


def _cells(values: Iterable[str | None]) -> Ids:
    listed = list(values)
    cells = np.empty(len(listed), dtype=object)
    cells[:] = listed
    return cells


def _same(value: str | None, n: int) -> Ids:
    return np.full(n, value, dtype=object)


def refuse_equal_ids(ids: Ids, where: str) -> None:
    """Refuse prompts of one identifier.

    Raises:
        MalformedLine: Two prompts are called alike, because words hold a colon.
    """
    again = pd.Series(ids).duplicated().to_numpy()
    if again.any():
        found = f"two prompts are called {ids[again][0]!r}"
        raise MalformedLine(found, where=where, remedy="leave the colon out of the words")
