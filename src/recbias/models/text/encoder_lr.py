"""Encoder-LR: which item a text is about, by a language model that is left as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import ModelName, Output, State
from recbias.core.queries.queries import Queries
from recbias.language.backends import check_model
from recbias.language.model_folders import find_model, list_model_files
from recbias.models.ranking.tensors import Device, OnDevice, resolve_device
from recbias.models.text.linear_probe import probed
from recbias.models.text.share_reranking import Rerank, chooser
from recbias.models.text.softmax_regression import SoftmaxRegression
from recbias.models.text.text_classifier import (
    Pooling,
    Precision,
    Reading,
    TextClassifier,
    commit_of,
)
from recbias.models.text.text_ranking import Blocks, ItemClasses, reviews_to_learn


@dataclass(frozen=True, kw_only=True)
class EncoderLR(OnDevice):
    """Name the item that a text is about by a pretrained encoder that is not fine-tuned.

        p(item | text) = softmax(z W + b),    z = (h - mean) / std,    h = the state of the text

    ``h`` is the encoder's state of a text, ``mean`` and ``std`` are those of its entries over the
    training reviews. W and b have the least ``|W|² / 2 + C Σ -log p`` over the training reviews;
    the encoder keeps its weights. A baseline of LMRec: what the language model knows before it has
    read a review. ``[MASK]`` is read as the encoder's own mask token. A query without a text (a
    user) has an empty list; an item without a training review is in no list.

    Args:
        encoder: A model of the Hugging Face hub, a folder (relative to the spec), or an installed
            package that carries one.
        revision: A commit, tag or branch of the hub; where it is None, what is learned keeps to
            the commit that was the main branch then.
        pooling: ``mean`` takes the mean over the tokens, ``first`` the first token's state.
        max_length: Tokens of a text that are read.
        C: How much the reviews weigh beside the size of W.
        iterations: Steps of L-BFGS, at most.
        precision: What matrix products of the encoder are made in: ``auto`` is bfloat16 on CUDA
            and float32 elsewhere.
        device: Where the encoder reads.
        rerank: ``{attribute, target}`` makes lists in which each value of an item attribute has a
            share of the places; the ranking of all items for a review is left as it is.

    Raises:
        MissingEvidence: The dataset has no reviews.
        NothingLeft: No review is left to learn from.
        MissingFile: The encoder is not there; DownloadFailed where it cannot be fetched.

    Source:
        Alain and Bengio, "Understanding intermediate layers using linear classifier probes", ICLR
        2017 (workshop). For ``rerank``: Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "predictions"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "reviews"})
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "tokenizers", "scikit-learn")
    after_fit: ClassVar[frozenset[str]] = frozenset({"rerank"})

    encoder: ModelName = "bert-base-uncased"
    revision: str | None = None
    pooling: Pooling = "mean"
    max_length: Annotated[int, Gt(2)] = 512
    C: Annotated[float, Gt(0)] = 0.03
    iterations: Annotated[int, Gt(0)] = 200
    precision: Precision = "auto"
    device: Device = "auto"
    rerank: Rerank | None = None

    def needs_now(self) -> frozenset[str]:
        """Return what it reads: the items where lists are made to shares of their values."""
        return self.needs if self.rerank is None else self.needs | {"items"}

    def model_files(self) -> Sequence[Path]:
        """Return the files of an encoder that lies here and comes from no hub."""
        return list_model_files(self.encoder)

    def check_data(self, data: TrainingData) -> None:
        """Refuse an encoder that is not to be had, and shares that cannot be met."""
        check_model(self.encoder, self.revision)
        chooser(self.rerank, ItemClasses.of(data), data)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedEncoderLR:
        """Learn on the encoder's states; ``rng`` is unused, there is no chance in it."""
        self.check_data(data)
        classes, reviews = ItemClasses.of(data), reviews_to_learn(data)
        network = self.network(len(classes))
        learned = probed(
            network.state_blocks(reviews.texts),
            classes.of_items(reviews.items),
            len(classes),
            strength=self.C,
            iterations=self.iterations,
        )
        head = {"head.weight": learned.weights.T, "head.bias": learned.bias}
        return FittedEncoderLR(self, classes, {**network.weights(), **head})

    def restore(self, state: State) -> FittedEncoderLR:
        """Return the fitted recommender of a stored state."""
        weights = {name: each for name, each in state.items() if not name.startswith("class_")}
        return FittedEncoderLR(self, ItemClasses.restored(state), weights)

    @property
    def reading(self) -> Reading:
        """How the encoder reads."""
        return Reading(pooling=self.pooling, max_length=self.max_length, precision=self.precision)

    def network(
        self, n_classes: int, weights: Mapping[str, AnyArray] | None = None
    ) -> TextClassifier:
        """Return the encoder where it reads: with its pretrained weights, or with stored ones."""
        import torch

        with torch.random.fork_rng():
            network = TextClassifier.made(
                find_model(self.encoder, commit_of(weights) or self.revision),
                n_classes,
                self.reading,
                weights,
            )
        network.module.to(resolve_device(self.device))
        return network


@dataclass(frozen=True, eq=False)
class FittedEncoderLR:
    """What Encoder-LR learned, and the encoder it learned it on.

    Args:
        settings: The model.
        classes: The items that it tells apart.
        weights: The state of the encoder, and of the classifier as its ``head``.
    """

    settings: EncoderLR
    classes: ItemClasses
    weights: Mapping[str, AnyArray]

    def state(self) -> State:
        """Return the weights and the items."""
        return {**self.weights, **self.classes.state()}

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the items that each query's text is likeliest about."""
        choose = chooser(self.settings.rerank, self.classes, data)
        return self.classes.lists(self._blocks, queries, k, choose=choose)

    def named(self, texts: Ids, data: TrainingData) -> Codes:
        """Return all items for each text, the likeliest first."""
        return self.classes.ranked(self._blocks, texts)

    def _blocks(self, texts: Ids) -> Blocks:
        learned = SoftmaxRegression(self.weights["head.weight"].T, self.weights["head.bias"])
        for rows, states in self._network.state_blocks(texts):
            yield rows, learned.log_chances(states)

    @cached_property
    def _network(self) -> TextClassifier:
        return self.settings.network(len(self.classes), self.weights)
