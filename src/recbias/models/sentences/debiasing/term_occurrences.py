"""The places of terms in tokenized sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import Contradiction
from recbias.language.backends import silence_transformers
from recbias.language.scoring.sentence_models import SentenceModel
from recbias.language.scoring.sentence_tokens import ScoringSettings, SentenceTokens
from recbias.language.terms.term_pairs import TermPairs, compile_terms


@dataclass(frozen=True, eq=False)
class TermOccurrences:
    """The occurrences of terms, in the order of the sentences and of the text.

    Args:
        sentences: The sentence of each occurrence, ``int64[m]``.
        terms: The number of its term, ``int64[m]``.
        starts: The column of its first token in the sentence, ``int64[m]``.
        ends: The column after its last token, ``int64[m]``.
    """

    sentences: AnyArray
    terms: AnyArray
    starts: AnyArray
    ends: AnyArray

    def __len__(self) -> int:
        """Return the number of occurrences."""
        return int(self.sentences.size)

    def take(self, selected: AnyArray) -> TermOccurrences:
        """Return some of the occurrences, by position or mask."""
        columns = (self.sentences, self.terms, self.starts, self.ends)
        return TermOccurrences(*(column[selected] for column in columns))

    def take_batch(self, rows: AnyArray) -> TermOccurrences:
        """Return the occurrences in a batch, with ``sentences`` by their position in it."""
        positions = np.full(int(max(rows.max(initial=0), self.sentences.max(initial=0))) + 1, -1)
        positions[rows] = np.arange(rows.size)
        inside = self.take(positions[self.sentences] >= 0)
        columns = (positions[inside.sentences], inside.terms, inside.starts, inside.ends)
        order = np.lexsort((columns[2], columns[0]))
        return TermOccurrences(*columns).take(order)


def find_occurrences(
    model: SentenceModel,
    texts: Sequence[str],
    tokens: SentenceTokens,
    settings: ScoringSettings,
    numbers: Mapping[str, int],
    *,
    whole_words: bool,
) -> TermOccurrences:
    """Return the places of terms in sentences; at each place the longest term.

    Args:
        model: The model, whose tokenizer gives the place of a token in the text.
        texts: The sentences.
        tokens: The same as tokens.
        settings: The settings of the tokens; occurrences after ``max_length`` are left out.
        numbers: The number of each term; several terms may have the same.
        whole_words: Whether terms are words between spaces or punctuation.

    Raises:
        Contradiction: The tokenizer does not give the places of tokens.
    """
    if not model.tokenizer.is_fast:
        message = "the tokenizer of the model does not say where in a text a token is"
        raise Contradiction(message, where="model", remedy="add a tokenizer.json to the model")
    by_text = {term.lower(): number for term, number in numbers.items()}
    pattern = compile_terms(tuple(by_text), whole_words=whole_words)
    with silence_transformers():
        encoded = model.tokenizer(
            list(texts),
            add_special_tokens=settings.special_tokens,
            return_offsets_mapping=True,
        )
    found: list[tuple[int, int, int, int]] = []
    for row, (text, offsets) in enumerate(zip(texts, encoded.offset_mapping, strict=True)):
        spans = np.array(offsets, dtype=np.int64).reshape(-1, 2)
        n_added = int(tokens.lengths[row]) - len(spans)
        for match in pattern.finditer(text):
            is_inside = (spans[:, 0] < match.end()) & (spans[:, 1] > match.start())
            columns = np.flatnonzero(is_inside) + n_added
            number = by_text.get(match[0].lower())
            if columns.size and number is not None and columns[-1] < settings.max_length:
                found.append((row, number, int(columns[0]), int(columns[-1]) + 1))
    table = np.array(found, dtype=np.int64).reshape(-1, 4)
    return TermOccurrences(*table.T)


def number_targets(pairs: TermPairs, *, first_only: bool) -> dict[str, int]:
    """Return the number of the pair of each target term; of a shared term, of its first pair.

    >>> pairs = TermPairs("age", ("old", "young"), (("grandpa", "lad"), ("old man", "lad")))
    >>> number_targets(pairs, first_only=False)
    {'grandpa': 0, 'old man': 1, 'lad': 0}
    """
    numbers = {first: number for number, (first, _) in enumerate(pairs.targets)}
    if not first_only:
        for number, (_, second) in enumerate(pairs.targets):
            numbers.setdefault(second, number)
    return numbers


def tokenize_terms(model: SentenceModel, terms: Sequence[str], *, whole_words: bool) -> list[Any]:
    """Return the tokens of each term as within a text, ``torch.long`` tensors.

    Raises:
        Contradiction: The tokenizer gives no token for a term.
    """
    import torch

    texts = [f" {term}" if whole_words else term for term in terms]
    with silence_transformers():
        ids = model.tokenizer(texts, add_special_tokens=False).input_ids
    for term, tokens in zip(terms, ids, strict=True):
        if not tokens:
            message = f"the tokenizer of the model gives no token for the term {term!r}"
            raise Contradiction(message, where="terms", remedy="remove the term")
    return [torch.tensor(tokens, device=model.device) for tokens in ids]
