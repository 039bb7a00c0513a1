"""The fine-tuning task of LMRec."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.dataset import Reviews
from recbias.models.ranking.tensors import Tensor
from recbias.models.text.encoder_lr import EncoderLR
from recbias.models.text.linear_probe import fit_probe
from recbias.models.text.text_classifier import TextClassifier
from recbias.models.text.text_ranking import ItemClasses, accuracy
from recbias.models.text.token_files import Tokens


@dataclass(frozen=True, eq=False)
class ItemPrediction:
    """Predict the item of each training review.

    Args:
        network: The network to be trained.
        tokens: The tokens of the training reviews.
        classes: The items that are classes.
        items: The item of each training review, ``int32[n]``.
        validation_reviews: The validation reviews, if any.
    """

    network: TextClassifier
    tokens: Tokens
    classes: ItemClasses
    items: Codes
    validation_reviews: Reviews | None

    @property
    def module(self) -> Any:
        """The module of the network."""
        return self.network.module

    @cached_property
    def lengths(self) -> AnyArray:
        """The number of tokens of each training review."""
        return self.tokens.lengths

    @property
    def has_validation_texts(self) -> bool:
        """Whether there are validation reviews."""
        return self.validation_reviews is not None

    def loss(self, rows: AnyArray) -> Tensor:
        """Return the summed cross-entropy of a batch of reviews."""
        import torch
        from torch.nn.functional import cross_entropy

        classes = torch.from_numpy(self._review_classes[rows]).to(self.network.device)
        with self.network.autocast():
            logits = self.network.logits(self.tokens, rows)
        return cross_entropy(logits, classes, reduction="sum")

    def initialize_head(self) -> None:
        """Initialize the linear layer by a probe of the pretrained encoder."""
        import torch

        probe = fit_probe(
            self.network.encode_tokens(self.tokens),
            self._review_classes,
            len(self.classes),
            strength=EncoderLR.C,
            iterations=EncoderLR.iterations,
        )
        # the bias of an item without reviews is -inf: start at the lowest of the others
        lowest = probe.bias[np.isfinite(probe.bias)].min()
        with torch.no_grad():
            head = self.module["head"]
            head.weight.copy_(torch.from_numpy(probe.weights.T))
            head.bias.copy_(torch.from_numpy(np.maximum(probe.bias, lowest)))

    def validation_score(self) -> float:
        """Return the accuracy on the validation reviews."""
        if self.validation_reviews is None:
            return float("nan")
        blocks = self.network.classify(self.validation_reviews.texts, label="validation reviews")
        return accuracy(blocks, self.classes.encode(self.validation_reviews.items))

    @cached_property
    def _review_classes(self) -> AnyArray:
        return self.classes.encode(self.items)
