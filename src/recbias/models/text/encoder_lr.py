"""Encoder-LR: logistic regression on the states of a frozen language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import ModelName, Output, State
from recbias.models.ranking.tensors import Device
from recbias.models.text.share_reranking import Rerank
from recbias.models.text.softmax_regression import SoftmaxRegression, fit_probe
from recbias.models.text.text_classifier import Pooling, Precision
from recbias.models.text.text_model import EncoderModel, FittedEncoderModel, split_state
from recbias.models.text.text_ranking import Blocks, ItemClasses, require_reviews


@dataclass(frozen=True, kw_only=True)
class EncoderLR(EncoderModel):
    """Predict the item of a text by logistic regression on the states of a frozen encoder.

        p(item | text) = softmax(z W + b),    z = (h - mean) / std,    h = the state of the text

    ``mean`` and ``std`` are computed per component of ``h`` over the training reviews. W and b
    minimize ``|W|² / 2 + C Σ -log p`` over the training reviews; the encoder is not fine-tuned. A
    baseline of LMRec: what the language model represents before it is trained on reviews.
    ``[MASK]`` is replaced by the encoder's mask token. Queries without a text (users) have empty
    lists; items without training reviews are never recommended.

    Args:
        encoder: A model of the Hugging Face hub, a folder (relative to the spec), or an installed
            package that contains a model.
        revision: A commit, tag or branch of the hub; None is the main branch, whose commit is
            stored with the fitted model.
        pooling: ``mean`` averages the states of all tokens, ``first`` is the first token's state.
        max_length: Maximum number of tokens per text.
        C: Inverse of the regularization strength.
        iterations: Maximum number of L-BFGS iterations.
        precision: Type of matrix products in the encoder: ``auto`` is bfloat16 on CUDA and
            float32 elsewhere.
        device: Device of the encoder.
        rerank: ``{attribute, target}`` gives each value of an item attribute a target share of
            every list; the ranking of all items for a review does not change.

    Raises:
        MissingEvidence: The dataset has no reviews.
        NothingLeft: There are no training reviews.
        MissingFile: The encoder does not exist; DownloadFailed if it cannot be downloaded.

    Source:
        Alain and Bengio, "Understanding intermediate layers using linear classifier probes", ICLR
        2017 (workshop). For ``rerank``: Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "predictions"})
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "tokenizers", "scikit-learn")

    encoder: ModelName = "bert-base-uncased"
    revision: str | None = None
    pooling: Pooling = "mean"
    max_length: Annotated[int, Gt(2)] = 512
    C: Annotated[float, Gt(0)] = 0.03
    iterations: Annotated[int, Gt(0)] = 200
    precision: Precision = "auto"
    device: Device = "auto"
    rerank: Rerank | None = None

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedEncoderLR:
        """Fit the regression; ``rng`` is unused, since the fit is deterministic."""
        self.check_data(data)
        classes, reviews = ItemClasses.from_data(data), require_reviews(data)
        network = self.create_network(len(classes))
        probe = fit_probe(
            network.encode(reviews.texts),
            classes.encode(reviews.items),
            len(classes),
            strength=self.C,
            iterations=self.iterations,
        )
        head = {"head.weight": probe.weights.T, "head.bias": probe.bias}
        return FittedEncoderLR(self, classes, {**network.weights(), **head})

    def restore(self, state: State) -> FittedEncoderLR:
        """Return the fitted recommender of a stored state."""
        return FittedEncoderLR(self, *split_state(state))


@dataclass(frozen=True, eq=False)
class FittedEncoderLR(FittedEncoderModel):
    """A fitted Encoder-LR."""

    def classify(self, texts: Ids) -> Blocks:
        """Yield the log-probabilities of the regression on the encoder's states."""
        probe = SoftmaxRegression(self.weights["head.weight"].T, self.weights["head.bias"])
        for rows, states in self.network.encode(texts):
            yield rows, probe.log_probabilities(states)
