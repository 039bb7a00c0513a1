"""The memory of the models that classify texts, by the sizes of the texts."""

from __future__ import annotations

from dataclasses import dataclass

from recbias.core.machine.expected import ModelMemory, Sizes
from recbias.language.weights.model_shapes import (
    CHARACTERS_PER_TOKEN,
    COPIES,
    FLOAT,
    ModelShape,
    read_shape,
)
from recbias.models.text.text_classifier import MAX_BATCH_TOKENS
from recbias.models.text.text_ranking import MAX_BLOCK_SCORES

SCIKIT_LEARN = 41.0 * 2**20
"""Bytes of the library."""

TERMS = ((2.5, 0.55), (0.15, 0.86))
"""The factor and the exponent of the number of words, and of words and pairs of words, that occur
in two texts, over the number of characters (Heaps' law, of reviews in English)."""

PER_CHARACTER = 16.0
"""Bytes of a character while terms are counted: the terms, and their places in the texts."""

SEARCH = 31
"""The number of arrays of the size of the weights in double precision: 25 of L-BFGS, which keeps
ten steps and their gradients, and copies of the weights and of the gradient."""


@dataclass(frozen=True)
class TextSizes:
    """The sizes of training texts.

    Args:
        texts: Their number.
        characters: The number of their characters.
        longest: The number of tokens of the longest.
        classes: The number of items that are classes.
        users: The number of users.
    """

    texts: float
    characters: float
    longest: float
    classes: int
    users: int

    @property
    def tokens(self) -> float:
        """The number of their tokens, about."""
        return self.characters / CHARACTERS_PER_TOKEN

    @property
    def scores(self) -> float:
        """Bytes of log-probabilities while they are computed, summed by user, and ranked."""
        return 24.0 * min(MAX_BLOCK_SCORES, self.users * self.classes)

    def count_terms(self, ngrams: int, min_df: int, max_features: int | None) -> float:
        """Return the number of terms of up to ``ngrams`` words that ``min_df`` texts have."""
        factor, exponent = TERMS[min(ngrams, 2) - 1]
        longer = 1 + max(ngrams - 2, 0) / 2
        terms: float = factor * longer * self.characters**exponent * 2 / min_df
        return min(terms, max_features or terms)

    def count_regression(self, width: float) -> float:
        """Return the bytes of fitting a regression on ``width`` features.

        These are the arrays of L-BFGS, and the logits of all texts with their gradients.
        """
        return 8.0 * self.classes * (SEARCH * width + 2 * self.texts)


def measure_texts(sizes: Sizes) -> TextSizes | None:
    """Return the sizes of the training texts, a share of the reviews; None if they are unknown."""
    if not sizes.get("reviews") or not sizes.get("interactions"):
        return None
    share = sizes.get("training", sizes["interactions"]) / sizes["interactions"]
    return TextSizes(
        share * sizes["reviews"],
        share * sizes["characters"],
        sizes["longest"] / CHARACTERS_PER_TOKEN,
        sizes["items"],
        sizes["users"],
    )


def plan_encoder(shape: ModelShape, texts: TextSizes, fit: float) -> ModelMemory:
    """Return the memory of an encoder that needs ``fit`` while it is trained.

    Its lists have the stored weights, those of the network, a batch of texts, and the scores.
    """
    weights = shape.bytes + FLOAT * texts.classes * shape.width
    lists = weights + plan_reading(shape, texts) + texts.scores
    return ModelMemory(fit, weights, lists, ranking="none", lists_with=("torch", "transformers"))


def plan_reading(shape: ModelShape, texts: TextSizes) -> float:
    """Return the bytes of the largest batch of texts that is read."""
    return shape.count_reading(min(MAX_BATCH_TOKENS, texts.tokens))


def plan_fine_tuning(
    encoder: str, sizes: Sizes, n_texts: float, max_length: int
) -> ModelMemory | None:
    """Return the memory of an encoder that is trained on ``n_texts`` texts at once.

    None if the encoder is not on this machine, or the sizes of the texts are unknown.
    """
    shape, texts = read_shape(encoder), measure_texts(sizes)
    if shape is None or texts is None:
        return None
    length = shape.limit_length(min(max_length, texts.longest))
    n_tokens = min(n_texts, texts.texts) * length
    weights = shape.bytes + FLOAT * texts.classes * shape.width
    fit = COPIES * weights + shape.count_training(n_tokens, length)
    return plan_encoder(shape, texts, fit)


def plan_probe(encoder: str, sizes: Sizes) -> ModelMemory | None:
    """Return the memory of an encoder that reads all texts, and of a regression on their states.

    None if the encoder is not on this machine, or the sizes of the texts are unknown.
    """
    shape, texts = read_shape(encoder), measure_texts(sizes)
    if shape is None or texts is None:
        return None
    states = FLOAT * texts.texts * shape.width
    regression = SCIKIT_LEARN + 2 * states + texts.count_regression(shape.width)
    fit = shape.bytes + states + max(plan_reading(shape, texts), regression)
    return plan_encoder(shape, texts, fit)


def plan_terms(
    sizes: Sizes, ngrams: int, min_df: int, max_features: int | None
) -> ModelMemory | None:
    """Return the memory of a regression on the terms of texts; None if their sizes are unknown."""
    texts = measure_texts(sizes)
    if texts is None:
        return None
    terms = texts.count_terms(ngrams, min_df, max_features)
    fit = SCIKIT_LEARN + PER_CHARACTER * texts.characters + texts.count_regression(terms)
    lists = SCIKIT_LEARN + texts.scores
    return ModelMemory(fit, FLOAT * terms * texts.classes, lists, ranking="none")
