"""How likely sentences are to a language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Ids
from recbias.language.scoring.sentence_models import SentenceModel
from recbias.language.scoring.sentence_tokens import (
    ScoringSettings,
    SentenceTokens,
    tokenize_sentences,
)
from recbias.language.scoring.token_likelihood import compute_log_probabilities
from recbias.numerics.perplexity import compute_perplexities

UNKNOWN_SHARE = 0.5
"""A sentence of which at least this share of tokens is unknown is reported."""


@dataclass(frozen=True, eq=False)
class SentenceLikelihoods:
    """The probabilities of the tokens of sentences, and what they make of each sentence.

    Args:
        tokens: The sentences as tokens, with the special ones that the model reads.
        log_probabilities: Natural logarithm of the probability of each token, ``float64[t]``; NaN
            where the token is not scored.
        perplexity: The perplexity of each sentence, ``float64[n]``, from its scored tokens; NaN
            for a sentence that is empty, too long, or has none. Of a masked model, it is the
            pseudo-perplexity.
        max_length: The largest number of tokens of a sentence that was scored.
    """

    tokens: SentenceTokens
    log_probabilities: FloatArray
    perplexity: FloatArray
    max_length: int

    @property
    def owners(self) -> AnyArray:
        """The sentence of each token, ``int64[t]``."""
        return np.repeat(np.arange(len(self.tokens)), self.tokens.lengths)

    @property
    def is_empty(self) -> BoolArray:
        """Whether a sentence has no text, ``bool[n]``."""
        return np.asarray(self.tokens.is_blank | (self.tokens.n_own == 0))

    @property
    def is_too_long(self) -> BoolArray:
        """Whether a sentence has more tokens than are scored, ``bool[n]``."""
        return np.asarray(self.tokens.lengths > self.max_length)

    @property
    def is_too_short(self) -> BoolArray:
        """Whether a sentence has a text, but no token with a context, ``bool[n]``."""
        return np.asarray((self.tokens.n_scored == 0) & ~self.is_empty)

    @property
    def is_unknown(self) -> BoolArray:
        """Whether half of the tokens of a sentence or more are unknown, ``bool[n]``."""
        n_unknown, n_own = self.tokens.n_unknown, self.tokens.n_own
        return np.asarray((n_unknown > 0) & (n_unknown >= UNKNOWN_SHARE * n_own))

    def describe_problems(self, ids: Ids) -> Iterator[str]:
        """Yield a message for each reason why sentences have no perplexity, or a doubtful one."""
        limit = f"{self.max_length:,} tokens (max_length, or the maximum of the model)"
        unknown = "half of their tokens or more: the tokenizer lacks their script or words"
        is_invalid = np.isnan(self.perplexity) & ~(
            self.is_empty | self.is_too_long | self.is_too_short
        )
        reasons = (
            (self.is_empty, "are empty and have no perplexity"),
            (self.is_too_short, "are of one token, which has no context, and have no perplexity"),
            (self.is_too_long, f"have more than {limit} and no perplexity"),
            (is_invalid, "have probabilities that are not numbers, and no perplexity"),
            (self.is_unknown, f"are unknown by {unknown}, and their perplexity means little"),
        )
        for is_affected, reason in reasons:
            rows = np.flatnonzero(is_affected)
            if rows.size:
                total = len(self.tokens)
                yield f"{rows.size:,} of {total:,} sentences {reason}; first {ids[rows[0]]!r}"


def score_sentences(
    model: SentenceModel, texts: Sequence[str | None], settings: ScoringSettings
) -> SentenceLikelihoods:
    """Return the probabilities of the tokens of sentences.

        causal:           ln p(x_i | x_<i),                     i = 2..n
        encoder-decoder:  ln p(x_i | start, x_<i; encoder text),  i = 2..n
        masked:           ln p(x_i | x_1..n without x_i),        i = 1..n

    Sentences of similar length share a pass; of a masked model, all masks do. Where sentences
    begin alike, as the copies of a pair do, a causal model reads their beginnings once. The
    probabilities are those of one sentence at a time, to 1e-4 in single precision.

    By default a sentence stands alone: without special tokens and without a start token, so the
    first token, which has no context, is not scored (``ScoringSettings``). This is the choice of
    the code of CHBias. The first token after the start token of a decoder is left out, too, so
    that the kinds of models score the same tokens. A masked model reads its special tokens and
    predicts each of the others.

    Args:
        model: The model.
        texts: The sentences; None and white space are empty.
        settings: Which tokens are scored.

    Returns:
        Log-probabilities and perplexities; NaN for sentences that are empty, too long, or without
        a scored token.

    Raises:
        Contradiction: The model or its tokenizer cannot do what a setting says.
        UnknownIdentifier: The vocabulary does not have ``token_types``.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 4; Salazar, Liang, Nguyen and Kirchhoff, "Masked
        language model scoring", ACL 2020, section 2 (masked models).
    """
    settings = settings.complete(model)
    tokens = tokenize_sentences(model, texts, settings)
    is_used = ~tokens.is_blank & (tokens.n_own > 0) & (tokens.lengths <= settings.max_length)
    values = compute_log_probabilities(model, tokens, np.flatnonzero(is_used), settings)
    owners = np.repeat(np.arange(len(tokens)), tokens.lengths)
    perplexity = compute_perplexities(values, owners, len(tokens))
    failed = np.unique(owners[tokens.is_scored & np.isnan(values)])
    perplexity[failed] = np.nan
    return SentenceLikelihoods(tokens, values, perplexity, settings.max_length)
