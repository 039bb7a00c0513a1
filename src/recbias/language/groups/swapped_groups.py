"""How probable a sentence is with the word of each group, by a causal language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray
from recbias.language.groups.group_words import GroupWords
from recbias.language.groups.mentions import Mentions
from recbias.language.groups.partial_progress import report_part
from recbias.language.scoring.sentence_models import SentenceModel
from recbias.language.scoring.sentence_scoring import score_sentences
from recbias.language.scoring.sentence_tokens import ScoringSettings
from recbias.language.token_spans import TokenSpans


@dataclass(frozen=True, eq=False)
class SwappedGroups:
    """A causal language model and the words of groups.

    Args:
        load: Returns the model; called when a text is to be scored.
        words: The groups.
        uses_all_words: Whether a group is the sum over its words, or its name.
        tokens_per_batch: The number of tokens in a pass of the model.
        max_length: The number of tokens of a sentence that are read at most.
    """

    load: Callable[[], SentenceModel]
    words: GroupWords
    uses_all_words: bool = False
    tokens_per_batch: int = 1024
    max_length: int = 512

    @cached_property
    def model(self) -> SentenceModel:
        """The model."""
        return self.load()

    def check(self) -> None:
        """Refuse nothing before the model is loaded."""

    def score(self, mentions: Mentions) -> tuple[FloatArray, BoolArray]:
        """Return ln p(sentence) with the word of each group, and which sentences are shortened.

        A word with a capital is replaced by one with a capital. Of a sentence that is longer than
        the model can read, or than ``max_length``, the tokens around the word are read.

        Returns:
            ``float64[m, groups]``, and ``bool[m]`` for each occurrence.

        Raises:
            Contradiction: The tokenizer has no token that begins a text.
        """
        tokens = TokenSpans.from_sentences(
            self.model.tokenizer, mentions.sentences, mentions.spans
        )
        is_shortened = np.asarray(tokens.sizes + self._reserve > self._length)
        scores = np.empty((len(mentions), len(self.words.groups)))
        n_rows = max(1, 4096 // sum(map(len, self._candidates)))
        for start in range(0, len(mentions), n_rows):
            rows = range(start, min(start + n_rows, len(mentions)))
            texts = [
                text
                for row in rows
                for text in self._swap(mentions, row, tokens if is_shortened[row] else None)
            ]
            with report_part("group words", rows.start, rows.stop, len(mentions)):
                logarithms = self._score_texts(texts).reshape(len(rows), -1)
            bounds = np.cumsum([0, *map(len, self._candidates)])
            scores[start : start + len(rows)] = np.stack(
                [
                    np.logaddexp.reduce(logarithms[:, first:last], axis=1)
                    for first, last in pairwise(bounds)
                ],
                axis=1,
            )
        return scores, is_shortened

    @cached_property
    def _candidates(self) -> list[tuple[str, ...]]:
        groups = self.words.groups
        return [group.words if self.uses_all_words else (group.name,) for group in groups]

    @cached_property
    def _length(self) -> int:
        return min(self.max_length, self.model.max_length)

    @cached_property
    def _reserve(self) -> int:
        """The tokens of the longest candidate, of the start and of a divided neighbour."""
        words = [f" {word}" for words in self._candidates for word in words]
        encoded = self.model.tokenizer(words, add_special_tokens=False).input_ids
        return max(map(len, encoded)) + 4

    def _swap(self, mentions: Mentions, row: int, tokens: TokenSpans | None) -> list[str]:
        """Return a sentence, or its tokens around an occurrence, with each candidate."""
        at, start, end = mentions.spans[row].tolist()
        sentence = mentions.sentences[at]
        left, right = 0, len(sentence)
        if tokens is not None:
            offsets = tokens.offsets[at]
            half = max(1, (self._length - self._reserve) // 2)
            first, last = int(tokens.starts[row]), int(tokens.ends[row])
            left = offsets[max(0, first - half)][0]
            right = offsets[min(len(offsets), last + half) - 1][1]
        is_capital = sentence[start].isupper()
        return [
            sentence[left:start]
            + (word[:1].upper() + word[1:] if is_capital else word)
            + sentence[end:right]
            for words in self._candidates
            for word in words
        ]

    def _score_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return the sum of the log-probabilities of the tokens of each text, ``float64[n]``."""
        settings = ScoringSettings(
            special_tokens=False,
            first_token=True,
            max_length=self._length,
            batch_tokens=self.tokens_per_batch,
        )
        likelihoods = score_sentences(self.model, texts, settings)
        is_scored = likelihoods.tokens.is_scored
        owners, values = likelihoods.owners[is_scored], likelihoods.log_probabilities[is_scored]
        sums = np.bincount(owners, weights=values, minlength=len(texts))
        return np.asarray(sums, dtype=np.float64)
