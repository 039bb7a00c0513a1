"""Models that predict the item of a text: LMRec, and logistic regressions on states or words."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.context import record_fact, report_progress, warn
from recbias.core.dataset import AnyArray, Codes, Ids, Matrix, Reviews, TrainingData
from recbias.core.errors import NothingLeft
from recbias.core.evidence import MASK, Embeddings
from recbias.core.plugins import EXECUTION, Device, ModelName, Output, State, select_settings
from recbias.kernels.devices import Precision
from recbias.language.counterfactual import Side, build_swaps, make_counterfactuals
from recbias.models.fine_tuning import FineTuning, Task, fine_tune
from recbias.models.gpu import Tensor, copy_to_device
from recbias.models.text import (
    MAX_BLOCK_SCORES,
    Blocks,
    EncoderModel,
    FittedEncoderModel,
    FittedTextModel,
    ItemClasses,
    Pooling,
    TextClassifier,
    Tokens,
    accuracy,
    prepare_reviews,
    select_validation_reviews,
    split_state,
)
from recbias.models.training import Patience

_MIN_COPY_SHARE = 0.01
"""Number of counterfactual copies, as a share of the reviews, below which a warning is issued."""


@dataclass(frozen=True, kw_only=True)
class LMRec(EncoderModel):
    """Fine-tune a language model on reviews to predict their items; recommend by a prompt.

        p(item | text) = softmax(W dropout(h) + b),    h = the encoder's state of the text
        score(u, i) = (1 / |R_u|) Σ_{r in R_u} ln p(i | r)

    By default ``h`` is the last layer's state of the first token. All weights are trained by
    cross-entropy over the items with training interactions, by AdamW with linear warm-up and
    decay. With a validation set, the epoch with the highest accuracy on its reviews is used.
    ``[MASK]`` in a review or prompt is replaced by the encoder's mask token. R_u are the
    training reviews of user u, whose training items are excluded; users without a training review
    have empty lists.

    Args:
        encoder: A model of the Hugging Face hub, a folder (relative to the spec), or an installed
            package that contains a model.
        revision: A commit, tag or branch of the hub; None is the main branch, whose commit is
            stored with the fitted model.
        pooling: ``first`` is the first token's state, ``mean`` averages the states of all tokens.
        dropout: Dropout rate of ``h`` in training.
        encoder_dropout: Whether the encoder's own dropout layers are active in training, as in
            pretraining; without them fewer epochs suffice.
        learning_rate: Maximum learning rate.
        head_rate: Factor of the learning rate of W and b.
        batch_size: Number of reviews per step.
        epochs: Maximum number of epochs.
        patience: Number of epochs without a higher validation accuracy before training stops; 0
            disables early stopping.
        max_length: Maximum number of tokens per text.
        warmup: Share of the steps in which the learning rate rises from 0.
        weight_decay: Decoupled weight decay of the weight matrices.
        batch_parts: Number of parts of a batch that are computed one after another and whose
            gradients are summed, to save memory.
        counterfactual: Counterfactual data augmentation: adds a copy of each training review that
            contains a word of one side, with the word of the other side. ``gender`` swaps he and
            she, mom and dad, first names of men and women; ``race`` swaps the first names of the
            packaged templates. The fact ``counterfactual_copies`` is the number of copies.
        precision: Type of matrix products: ``auto`` is bfloat16 on CUDA and float32 elsewhere.
            Some CPUs are nearly twice as fast in bfloat16.
        device: Device of the training.

    Raises:
        MissingEvidence: The dataset has no reviews.
        NothingLeft: There are no training reviews.
        MissingFile: The encoder does not exist; DownloadFailed if it cannot be downloaded.
        OutOfRange: Training diverges.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022, section 3.1. For ``counterfactual``: Lu, Mardziel,
        Wu, Amancharla and Datta, "Gender Bias in Neural Natural Language Processing", 2020.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "predictions", "embeddings"})
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "tokenizers")

    encoder: ModelName = "bert-base-uncased"
    revision: str | None = None
    pooling: Pooling = "first"
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.2
    encoder_dropout: bool = True
    learning_rate: Annotated[float, Gt(0)] = 5e-5
    head_rate: Annotated[float, Gt(0)] = 1.0
    batch_size: Annotated[int, Gt(0)] = 128
    epochs: Annotated[int, Gt(0)] = 10
    patience: Patience = 2
    max_length: Annotated[int, Gt(2)] = 512
    warmup: Annotated[float, Ge(0), Lt(1)] = 0.1
    weight_decay: Annotated[float, Ge(0)] = 0.01
    batch_parts: Annotated[int, Gt(0), EXECUTION] = 1
    counterfactual: Literal["none"] | Side = "none"
    precision: Precision = "auto"
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedLMRec:
        """Fine-tune on the training reviews."""
        self.check_data(data)
        classes = ItemClasses.from_data(data)
        reviews = self._add_counterfactuals(prepare_reviews(data), rng)
        network = self.create_network(len(classes), seed=int(rng.integers(2**62)))
        tokens, held_out = (
            network.tokenize(reviews.texts),
            select_validation_reviews(data, classes),
        )
        task = _ItemPrediction(network, tokens, classes, reviews.items, held_out)
        fine_tune(task, select_settings(self, FineTuning, name="LMRec"), rng)
        return _FittedLMRec(self, classes, network.weights())

    def restore(self, state: State) -> _FittedLMRec:
        """Return the fitted recommender of a stored state."""
        return _FittedLMRec(self, *split_state(state))

    def _add_counterfactuals(self, reviews: Reviews, rng: np.random.Generator) -> Reviews:
        if self.counterfactual == "none":
            return reviews
        swaps, own_rng = build_swaps(self.counterfactual), rng.spawn(1)[0]  # trained as without
        rows, texts = make_counterfactuals(reviews.texts, swaps, own_rng)
        record_fact("counterfactual_copies", rows.size)
        if rows.size < _MIN_COPY_SHARE * len(reviews):
            warn(
                f"counterfactual: {self.counterfactual} changes only {rows.size:,} of "
                f"{len(reviews):,} reviews; names that mask_names has masked cannot be swapped"
            )
        return Reviews(
            np.append(reviews.users, reviews.users[rows]),
            np.append(reviews.items, reviews.items[rows]),
            np.append(reviews.texts, texts),
        )


@dataclass(frozen=True, eq=False)
class _ItemPrediction(Task):
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
        return self.network.module

    @property
    def body(self) -> Any:
        return self.module["encoder"]

    @cached_property
    def lengths(self) -> AnyArray:
        return self.tokens.lengths

    @property
    def has_validation_texts(self) -> bool:
        return self.validation_reviews is not None

    def loss(self, rows: AnyArray) -> Tensor:
        from torch.nn.functional import cross_entropy

        classes = copy_to_device(self._review_classes[rows], self.network.device)
        with self.network.autocast():
            logits = self.network.logits(self.tokens, rows)
        return cross_entropy(logits, classes, reduction="sum")

    def validation_score(self) -> float:
        """Return the accuracy on the validation reviews."""
        if self.validation_reviews is None:
            return math.nan
        blocks = self.network.classify(self.validation_reviews.texts, label="validation reviews")
        return accuracy(blocks, self.classes.encode(self.validation_reviews.items))

    @cached_property
    def _review_classes(self) -> AnyArray:
        return self.classes.encode(self.items)


@dataclass(frozen=True, eq=False)
class _FittedLMRec(FittedEncoderModel):
    """A fitted LMRec."""

    def embeddings(self) -> Embeddings:
        """Return the rows of W as embeddings of the items; NaN for items that are no class."""
        rows = self.weights["head.weight"]
        vectors = np.full((self.classes.n_items, rows.shape[1]), np.nan, dtype=np.float32)
        vectors[self.classes.items] = rows
        return Embeddings(None, vectors)


_MIN_RELATIVE_STD = 1e-5
"""Columns with a standard deviation below this share of the largest are taken as constant."""


@dataclass(frozen=True, eq=False)
class SoftmaxRegression:
    """The classifier ``log softmax(x W + b)``.

    Args:
        weights: W, ``float32 (d, c)``.
        bias: b, ``float32[c]``; -inf for a class without training rows.
    """

    weights: AnyArray
    bias: AnyArray

    @classmethod
    def fit(
        cls,
        features: AnyArray | Matrix,
        classes: AnyArray,
        n_classes: int,
        *,
        strength: float,
        iterations: int,
    ) -> SoftmaxRegression:
        """Minimize the penalized cross-entropy by L-BFGS, where ``strength`` is C.

            |W|² / 2 + C Σ_n -log p(class_n | x_n)

        A class without training rows has probability 0. A warning reports a search that reached
        the maximum number of iterations. ``features`` is x, dense or CSR, ``float32 (n, d)``, and
        ``classes`` is ``int64[n]``.
        """
        present = np.unique(classes)
        weights = np.zeros((features.shape[1], n_classes), dtype=np.float32)
        bias = np.full(n_classes, -np.inf, dtype=np.float32)
        bias[present] = 0.0
        if present.size > 1:
            coefficients, intercepts = _minimize(features, classes, strength, iterations)
            # for two classes scikit-learn returns those of the second only
            weights[:, present[-len(coefficients) :]] = coefficients.T
            bias[present[-len(coefficients) :]] = intercepts
        return cls(weights, bias)

    def state(self) -> State:
        """Return the arrays."""
        return {"weights": self.weights, "bias": self.bias}

    def log_probabilities(self, features: AnyArray | Matrix) -> AnyArray:
        """Return the log-probability of each class, ``float32 (b, c)``; features as in ``fit``."""
        from scipy.special import log_softmax

        return np.asarray(log_softmax(features @ self.weights + self.bias, axis=1))


def _minimize(
    features: AnyArray | Matrix, classes: AnyArray, strength: float, iterations: int
) -> tuple[AnyArray, AnyArray]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression(C=strength, max_iter=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        regression.fit(features, classes)
    if regression.n_iter_.max() >= iterations:
        warn(f"the logistic regression has not converged after {iterations:,} iterations")
    return regression.coef_, regression.intercept_


def fit_probe(
    blocks: Blocks, classes: AnyArray, n_classes: int, *, strength: float, iterations: int
) -> SoftmaxRegression:
    """Fit a softmax regression on standardized states; return it for states that are not.

        p(class | h) = softmax(z W' + b'),    z = (h - mean) / std

    equals ``softmax(h W + b)`` with ``W = W' / std`` and ``b = b' - mean W``. Columns that are
    constant up to rounding are not divided by their standard deviation. The blocks hold positions
    of texts and their states ``h``, ``float32 (b, d)``; ``strength`` is that of
    ``SoftmaxRegression.fit``.

    Source:
        Alain and Bengio, "Understanding intermediate layers using linear classifier probes", ICLR
        2017 (workshop).
    """
    states = np.empty((classes.size, 0), dtype=np.float32)
    for rows, block in blocks:
        if not states.shape[1]:
            states = np.empty((classes.size, block.shape[1]), dtype=np.float32)
        states[rows] = block
    mean, std = states.mean(axis=0), states.std(axis=0)
    std[std <= _MIN_RELATIVE_STD * std.max(initial=0.0)] = 1.0
    standardized = (states - mean) / std
    probe = SoftmaxRegression.fit(
        standardized, classes, n_classes, strength=strength, iterations=iterations
    )
    weights = probe.weights / std[:, None]
    return SoftmaxRegression(weights, probe.bias - mean @ weights)


@dataclass(frozen=True, kw_only=True)
class EncoderLR(EncoderModel):
    """Predict the item of a text by logistic regression on the states of a frozen encoder.

        p(item | text) = softmax(z W + b),    z = (h - mean) / std,    h = the state of the text
        score(u, i) = (1 / |R_u|) Σ_{r in R_u} ln p(i | r)

    ``mean`` and ``std`` are computed per component of ``h`` over the training reviews. W and b
    minimize ``|W|² / 2 + C Σ -log p`` over the training reviews; the encoder is not fine-tuned. A
    baseline of LMRec: what the language model represents before it is trained on reviews.
    ``[MASK]`` is replaced by the encoder's mask token. Items without training reviews are never
    recommended. R_u are the training reviews of user u, whose training items are excluded; users
    without a training review have empty lists.

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

    Raises:
        MissingEvidence: The dataset has no reviews.
        NothingLeft: There are no training reviews.
        MissingFile: The encoder does not exist; DownloadFailed if it cannot be downloaded.

    Source:
        Alain and Bengio, "Understanding intermediate layers using linear classifier probes", ICLR
        2017 (workshop).
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

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedEncoderLR:
        """Fit the regression; ``rng`` is unused, since the fit is deterministic."""
        self.check_data(data)
        classes, reviews = ItemClasses.from_data(data), prepare_reviews(data)
        network = self.create_network(len(classes))
        probe = fit_probe(
            network.encode(reviews.texts),
            classes.encode(reviews.items),
            len(classes),
            strength=self.C,
            iterations=self.iterations,
        )
        head = {"head.weight": probe.weights.T, "head.bias": probe.bias}
        return _FittedEncoderLR(self, classes, {**network.weights(), **head})

    def restore(self, state: State) -> _FittedEncoderLR:
        """Return the fitted recommender of a stored state."""
        return _FittedEncoderLR(self, *split_state(state))


@dataclass(frozen=True, eq=False)
class _FittedEncoderLR(FittedEncoderModel):
    """A fitted Encoder-LR."""

    def classify(self, texts: Ids) -> Blocks:
        """Yield the log-probabilities of the regression on the encoder's states."""
        probe = SoftmaxRegression(self.weights["head.weight"].T, self.weights["head.bias"])
        for rows, states in self.network.encode(texts):
            yield rows, probe.log_probabilities(states)


@dataclass(frozen=True, kw_only=True)
class TFIDFLR:
    """Predict the item of a text by logistic regression on its TF-IDF vector.

        p(item | text) = softmax(x W + b)
        x_t = (1 + ln n_t) (1 + ln((1 + N) / (1 + N_t))),    |x| = 1
        score(u, i) = (1 / |R_u|) Σ_{r in R_u} ln p(i | r)

    ``n_t`` is the number of occurrences of term t in the text and ``N_t`` the number of training
    reviews, of N, that contain it; without ``sublinear`` the first factor is ``n_t``. W and b
    minimize ``|W|² / 2 + C Σ -log p`` over the training reviews. Words have at least two letters
    and are converted to lower case. A baseline of LMRec: what can be learned from the same reviews
    without a language model. ``[MASK]`` is ignored. Items without training reviews are never
    recommended. R_u are the training reviews of user u, whose training items are excluded; users
    without a training review have empty lists.

    Memory: L-BFGS uses about 25 float64 arrays of the size of W, terms x items.

    Args:
        ngrams: Maximum length of a term in words; 1 uses single words only.
        min_df: Minimum number of training reviews that contain a term.
        max_features: Maximum number of terms: the most frequent ones; null for all.
        sublinear: Whether the number of occurrences is replaced by 1 plus its logarithm.
        C: Inverse of the regularization strength.
        iterations: Maximum number of L-BFGS iterations.

    Raises:
        MissingEvidence: The dataset has no reviews.
        NothingLeft: There are no training reviews, or no term is frequent enough.

    Source:
        Salton and Buckley, "Term-weighting approaches in automatic text retrieval", Information
        Processing & Management 24(5), 1988; scikit-learn's TfidfVectorizer and LogisticRegression
        (Pedregosa et al., JMLR 2011).
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "predictions"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "reviews"})
    libraries: ClassVar[tuple[str, ...]] = ("scikit-learn", "scipy")

    ngrams: Annotated[int, Gt(0)] = 2
    min_df: Annotated[int, Gt(0)] = 2
    max_features: Annotated[int, Gt(0)] | None = 50_000
    sublinear: bool = True
    C: Annotated[float, Gt(0)] = 10.0
    iterations: Annotated[int, Gt(0)] = 100

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedTFIDFLR:
        """Fit the regression; ``rng`` is unused, since the fit is deterministic."""
        classes, reviews = ItemClasses.from_data(data), prepare_reviews(data)
        vectorizer = self.create_vectorizer()
        try:
            features = vectorizer.fit_transform(_remove_masks(reviews.texts))
        except ValueError as error:
            problem = f"no word occurs in {self.min_df} of the {len(reviews):,} training reviews"
            raise NothingLeft(problem, where="min_df", remedy="lower min_df") from error
        regression = SoftmaxRegression.fit(
            features,
            classes.encode(reviews.items),
            len(classes),
            strength=self.C,
            iterations=self.iterations,
        )
        terms = vectorizer.get_feature_names_out()
        return _FittedTFIDFLR(self, classes, terms, vectorizer.idf_, regression)

    def restore(self, state: State) -> _FittedTFIDFLR:
        """Return the fitted recommender of a stored state."""
        terms = np.array(state["terms"].tobytes().decode().split("\n"), dtype=object)
        regression = SoftmaxRegression(state["weights"], state["bias"])
        return _FittedTFIDFLR(self, ItemClasses.from_state(state), terms, state["idf"], regression)

    def create_vectorizer(self, terms: Ids | None = None) -> Any:
        """Return a TF-IDF vectorizer with a fixed vocabulary, or one that is not fitted yet."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        return TfidfVectorizer(
            ngram_range=(1, self.ngrams),
            min_df=self.min_df,
            max_features=self.max_features,
            sublinear_tf=self.sublinear,
            vocabulary=terms,
            dtype=np.float32,
        )


@dataclass(frozen=True, eq=False)
class _FittedTFIDFLR(FittedTextModel):
    """A fitted TFIDF-LR.

    Args:
        settings: The model.
        classes: The items that are classes.
        terms: The terms, ``str[t]``.
        idf: Inverse document frequency of each term, ``float32[t]``.
        regression: The classifier.
    """

    settings: TFIDFLR
    terms: Ids
    idf: AnyArray
    regression: SoftmaxRegression

    def state(self) -> State:
        """Return the arrays; the terms as lines of UTF-8, since their lengths differ widely."""
        terms = np.frombuffer("\n".join(self.terms).encode(), dtype=np.uint8)
        return {**self.classes.state(), **self.regression.state(), "terms": terms, "idf": self.idf}

    def classify(self, texts: Ids) -> Blocks:
        """Yield the log-probabilities of the regression."""
        size = max(1, MAX_BLOCK_SCORES // len(self.classes))
        for start in range(0, len(texts), size):
            rows = np.arange(start, min(start + size, len(texts)))
            features = self._vectorizer.transform(_remove_masks(texts[rows]))
            yield rows, self.regression.log_probabilities(features)
            report_progress("texts classified", int(rows[-1]) + 1, len(texts))

    @cached_property
    def _vectorizer(self) -> Any:
        vectorizer = self.settings.create_vectorizer(self.terms)
        vectorizer.idf_ = self.idf
        return vectorizer


def _remove_masks(texts: Ids) -> list[str]:
    return [text.replace(MASK, " ") for text in texts]
