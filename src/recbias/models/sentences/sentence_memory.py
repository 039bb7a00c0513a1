"""The memory of a language model that scores sentences, responds to dialogues, or is debiased."""

from __future__ import annotations

from recbias.core.machine.expected import ModelMemory, Sizes
from recbias.language.scoring.shared_prefixes import MAX_NODES, MIN_SAVING
from recbias.language.scoring.token_likelihood import limit_batch
from recbias.language.weights.model_shapes import (
    CHARACTERS_PER_TOKEN,
    FLOAT,
    ModelShape,
    read_shape,
)
from recbias.models.sentences.debiasing.debias import Debias
from recbias.numerics.devices import OnDevice

LIBRARIES = ("torch", "transformers")

LENGTH = 16.0
"""The number of tokens of a sentence where it is not known."""

CHECKPOINT = 3
"""The copies of each weight in a checkpoint: of itself, and of its moments."""

LOSS_ARRAYS = 5
"""The arrays of a number for each token of a batch and of the vocabulary in training: the logits,
those that are predicted, their logarithms, and the gradients of the first two."""


class SentenceMemory(OnDevice):
    """Base class that plans the memory of a language model of sentences."""

    model: str
    precision: str
    token_types: str | None
    max_length: int
    batch_tokens: int
    debias: Debias | None
    batch_size: int

    def plan_memory(self, sizes: Sizes) -> ModelMemory | None:
        """Return the memory of the weights and of the largest batch with its logits.

        Of a model that is trained, a weight has a gradient and two moments beside it, and
        checkpoints are copies; one that is not is loaded with the first query. It is None if the
        model is not on this machine.
        """
        read = read_shape(self.model)
        if read is None:
            return None
        shape = read.convert(self.precision)
        weights = shape.bytes if self.debias else 0.0
        lists = max(shape.loading, shape.bytes + self._plan_queries(shape, sizes))
        fit = 0.0 if self.debias is None else self._plan_training(shape, sizes)
        return ModelMemory(fit, weights, lists, ranking="none", lists_with=LIBRARIES)

    def _plan_training(self, shape: ModelShape, sizes: Sizes) -> float:
        longest = sizes.get("longest_sentence", 0) / CHARACTERS_PER_TOKEN
        length = shape.limit_length(min(longest or self.max_length, self.max_length))
        n_tokens = self.batch_size * length
        logits = LOSS_ARRAYS * FLOAT * n_tokens * shape.vocabulary
        batch = shape.count_training(n_tokens, length) + logits
        return max(shape.loading, shape.trained + max(batch, CHECKPOINT * shape.bytes))

    def _plan_queries(self, shape: ModelShape, sizes: Sizes) -> float:
        """Return the bytes of the largest batch of sentences, or of contexts with responses."""
        n_tokens = limit_batch(self.batch_tokens, shape.vocabulary)
        n_texts = sizes.get("texts")
        batch = 0.0
        if n_texts is None or n_texts:
            batch = self._plan_scores(shape, sizes, n_tokens)
        if sizes.get("queries", 0) > (n_texts or 0):
            responses = shape.count_reading(self.batch_tokens)
            batch = max(batch, responses + shape.count_cache(self.batch_tokens))
        return batch

    def _plan_scores(self, shape: ModelShape, sizes: Sizes, n_tokens: int) -> float:
        """Return the bytes of a batch of sentences, by what they have in common.

        A masked model reads a copy of a sentence for each of its tokens, of which it predicts one;
        sentences that begin alike are trees to a causal model with attention.
        """
        n_bytes = sizes.get("text_bytes", 0)
        length = n_bytes / max(sizes.get("texts", 0), 1) / CHARACTERS_PER_TOKEN or LENGTH
        if shape.is_masked:
            return shape.count_scoring(n_tokens, n_tokens / length)
        read = min(n_tokens, n_bytes / CHARACTERS_PER_TOKEN or n_tokens)
        is_shared = sizes.get("shared_bytes", 0) >= MIN_SAVING * max(n_bytes, 1)
        is_tree = is_shared and shape.heads and self.token_types is None
        return shape.count_scoring(min(read, MAX_NODES) if is_tree else read)
