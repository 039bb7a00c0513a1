"""The vectors of terms in the embeddings of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recbias.language.scoring.sentence_models import SentenceModel
from recbias.language.terms.term_pairs import TermPairs
from recbias.models.ranking.tensors import Tensor
from recbias.models.sentences.debiasing.term_occurrences import tokenize_terms


@dataclass(frozen=True, eq=False)
class TermVectors:
    """The vectors of terms in the embeddings of a model.

    Args:
        model: The model.
        first: The tokens of the first term of each target pair.
        second: The tokens of the second.
        attributes: The tokens of each attribute term.
    """

    model: SentenceModel
    first: Sequence[Any]
    second: Sequence[Any]
    attributes: Sequence[Any]

    @classmethod
    def create(cls, model: SentenceModel, pairs: TermPairs) -> TermVectors:
        """Return the terms of a category as tokens."""
        seconds = tuple(second for _, second in pairs.targets)
        lists = (pairs.target_terms, seconds, pairs.attribute_terms)
        return cls(
            model,
            *(tokenize_terms(model, terms, whole_words=pairs.whole_words) for terms in lists),
        )

    def read_targets(self, *, is_input: bool) -> tuple[Tensor, Tensor]:
        """Return the vectors of t1 and of t2, ``(p, d)``, in the input or output embeddings."""
        network = self.model.network
        embeddings = (
            network.get_input_embeddings() if is_input else network.get_output_embeddings()
        )
        return _average(embeddings.weight, self.first), _average(embeddings.weight, self.second)

    def read_attributes(self) -> Tensor:
        """Return the vectors of attribute terms, ``(a, d)``, in the input embeddings."""
        return _average(self.model.network.get_input_embeddings().weight, self.attributes)


def _average(matrix: Tensor, terms: Sequence[Any]) -> Tensor:
    """Return the mean of the rows of each term, ``(p, d)``."""
    import torch

    rows = [matrix[tokens].mean(0) for tokens in terms]
    return torch.stack(rows) if rows else matrix.new_zeros(0, matrix.shape[1])
