"""Names of persons in texts, found with a dictionary of first names or with a language model."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.errors import WrongType
from recbias.core.machine.memory import release_between
from recbias.core.models.devices import Device
from recbias.language.backends import load_token_classifier, load_tokenizer
from recbias.language.masking.text_words import TextWords, mark_ranges, normalize_word
from recbias.language.model_folders import find_model
from recbias.numerics.texts.token_batches import batch_by_tokens

PERSON_LABELS = {"PER", "PERSON"}
"""The labels of models for persons, without ``B-`` or ``I-``."""

BATCH_TOKENS, CHUNK_SIZE, OVERLAP = 4096, 512, 32
"""The tokens of a batch and of a chunk, some of which the next chunk repeats."""


class FirstNames:
    """Finds the first names of the dictionary of gender-guesser, of three letters or more.

    A word is a first name if it is written with one capital (``Emily``) and the texts write it in
    lower case (``will``) at most as often as with a capital inside sentences. At the start of a
    sentence every word has a capital, so such words are not counted.
    """

    def __init__(self) -> None:
        self._codes = _load_first_names()
        self._balance = np.zeros(len(self._codes), dtype=np.int64)

    def learn(self, block: TextWords) -> None:
        """Count how the texts write the words; called with all texts before any search."""
        codes, n = self._encode(block), self._balance.size
        is_name = codes >= 0
        with_capital = is_name & ~block.begins_sentence & _is_title_case(block)
        lower = block.match_words(lambda word: word[0].islower())
        self._balance += np.bincount(codes[with_capital], minlength=n)
        self._balance -= np.bincount(codes[is_name & lower], minlength=n)

    def find(self, block: TextWords) -> BoolArray:
        """Return which words of the texts are first names, ``bool[w]``."""
        codes = self._encode(block)
        return (codes >= 0) & _is_title_case(block) & (self._balance[codes] >= 0)

    def _encode(self, block: TextWords) -> AnyArray:
        return block.map_words(lambda word: self._codes.get(normalize_word(word), -1))


class PersonModel:
    """Finds words that a token-classification model labels as a person; WrongType if it cannot."""

    def __init__(self, name: str, device: Device = "auto") -> None:
        source = find_model(name)
        self._tokenizer = load_tokenizer(source)
        self._model = load_token_classifier(source, device)
        labels = self._model.config.id2label
        suffixes = {code: label.rpartition("-")[2] for code, label in labels.items()}
        codes = [code for code, suffix in suffixes.items() if suffix in PERSON_LABELS]
        if not codes:
            message = f"{name} has no label PER or PERSON, but {', '.join(labels.values())}"
            raise WrongType(message, where="persons", remedy="name a model that labels persons")
        self._person_codes = np.array(codes)

    def find(self, block: TextWords) -> BoolArray:
        """Return which words of the texts overlap a token of a person, ``bool[w]``."""
        text, start, end = self._find_tokens(block.texts)
        n_words = block.text.size
        if not (text.size and n_words):
            return np.zeros(n_words, dtype=bool)
        stride = max(map(len, block.texts)) + 1
        word_starts, word_ends = (block.text * stride + bound for bound in block.find_spans())
        first = np.searchsorted(word_ends, text * stride + start, side="right")
        after_last = np.searchsorted(word_starts, text * stride + end, side="left")
        return mark_ranges(n_words, first, np.maximum(after_last, first))

    def _find_tokens(self, texts: list[str]) -> tuple[AnyArray, AnyArray, AnyArray]:
        limit = getattr(self._model.config, "max_position_embeddings", None) or CHUNK_SIZE
        size = min(CHUNK_SIZE, limit)
        chunks = self._tokenizer(
            texts,
            truncation=True,
            max_length=size,
            stride=min(OVERLAP, size // 4),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        ids, spans = chunks["input_ids"], chunks["offset_mapping"]
        lengths = np.array([len(tokens) for tokens in ids], dtype=np.int64)
        blocks = [np.empty((0, 3), dtype=np.int64)]
        for rows in release_between(batch_by_tokens(lengths, BATCH_TOKENS)):
            is_person = self._classify([ids[row] for row in rows])
            for row, tokens in zip(rows, is_person, strict=True):
                text_index = chunks["overflow_to_sample_mapping"][row]
                text_column = np.full(len(spans[row]), text_index)
                blocks.append(np.column_stack([text_column, spans[row]])[tokens])
        text, start, end = np.concatenate(blocks).T
        has_text = end > start
        return text[has_text], start[has_text], end[has_text]

    def _classify(self, ids: list[list[int]]) -> list[BoolArray]:
        """Return which tokens of each chunk belong to a person."""
        import torch

        lengths = np.array([len(tokens) for tokens in ids])
        is_token = np.arange(lengths.max()) < lengths[:, None]
        padded = np.full(is_token.shape, self._tokenizer.pad_token_id or 0)
        padded[is_token] = np.concatenate(ids)
        device = self._model.device
        with torch.inference_mode():
            logits = self._model(
                input_ids=torch.from_numpy(padded).to(device),
                attention_mask=torch.from_numpy(is_token).long().to(device),
            ).logits
        is_person = np.isin(logits.argmax(-1).cpu().numpy(), self._person_codes)
        return [row[:length] for row, length in zip(is_person, lengths, strict=True)]


def get_dictionary_path() -> Path:
    """Return the path of the first names of gender-guesser."""
    return Path(str(files("gender_guesser") / "data" / "nam_dict.txt"))


@cache
def _load_first_names() -> dict[str, int]:
    from gender_guesser.detector import Detector

    names = sorted({normalize_word(name) for name in Detector().names})
    return {name: code for code, name in enumerate(name for name in names if len(name) > 2)}


def _is_title_case(block: TextWords) -> BoolArray:
    return block.match_words(lambda word: word[0].isupper() and word[1:].islower())
