"""LMRec: a language model that is fine-tuned to name the item that a text is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.dataset import Reviews
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import ModelName, Output, State
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import record_fact, warn
from recbias.language.backends import check_model
from recbias.language.masking.counterfactual import Side, build_swaps, make_counterfactuals
from recbias.language.model_folders import find_model, list_model_files
from recbias.models.ranking.tensors import Device, OnDevice, Tensor, resolve_device
from recbias.models.text.encoder_lr import EncoderLR
from recbias.models.text.fine_tuning import FineTuning, fine_tune
from recbias.models.text.linear_probe import probed
from recbias.models.text.share_reranking import Rerank, chooser
from recbias.models.text.text_classifier import (
    Pooling,
    Precision,
    Reading,
    TextClassifier,
    commit_of,
)
from recbias.models.text.text_ranking import (
    ItemClasses,
    accuracy,
    judged_reviews,
    reviews_to_learn,
)
from recbias.models.text.token_files import Tokens, tokenised

FEW_COPIES = 0.01
"""Share of the reviews below which counterfactual copies can hardly change anything."""


@dataclass(frozen=True, kw_only=True)
class LMRec(OnDevice):
    """Fine-tune a language model on reviews to name the item; ask it for items by a sentence.

        p(item | text) = softmax(W dropout(h) + b),    h = the encoder's state of the text

    ``h`` is the last layer's state of the first token. All weights are learned by cross-entropy
    over the items with training interactions, by AdamW with a rising and then falling rate; with a
    validation part the epoch of the best accuracy on its reviews is taken. ``[MASK]`` in a review
    or a prompt is read as the encoder's own mask token. A query without a text (a user) has an
    empty list.

    Args:
        encoder: A model of the Hugging Face hub, a folder (relative to the spec), or an installed
            package that carries one.
        revision: A commit, tag or branch of the hub; where it is None, what is learned keeps to
            the commit that was the main branch then.
        pooling: ``first`` takes the first token's state, ``mean`` the mean over the tokens.
        dropout: Share of ``h`` that is dropped in training.
        encoder_dropout: Whether the encoder drops within itself too, as in its pretraining;
            without it fewer epochs do.
        learning_rate: The longest step.
        head: Where W and b start: ``drawn`` by chance, or ``probe`` at those of ``Encoder-LR`` on
            the same reviews, so that the first steps do not spoil what the encoder knows.
        head_rate: How many times as long the steps of W and b are.
        batch_size: Reviews in a step.
        epochs: How often the reviews are gone through, at most.
        patience: Epochs without a better accuracy on the validation reviews before the best is
            taken; 0 does not look.
        max_length: Tokens of a text that are read.
        warmup: Share of the steps in which their length grows from 0.
        weight_decay: How weights are pulled to 0.
        accumulate: Parts that a batch is worked on in, where memory is short.
        counterfactual: Beside each training review in which a word of one side stands, learn from
            a copy of the same item with the other side's: ``gender`` exchanges he and she, mom and
            dad, first names of men and women; ``race`` the first names of the packaged templates.
            How many copies there are is the fact ``counterfactual_copies``.
        precision: What matrix products are made in: ``auto`` is bfloat16 on CUDA and float32
            elsewhere. Some CPUs are nearly twice as fast in bfloat16.
        device: Where it is trained.
        rerank: ``{attribute, target}`` makes lists in which each value of an item attribute has a
            share of the places; the ranking of all items for a review is left as it is.

    Raises:
        MissingEvidence: The dataset has no reviews.
        NothingLeft: No review is left to learn from.
        MissingFile: The encoder is not there; DownloadFailed where it cannot be fetched.
        OutOfRange: It diverges.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022, section 3.1. For ``rerank``: Geyik, Ambler and
        Kenthapadi, KDD 2019. For ``counterfactual``: Lu, Mardziel, Wu, Amancharla and Datta,
        "Gender Bias in Neural Natural Language Processing", 2020. For ``head: probe``: Kumar,
        Raghunathan, Jones, Ma and Liang, "Fine-Tuning can Distort Pretrained Features and
        Underperform Out-of-Distribution", ICLR 2022.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "predictions", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "reviews"})
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "tokenizers")
    after_fit: ClassVar[frozenset[str]] = frozenset({"rerank"})

    encoder: ModelName = "bert-base-uncased"
    revision: str | None = None
    pooling: Pooling = "first"
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.2
    encoder_dropout: bool = True
    learning_rate: Annotated[float, Gt(0)] = 5e-5
    head: Literal["drawn", "probe"] = "drawn"
    head_rate: Annotated[float, Gt(0)] = 1.0
    batch_size: Annotated[int, Gt(0)] = 128
    epochs: Annotated[int, Gt(0)] = 10
    patience: Annotated[int, Ge(0)] = 2
    max_length: Annotated[int, Gt(2)] = 512
    warmup: Annotated[float, Ge(0), Lt(1)] = 0.1
    weight_decay: Annotated[float, Ge(0)] = 0.01
    accumulate: Annotated[int, Gt(0)] = 1
    counterfactual: Literal["none"] | Side = "none"
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

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedLMRec:
        """Fine-tune on the training reviews."""
        self.check_data(data)
        classes, reviews = ItemClasses.of(data), self._with_copies(reviews_to_learn(data), rng)
        network = self.network(len(classes), rng)
        network.module.to(resolve_device(self.device))
        with tokenised(
            network.prepared(reviews.texts), network.tokenizer, network.reading.max_length
        ) as tokens:
            held = judged_reviews(data, classes)
            task = _Naming(network, tokens, classes, reviews.items, held)
            if self.head == "probe":
                task.probe()
            fine_tune(task, self._plan, rng)
        return FittedLMRec(self, classes, network.weights())

    def restore(self, state: State) -> FittedLMRec:
        """Return the fitted recommender of a stored state."""
        weights = {name: each for name, each in state.items() if not name.startswith("class_")}
        return FittedLMRec(self, ItemClasses.restored(state), weights)

    def _with_copies(self, reviews: Reviews, rng: np.random.Generator) -> Reviews:
        """Return the reviews, and the counterfactual copies that are asked for behind them."""
        if self.counterfactual == "none":
            return reviews
        # of a generator of their own: the network starts and learns as it does without copies
        rows, texts = make_counterfactuals(
            reviews.texts, build_swaps(self.counterfactual), rng.spawn(1)[0]
        )
        record_fact("counterfactual_copies", rows.size)
        if rows.size < FEW_COPIES * len(reviews):
            warn(
                f"counterfactual: {self.counterfactual} changes {rows.size:,} of {len(reviews):,} "
                "reviews, too few to learn from; names that mask_names takes out are not exchanged"
            )
        return Reviews(
            np.append(reviews.users, reviews.users[rows]),
            np.append(reviews.items, reviews.items[rows]),
            np.append(reviews.texts, texts),
        )

    @property
    def _plan(self) -> FineTuning:
        return FineTuning(
            name="LMRec",
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            warmup=self.warmup,
            weight_decay=self.weight_decay,
            head_rate=self.head_rate,
            patience=self.patience,
            accumulate=self.accumulate,
        )

    @property
    def _reading(self) -> Reading:
        return Reading(
            pooling=self.pooling,
            dropout=self.dropout,
            encoder_dropout=self.encoder_dropout,
            max_length=self.max_length,
            precision=self.precision,
        )

    def network(
        self,
        n_classes: int,
        rng: np.random.Generator,
        weights: Mapping[str, AnyArray] | None = None,
    ) -> TextClassifier:
        """Return the network: with the pretrained encoder, or with learned weights."""
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**62)))
            return TextClassifier.made(
                find_model(self.encoder, commit_of(weights) or self.revision),
                n_classes,
                self._reading,
                weights,
            )


@dataclass(frozen=True, eq=False)
class _Naming:
    """The task of naming the items of training reviews."""

    network: TextClassifier
    tokens: Tokens
    classes: ItemClasses
    items: Codes
    held: Reviews | None

    @property
    def module(self) -> Any:
        return self.network.module

    @cached_property
    def lengths(self) -> AnyArray:
        return self.tokens.lengths

    @property
    def has_judges(self) -> bool:
        return self.held is not None

    def loss(self, rows: AnyArray) -> Tensor:
        import torch
        from torch.nn.functional import cross_entropy

        wanted = torch.from_numpy(self._wanted[rows]).to(self.network.device)
        with self.network.autocast():
            logits = self.network.logits(self.tokens, rows)
        return cross_entropy(logits, wanted, reduction="sum")

    def probe(self) -> None:
        """Start the linear layer at the best one for the encoder as it is."""
        import torch

        states, n = self.network.states_of(self.tokens), len(self.classes)
        found = probed(
            states, self._wanted, n, strength=EncoderLR.C, iterations=EncoderLR.iterations
        )
        with torch.no_grad():
            head = self.module["head"]
            head.weight.copy_(torch.from_numpy(found.weights.T))
            # an item without a text starts as the least likely of the others
            lowest = found.bias[np.isfinite(found.bias)].min()
            head.bias.copy_(torch.from_numpy(np.maximum(found.bias, lowest)))

    def figure(self) -> float:
        if self.held is None:
            return float("nan")
        blocks = self.network.blocks(self.held.texts, what="validation reviews")
        return accuracy(blocks, self.classes.of_items(self.held.items))

    @cached_property
    def _wanted(self) -> AnyArray:
        return self.classes.of_items(self.items)


@dataclass(frozen=True, eq=False)
class FittedLMRec:
    """What LMRec learned.

    Args:
        settings: The model.
        classes: The items that it tells apart.
        weights: The state of its network.
    """

    settings: LMRec
    classes: ItemClasses
    weights: Mapping[str, AnyArray]

    def state(self) -> State:
        """Return the weights and the items."""
        return {**self.weights, **self.classes.state()}

    def embeddings(self) -> Embeddings:
        """Return the rows of W: what a text's state is held against for each item."""
        rows = self.weights["head.weight"]
        vectors = np.full((self.classes.n_items, rows.shape[1]), np.nan, dtype=np.float32)
        vectors[self.classes.items] = rows
        return Embeddings(None, vectors)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the items that each query's text is likeliest about."""
        choose = chooser(self.settings.rerank, self.classes, data)
        return self.classes.lists(self._network.blocks, queries, k, choose=choose)

    def named(self, texts: Ids, data: TrainingData) -> Codes:
        """Return all items for each text, the likeliest first."""
        return self.classes.ranked(self._network.blocks, texts)

    @cached_property
    def _network(self) -> TextClassifier:
        rng = np.random.default_rng(0)  # every weight is given, none is drawn
        network = self.settings.network(len(self.classes), rng, self.weights)
        network.module.to(resolve_device(self.settings.device))
        return network
