"""Sentences with slots, the labelled words of the slots, and the prompts made from them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Ids
from recbias.core.errors import MalformedLine
from recbias.core.outputs.text_outputs import MASK
from recbias.core.queries.queries import SAMPLE

PRONOUNS = {
    "his/her": {"male": "his", "female": "her", None: "their"},
    "he/she": {"male": "he", "female": "she", None: "they"},
    "him/her": {"male": "him", "female": "her", None: "them"},
}
"""The pronouns by the ``gender`` of the preceding word."""

NEUTRAL = "neutral"
"""The label of prompts without an identity, and the end of their identifiers."""

_TOKEN = re.compile(rf"\[([^\[\]]+)\]|\b({'|'.join(PRONOUNS)})\b")


@dataclass(frozen=True)
class WordList:
    """The words of a slot, with the value of each label: ``{"gender": ("female", None)}``."""

    words: tuple[str, ...]
    labels: Mapping[str, tuple[str | None, ...]]


@dataclass(frozen=True)
class Kind:
    """Sentences about one subject, with slots as ``[name]``, and the words of each slot."""

    name: str
    sentences: tuple[str, ...]
    words: Mapping[str, WordList]

    @property
    def labels(self) -> dict[str, tuple[str, str]]:
        """The slot and label of each label column: ``first_gender`` if there are several slots."""
        columns: dict[str, tuple[str, str]] = {}
        for slot, word_list in self.words.items():
            for label in word_list.labels:
                columns[f"{slot}_{label}" if len(self.words) > 1 else label] = (slot, label)
        return columns

    def __len__(self) -> int:
        """Return the number of prompts."""
        sizes = {slot: len(word_list.words) for slot, word_list in self.words.items()}
        counts = [[sizes[slot] for slot in find_slots(text)] for text in self.sentences]
        return int(sum(np.prod(count) for count in counts))


@dataclass(frozen=True)
class TemplateSet:
    """Sentences of several kinds, a description in one sentence, and the source or blank."""

    about: str
    source: str
    kinds: tuple[Kind, ...]

    @property
    def names(self) -> list[str]:
        """The names of the kinds."""
        return [kind.name for kind in self.kinds]


def find_slots(sentence: str) -> list[str]:
    """Return the slots of a sentence, without repetition.

    >>> find_slots("A table for my [first] and his/her [second]")
    ['first', 'second']
    """
    return list(dict.fromkeys(match[1] for match in _TOKEN.finditer(sentence) if match[1]))


def fill_templates(
    kinds: Iterable[Kind],
    *,
    masked: Collection[str] = (),
    neutral: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return one row per prompt: every sentence with every word of its slots.

    The columns are ``id``, ``text``, ``kind``, ``template``, one for each slot and one for each
    label; None where a column does not apply. Two slots are filled with all pairs of their words;
    ``orientation`` follows from the genders of ``first`` and ``second``.

    The word of ``masked`` slots is ``[MASK]`` in the text, with gender-neutral pronouns; the other
    columns do not change. With ``neutral``, each sentence is added after its prompts with these
    words, or ``[MASK]`` in a slot without one: the column ``neutral`` is 1 for these rows and 0
    otherwise.

    >>> words = {"name": WordList(("Ann", "Bob"), {"gender": ("female", "male")})}
    >>> table = fill_templates([Kind("names", ("A table for [name] and his/her friend",), words)])
    >>> table[["id", "text", "gender"]].to_numpy().tolist()[1]
    ['names-01:Bob', 'A table for Bob and his friend', 'male']
    """
    kinds = list(kinds)
    blocks = [block for kind in kinds for block in _fill_kind(kind, masked, neutral)]
    slots = dict.fromkeys(slot for kind in kinds for slot in kind.words)
    labels = dict.fromkeys(label for kind in kinds for label in kind.labels)
    columns = list(dict.fromkeys(["id", "text", "kind", "template", *slots, *labels]))
    if {"first_gender", "second_gender"} <= labels.keys():
        columns.append("orientation")
    if neutral is not None:
        columns.append(NEUTRAL)
    return pd.DataFrame({column: _stack_column(blocks, column) for column in columns})


def add_samples(prompts: pd.DataFrame, n_samples: int) -> pd.DataFrame:
    """Return the prompts, and each neutral one ``n_samples`` more times, right behind it.

    So the first prompts, which a smoke test takes, have samples too. Prompts have ``sample`` 0;
    repeated ones 1, 2, ... and the identifier ``a:neutral:sample-1``.

    Args:
        prompts: The columns ``id``, ``neutral`` and others.
        n_samples: The number of further samples; with 0 there is no column ``sample``.
    """
    if not n_samples:
        return prompts
    prompts = prompts.reset_index(drop=True)
    neutral = prompts[prompts[NEUTRAL] == 1]
    copies = [
        neutral.assign(id=neutral["id"] + f":{SAMPLE}-{number}").assign(**{SAMPLE: float(number)})
        for number in range(1, n_samples + 1)
    ]
    samples = pd.concat([prompts.assign(**{SAMPLE: 0.0}), *copies])
    return samples.sort_index(kind="stable").reset_index(drop=True)


def refuse_equal_ids(ids: Ids, file: str) -> None:
    """Raise MalformedLine if two prompts have the same identifier: words contain a colon."""
    is_repeated = pd.Series(ids).duplicated().to_numpy()
    if is_repeated.any():
        message = f"two prompts have the identifier {ids[is_repeated][0]!r}"
        raise MalformedLine(message, where=file, remedy="remove the colon from the words")


def _fill_kind(
    kind: Kind, masked: Collection[str], neutral: Mapping[str, str] | None
) -> Iterator[dict[str, AnyArray]]:
    width = max(2, len(str(len(kind.sentences))))
    for number, sentence in enumerate(kind.sentences, 1):
        template = f"{kind.name}-{number:0{width}d}"
        yield _fill_sentence(kind, sentence, template, dict.fromkeys(masked, MASK))
        if neutral is not None:
            slots = {slot: np.zeros(1, dtype=np.intp) for slot in find_slots(sentence)}
            texts = {"id": f"{template}:{NEUTRAL}", "kind": kind.name, "template": template}
            yield {
                **{column: _repeat(text, 1) for column, text in texts.items()},
                "text": _fill_text(
                    kind, sentence, slots, {**dict.fromkeys(slots, MASK), **neutral}
                ),
                NEUTRAL: np.ones(1),
            }


def _fill_sentence(
    kind: Kind, sentence: str, template: str, masked: Mapping[str, str]
) -> dict[str, AnyArray]:
    slots = find_slots(sentence)
    sizes = [len(kind.words[slot].words) for slot in slots]
    indices = dict(zip(slots, np.indices(sizes).reshape(len(slots), -1), strict=True))
    n = int(np.prod(sizes))
    columns: dict[str, AnyArray] = {
        "kind": _repeat(kind.name, n),
        "template": _repeat(template, n),
        NEUTRAL: np.zeros(n),
    }
    for slot in slots:
        columns[slot] = np.array(kind.words[slot].words, dtype=object)[indices[slot]]
    for column, (slot, label) in kind.labels.items():
        if slot in indices:
            values = np.array(kind.words[slot].labels[label], dtype=object)
            columns[column] = values[indices[slot]]
    columns["text"] = _fill_text(kind, sentence, indices, masked)
    columns["id"] = columns["template"]
    for slot in slots:
        columns["id"] = columns["id"] + ":" + columns[slot]
    if {"first_gender", "second_gender"} <= columns.keys():
        first, second = columns["first_gender"], columns["second_gender"]
        orientation = np.where(first == second, "homosexual", "heterosexual").astype(object)
        orientation[pd.isna(first) | pd.isna(second)] = None
        columns["orientation"] = orientation
    return columns


def _fill_text(
    kind: Kind, sentence: str, indices: Mapping[str, AnyArray], masked: Mapping[str, str]
) -> Ids:
    texts: Ids = _repeat("", next(iter(indices.values())).size)
    end, slot = 0, next(iter(indices))
    for match in _TOKEN.finditer(sentence):
        texts = texts + sentence[end : match.start()]
        slot, end = match[1] or slot, match.end()
        word_list = kind.words[slot]
        if slot in masked:
            word_list = WordList((masked[slot],) * len(word_list.words), {})
        words = word_list.words
        if not match[1]:
            forms = PRONOUNS[match[2]]
            genders = word_list.labels.get("gender", (None,) * len(words))
            words = tuple(forms.get(gender, forms[None]) for gender in genders)
        texts = texts + np.array(words, dtype=object)[indices[slot]]
    return np.asarray(texts + sentence[end:], dtype=object)


def _stack_column(blocks: list[dict[str, AnyArray]], column: str) -> AnyArray:
    return np.concatenate([block.get(column, _repeat(None, block["id"].size)) for block in blocks])


def _repeat(value: str | None, n: int) -> Ids:
    return np.full(n, value, dtype=object)
