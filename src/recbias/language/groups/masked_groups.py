"""How probable each group is at a masked word, by a masked language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.errors import Contradiction, OutOfRange
from recbias.core.stage_context import warn
from recbias.language.groups.group_words import MASK_SLOT, Group, GroupWords
from recbias.language.groups.mentions import Mentions
from recbias.language.masked_models import MaskedModel

Candidates: TypeAlias = Literal["names", "words"]
"""What stands for a group: its name, or all its words."""

Neutral: TypeAlias = Literal["none", "ratio", "log_ratio"]
"""How the probability of a group in neutral sentences is taken out."""


@dataclass(frozen=True, eq=False)
class MaskedGroups:
    """A masked language model and the words of groups.

    Args:
        model: The model.
        words: The groups.
        candidates: What stands for a group.
        neutral: ``ratio`` divides by the group's mean probability q in neutral sentences,
            ``log_ratio`` by ln(1 + q).
        tokens_per_batch: The number of tokens in a pass of the model.
    """

    model: MaskedModel
    words: GroupWords
    candidates: Candidates = "names"
    neutral: Neutral = "none"
    tokens_per_batch: int = 4096

    def check(self) -> None:
        """Refuse groups that the tokenizer has no token for, and count divided words.

        Raises:
            OutOfRange: A group has no word that is one token.
            Contradiction: Two groups of a kind have a token in common, or there are no neutral
                sentences.
        """
        if self.neutral != "none" and not self.words.neutral:
            message = "the word list has no neutral sentences"
            remedy = "add neutral: ['It was a [MASK].'] to its file, or set neutral: none"
            raise Contradiction(message, where="neutral", remedy=remedy)
        words = [word for of_group in self._word_tokens for word in of_group.items()]
        divided = [word for word, tokens in words if not tokens]
        if self._tokens and divided:
            shown = ", ".join(divided[:5]) + (", ..." if len(divided) > 5 else "")
            message = f"{len(divided):,} group words are divided by the tokenizer and not summed"
            warn(f"{message}: {shown}")

    def score(self, mentions: Mentions) -> tuple[FloatArray, BoolArray]:
        """Return ln p(group) at each occurrence with its word masked, and which are shortened.

        The probabilities of the words of a group are summed. Each row has a constant of its own.

        Returns:
            ``float64[m, groups]``, and of each occurrence whether its sentence is longer than the
            model can read, ``bool[m]``.
        """
        scores, is_shortened = self._predict(mentions.sentences, mentions.spans)
        return scores - self._neutral_scores, is_shortened

    def _predict(
        self, sentences: Sequence[str], spans: AnyArray, *, is_normalized: bool = False
    ) -> tuple[FloatArray, BoolArray]:
        tokens = np.unique(np.concatenate(self._tokens))
        logarithms, is_shortened = self.model.predict(
            sentences,
            spans,
            tokens,
            tokens_per_batch=self.tokens_per_batch,
            is_normalized=is_normalized,
        )
        places = [np.searchsorted(tokens, of_group) for of_group in self._tokens]
        columns = [np.logaddexp.reduce(logarithms[:, place], axis=1) for place in places]
        return np.stack(columns, axis=1), is_shortened

    @cached_property
    def _neutral_scores(self) -> FloatArray:
        """The logarithm of what the probability of each group is divided by, ``float64[g]``."""
        if self.neutral == "none":
            return np.zeros(len(self.words.groups))
        sentences = self.words.neutral
        spans = [
            (row, text.index(MASK_SLOT), text.index(MASK_SLOT) + len(MASK_SLOT))
            for row, text in enumerate(sentences)
        ]
        positions = np.array(spans, dtype=np.int64)
        scores, _ = self._predict(sentences, positions, is_normalized=True)
        q = np.exp(scores).mean(axis=0)
        return np.asarray(np.log(q if self.neutral == "ratio" else np.log1p(q)))

    def _list_candidates(self, group: Group) -> tuple[str, ...]:
        return (group.name,) if self.candidates == "names" else group.words

    @cached_property
    def _word_tokens(self) -> list[dict[str, set[int]]]:
        """The tokens of each candidate of each group: of its spellings that are one token."""
        return [
            {word: set(self._find_tokens(word)) for word in self._list_candidates(group)}
            for group in self.words.groups
        ]

    def _find_tokens(self, word: str) -> Iterator[int]:
        for spelling in (word, word[:1].upper() + word[1:]):
            token = self.model.find_token(spelling)
            if token is not None:
                yield token

    @cached_property
    def _tokens(self) -> list[AnyArray]:
        """The tokens of each group, ``int64[t]``."""
        tokens = [sorted(set().union(*words.values())) for words in self._word_tokens]
        owners: dict[tuple[str, int], str] = {}
        for group, of_group in zip(self.words.groups, tokens, strict=True):
            if not of_group:
                what = "the name" if self.candidates == "names" else "every word"
                message = f"the tokenizer divides {what} of the group {group.name!r}"
                remedy = "set candidates: words, add a common word to the group, or use causal_lm"
                raise OutOfRange(message, where="groups", remedy=remedy)
            for token in of_group:
                other = owners.setdefault((group.kind, token), group.name)
                if other != group.name:
                    message = f"the groups {other!r} and {group.name!r} share a token"
                    raise Contradiction(message, where="groups", remedy="rename one of them")
        return [np.array(of_group, dtype=np.int64) for of_group in tokens]
