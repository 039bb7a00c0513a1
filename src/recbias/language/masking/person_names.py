"""Names of persons in texts: by a dictionary of first names, or as a language model marks them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Protocol

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.errors import WrongType
from recbias.language.backends import find_model, labeller_of, tokenizer_of
from recbias.language.masking.text_words import TextWords, plain

PERSON = {"PER", "PERSON"}
"""What the labels of models call a person, behind ``B-`` or ``I-``."""

CHUNKS_AT_ONCE = 32
"""How many pieces of text a model reads at once."""

LONGEST, OVERLAP = 512, 32
"""Tokens of a piece of a long text, and how many of them the next piece repeats."""


class PersonFinder(Protocol):
    """Finds names of persons."""

    def look(self, block: TextWords) -> None:
        """Learn from texts before any are searched."""
        ...

    def find(self, block: TextWords) -> BoolArray:
        """Return which words of some texts are of a person's name, ``bool[w]``."""
        ...


class FirstNames:
    """Finds the first names of the dictionary of gender-guesser, of three letters or more.

    A word is one where it is written as ``Emily``, one capital and then small letters, and the
    texts looked at do not write it in small letters (``will``) more often than so within a
    sentence. At the start of a sentence any word has a capital, so that says nothing.
    """

    def __init__(self) -> None:
        self._codes = _first_names()
        self._balance = np.zeros(len(self._codes), dtype=np.int64)

    def look(self, block: TextWords) -> None:
        """Count how the texts write the words of the dictionary."""
        codes = self._codes_of(block)
        known, within = codes >= 0, ~block.begins_sentence
        n = self._balance.size
        self._balance += np.bincount(codes[known & within & _is_title(block)], minlength=n)
        self._balance -= np.bincount(codes[known & _is_small(block)], minlength=n)

    def find(self, block: TextWords) -> BoolArray:
        """Return which words of some texts are first names, ``bool[w]``."""
        codes = self._codes_of(block)
        return (codes >= 0) & _is_title(block) & (self._balance[codes] >= 0)

    def _codes_of(self, block: TextWords) -> AnyArray:
        return block.of_words(lambda each: self._codes.get(plain(each), -1))


class PersonModel:
    """Finds what a token-classification model marks as a person.

    Args:
        name: A model of the Hugging Face hub, a folder, or an installed package.

    Raises:
        MissingFile: It is not there.
        WrongType: It has no label for persons, or a tokenizer that does not say where tokens are.
    """

    def __init__(self, name: str) -> None:
        source = find_model(name)
        self._tokenizer = tokenizer_of(source)
        self._model = labeller_of(source)
        labels = self._model.config.id2label
        marked = [code for code, each in labels.items() if each.rpartition("-")[2] in PERSON]
        if not marked:
            found = f"{name} has no label PER or PERSON, but {', '.join(labels.values())}"
            raise WrongType(found, where="persons", remedy="name a model that marks persons")
        if not self._tokenizer.is_fast:
            found = f"the tokenizer of {name} does not say where tokens stand"
            raise WrongType(found, where="persons", remedy="name a model with a fast tokenizer")
        self._person = np.array(marked)

    def look(self, block: TextWords) -> None:
        """Do nothing: the model has learned."""

    def find(self, block: TextWords) -> BoolArray:
        """Return which words of some texts overlap a token of a person, ``bool[w]``."""
        text, start, end = self._marked(block.texts)
        found = np.zeros(block.text.size, dtype=bool)
        if text.size and found.size:
            far = max(map(len, block.texts)) + 1
            starts, ends = block.spans()
            first = np.searchsorted(block.text * far + ends, text * far + start, side="right")
            behind = np.searchsorted(block.text * far + starts, text * far + end, side="left")
            change = np.zeros(found.size + 1, dtype=np.int64)
            np.add.at(change, first, 1)
            np.add.at(change, np.maximum(behind, first), -1)
            found = np.cumsum(change)[:-1] > 0
        return found

    def _marked(self, texts: list[str]) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Return the text, start and end of every token of a person, in characters."""
        longest = getattr(self._model.config, "max_position_embeddings", None) or LONGEST
        longest = min(LONGEST, longest)
        read = self._tokenizer(
            texts,
            truncation=True,
            max_length=longest,
            stride=min(OVERLAP, longest // 4),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        ids, spans = read["input_ids"], read["offset_mapping"]
        order = np.argsort([len(each) for each in ids], kind="stable")
        found = [np.empty((0, 3), dtype=np.int64)]
        for start in range(0, order.size, CHUNKS_AT_ONCE):
            rows = order[start : start + CHUNKS_AT_ONCE]
            for row, persons in zip(rows, self._persons([ids[row] for row in rows]), strict=True):
                of = np.full(len(spans[row]), read["overflow_to_sample_mapping"][row])
                found.append(np.column_stack([of, spans[row]])[persons])
        text, begin, end = np.concatenate(found).T
        real = end > begin
        return text[real], begin[real], end[real]

    def _persons(self, ids: list[list[int]]) -> list[BoolArray]:
        """Return which tokens of each row are of a person."""
        import torch

        lengths = np.array([len(each) for each in ids])
        inside = np.arange(lengths.max()) < lengths[:, None]
        padded = np.full(inside.shape, self._tokenizer.pad_token_id or 0)
        padded[inside] = np.concatenate(ids)
        device = self._model.device
        with torch.inference_mode():
            logits = self._model(
                input_ids=torch.from_numpy(padded).to(device),
                attention_mask=torch.from_numpy(inside).long().to(device),
            ).logits
        persons = np.isin(logits.argmax(-1).cpu().numpy(), self._person)
        return [row[:length] for row, length in zip(persons, lengths, strict=True)]


def dictionary() -> Path:
    """Return the file of the first names of gender-guesser."""
    return Path(str(files("gender_guesser") / "data" / "nam_dict.txt"))


@cache
def _first_names() -> dict[str, int]:
    """Return the code of each first name."""
    from gender_guesser.detector import Detector

    names = sorted({plain(each) for each in Detector().names})
    return {each: code for code, each in enumerate(each for each in names if len(each) > 2)}


def _is_title(block: TextWords) -> BoolArray:
    return np.asarray(
        block.of_words(lambda each: each[0].isupper() and each[1:].islower()), dtype=bool
    )


def _is_small(block: TextWords) -> BoolArray:
    return np.asarray(block.of_words(lambda each: each[0].islower()), dtype=bool)
