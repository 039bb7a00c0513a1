"""Fine-tuning of a language model on sentences, with a bias loss beside its own.

The losses are those of papers, as printed and as released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt

from recbias.core.context import record_fact, warn
from recbias.core.dataset import AnyArray, BoolArray, Sentences, TrainingData
from recbias.core.errors import Contradiction, MissingEvidence, NothingLeft
from recbias.kernels.devices import Precision, choose_precision
from recbias.language.likelihood import make_inputs
from recbias.language.local_models import (
    LocalModel,
    ScoringSettings,
    SentenceTokens,
    silence_transformers,
    tokenize_sentences,
)
from recbias.language.terms import TermPairs, compile_terms, load_terms, select_category
from recbias.models.fine_tuning import FineTuning, LearningCurve, Task, fine_tune
from recbias.models.gpu import Tensor, copy_to_device

_MIN_VARIANCE = 0.5
"""The share of the variance of pair differences that a bias subspace explains at least."""

_ROUNDING = 1e-6


def compute_log_ratio_loss(first: Tensor, second: Tensor, n_pairs: int) -> Tensor:
    """Return the loss of LMD: how much the probabilities of the terms of a pair differ.

        (1/|P_t|) Σ_i |ln y_i(t1) - ln y_i(t2)|

    over the places i at which a target term occurs, with t1 and t2 the pair of that term and y_i
    the distribution that the model predicts there. Logits serve as log-probabilities, since the
    normalisation cancels out. A term of several tokens has the mean of theirs. It is a sum over
    the places of a batch; the training divides it by the number of sentences.

    Args:
        first: The logit of t1 at each place, ``(m,)``.
        second: The logit of t2.
        n_pairs: The number of target pairs, |P_t|.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5; Qian, Muaz, Zhang and Hyun, "Reducing gender
        bias in word-level language models with a gender-equalizing loss function", ACL 2019.

    >>> import torch
    >>> float(compute_log_ratio_loss(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]), 3))
    1.0
    """
    return (first - second).abs().sum() / n_pairs


def compute_released_log_ratio_loss(
    states: Tensor, is_token: Tensor, occurs: Tensor, differences: Tensor
) -> Tensor:
    """Return the loss of LMD as in the released code.

        (1/|P_t|) Σ_s Σ_(pairs whose first term is in s) (1/n_s) Σ_i |h_si · (e1 - e2)|

    over all n_s positions of a sentence s, also those at which the model predicts another word.
    The sum over sentences is not divided by their number.

    Args:
        states: The last hidden states h, ``(b, w, d)``.
        is_token: Which positions are not padding, ``bool (b, w)``.
        occurs: Whether the first term of a pair is in a sentence, ``bool (b, p)``.
        differences: e1 - e2, the difference of the output embeddings, ``(p, d)``; constants.
    """
    ratios = (states @ differences.T).abs() * is_token.unsqueeze(-1)
    means = ratios.sum(1) / is_token.sum(1, keepdim=True).clamp(min=1)
    return (means * occurs).sum() / len(differences)


def compute_cosine_gap_loss(attributes: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return the loss of ADD: how much closer attribute terms are to one term of a pair.

        Σ_a Σ_(t1,t2) |cos(t1, a) - cos(t2, a)|

    It is a sum over the occurrences of a batch; the training divides it by the number of
    sentences, unless it is that of the released code.

    Args:
        attributes: The vector of each occurrence of an attribute term, ``(m, d)``: its input
            embedding; in the released code the last hidden state of its tokens.
        first: The vectors of t1, ``(p, d)``.
        second: The vectors of t2.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5; Lauscher, Glavaš, Ponzetto and Vulić, "A
        general framework for implicit and explicit debiasing of distributional word vector
        spaces", AAAI 2020.

    >>> import torch
    >>> axes = torch.eye(2)
    >>> float(compute_cosine_gap_loss(torch.tensor([[3.0, 0.0]]), axes[:1], axes[1:]))
    1.0
    """
    from torch.nn.functional import normalize

    cosines = [normalize(attributes) @ normalize(terms).T for terms in (first, second)]
    return (cosines[0] - cosines[1]).abs().sum()


def find_bias_subspace(first: Tensor, second: Tensor) -> Tensor:
    """Return an orthonormal basis of the bias subspace, ``(k, d)``: the columns b_j as rows.

    A principal component analysis of the differences of pairs, which are not centred, as each pair
    counts in both orders. k is the smallest number of components that explain at least half of
    the variance.

    Args:
        first: The vectors of t1, ``(p, d)``.
        second: The vectors of t2.

    Source:
        Bolukbasi, Chang, Zou, Saligrama and Kalai, "Man is to computer programmer as woman is to
        homemaker?", NeurIPS 2016, section 5.

    >>> import torch
    >>> find_bias_subspace(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.zeros(2, 2)).abs()
    tensor([[1., 0.]])
    """
    import torch

    _, values, vectors = torch.linalg.svd((first - second).double() / 2, full_matrices=False)
    shares = values.square().cumsum(0) / values.square().sum()
    k = int((shares < _MIN_VARIANCE - _ROUNDING).sum()) + 1
    return vectors[:k].to(first.dtype)


def compute_projection_loss(attributes: Tensor, basis: Tensor) -> Tensor:
    """Return the loss of HD: the length of attribute terms within the bias subspace.

        Σ_a Σ_j |b_j ⟨a, b_j⟩|

    It is a sum over the occurrences of a batch; the training divides it by the number of
    sentences.

    Args:
        attributes: The input embedding of each occurrence of an attribute term, ``(m, d)``.
        basis: The basis of the bias subspace, ``(k, d)``; constants.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5; Barikeri, Lauscher, Vulić and Glavaš,
        "RedditBias", ACL 2021.

    >>> import torch
    >>> float(compute_projection_loss(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 1.0]])))
    4.0
    """
    return ((attributes @ basis.T).abs() * basis.norm(dim=1)).sum()


def compute_released_projection_loss(states: Tensor, basis: Tensor) -> Tensor:
    """Return the loss of HD as in the released code: of a running total of projections.

        Σ_m ‖ Σ_(l ≤ m) Σ_j ⟨h_l, b_j⟩ b_j ‖_1

    The total is not reset between the occurrences of a batch, so an occurrence counts in all later
    ones, too, and may cancel out. The sum is not divided by the number of sentences.

    Args:
        states: The last hidden state of each occurrence, in the order of the batch, ``(m, d)``.
        basis: The basis of the bias subspace, ``(k, d)``; constants.
    """
    return ((states @ basis.T) @ basis).cumsum(0).abs().sum()


_LOSSES = frozenset({"LMD", "ADD", "HD"})
"""The methods that add a bias loss; the others add training sentences."""

_DEFAULT_WEIGHT = 10.0
_RELEASED_LM_WEIGHT = 0.001


@dataclass(frozen=True, kw_only=True)
class Debias:
    """Debiasing by fine-tuning on the training sentences.

        LMD, ADD, HD:   loss = LM + weight · bias
        CADA, CTDA:     loss = LM, over the sentences and copies of them

    LM is the mean cross-entropy of the scored tokens of a batch. The bias loss is the mean over
    its sentences of: ``LMD`` (1/|P_t|) Σ_i |ln y_i(t1)/y_i(t2)| over the places of target terms;
    ``ADD`` Σ_a Σ_(t1,t2) |cos(t1, a) - cos(t2, a)| over the places of attribute terms a of the
    first group, with input embeddings; ``HD`` Σ_a Σ_j |b_j ⟨a, b_j⟩| with the bias subspace of
    the pretrained embeddings, the smallest that explains half of the variance of pair
    differences. A term of several tokens has their mean.

    ``CADA`` adds a copy of each sentence with attribute terms replaced by their counterparts,
    ``CTDA`` one with target terms replaced by those of the second group. A sentence without such
    a term has no copy.

    Args:
        method: The method.
        weight: The weight of the bias loss, 10 by default. 0 is fine-tuning alone, a control.
        category: The category of the terms, such as ``gender``, and of the sentences to train on
            if they have a label ``category``. By default the only one of the sentences or terms.
        reading: ``paper``; or ``released``, the losses of the authors' code. These use last hidden
            states in place of input embeddings and of predictions at the places of target terms,
            constant output embeddings, and sums over the batch: see docs/papers/chbias.md. Their
            total is lm_weight · LM + weight · bias, and LM alone in a batch without terms. Copies
            without a term are duplicates.
        lm_weight: The weight of LM in ``released``: 0.001 by default, or 0.01.

    Raises:
        Contradiction: CADA and CTDA have no weight, and ``paper`` has no ``lm_weight``.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5, and its released code.
    """

    method: Literal["LMD", "ADD", "HD", "CADA", "CTDA"]
    weight: Annotated[float, Ge(0)] | None = None
    category: str | None = None
    reading: Literal["paper", "released"] = "paper"
    lm_weight: Annotated[float, Gt(0)] | None = None

    def __post_init__(self) -> None:
        """Refuse weights that have no effect."""
        if self.method not in _LOSSES and self.weight is not None:
            message = f"{self.method} has no bias loss to be weighted"
            raise Contradiction(message, where="weight", remedy="remove weight")
        if self.lm_weight is not None and (self.reading == "paper" or self.method not in _LOSSES):
            message = "the language-model loss has the weight 1"
            remedy = "remove lm_weight, or add reading: released to LMD, ADD or HD"
            raise Contradiction(message, where="lm_weight", remedy=remedy)

    @property
    def has_bias_loss(self) -> bool:
        """Whether the method adds a loss."""
        return self.method in _LOSSES

    @property
    def weights(self) -> tuple[float, float]:
        """The weights of the language-model loss and of the bias loss."""
        bias = _DEFAULT_WEIGHT if self.weight is None else self.weight
        if self.reading == "paper":
            return 1.0, bias
        return _RELEASED_LM_WEIGHT if self.lm_weight is None else self.lm_weight, bias


def _take_batch(occurrences: pd.DataFrame, rows: AnyArray) -> dict[str, AnyArray]:
    """Return the columns of the occurrences in a batch, with ``sentence`` by position in it."""
    inside = occurrences[occurrences["sentence"].isin(rows)]
    positions = pd.Series(np.arange(rows.size), index=rows)
    inside = inside.assign(sentence=positions[inside["sentence"]].to_numpy())
    inside = inside.sort_values(["sentence", "start"])
    return {str(name): np.array(inside[name]) for name in inside}


def _find_occurrences(
    model: LocalModel,
    texts: Sequence[str],
    tokens: SentenceTokens,
    settings: ScoringSettings,
    numbers: Mapping[str, int],
    *,
    whole_words: bool,
) -> pd.DataFrame:
    """Return the places of terms in sentences, in order; at each place the longest term.

    The columns are the ``sentence``, the number of the ``term``, and the columns in the sentence
    of its first token, ``start``, and after its last one, ``end``.

    Args:
        model: The model, whose tokenizer gives the place of a token in the text.
        texts: The sentences.
        tokens: The same as tokens.
        settings: The settings of the tokens; occurrences after ``max_length`` are left out.
        numbers: The number of each term; several terms may have the same.
        whole_words: Whether terms are words between spaces or punctuation.

    Raises:
        Contradiction: The tokenizer does not give the places of tokens.
    """
    if not model.tokenizer.is_fast:
        message = "the tokenizer of the model does not say where in a text a token is"
        raise Contradiction(message, where="model", remedy="add a tokenizer.json to the model")
    by_text = {term.lower(): number for term, number in numbers.items()}
    pattern = compile_terms(tuple(by_text), whole_words=whole_words)
    with silence_transformers():
        encoded = model.tokenizer(
            list(texts), add_special_tokens=settings.special_tokens, return_offsets_mapping=True
        )
    found: list[tuple[int, int, int, int]] = []
    for row, (text, offsets) in enumerate(zip(texts, encoded.offset_mapping, strict=True)):
        spans = np.array(offsets, dtype=np.int64).reshape(-1, 2)
        n_added = int(tokens.lengths[row]) - len(spans)
        for match in pattern.finditer(text):
            is_inside = (spans[:, 0] < match.end()) & (spans[:, 1] > match.start())
            columns = np.flatnonzero(is_inside) + n_added
            number = by_text.get(match[0].lower())
            if columns.size and number is not None and columns[-1] < settings.max_length:
                found.append((row, number, int(columns[0]), int(columns[-1]) + 1))
    return pd.DataFrame(found, columns=["sentence", "term", "start", "end"], dtype=np.int64)


def _number_targets(pairs: TermPairs) -> dict[str, int]:
    """Return the number of the pair of each target term; of a shared term, of its first pair.

    >>> pairs = TermPairs("age", ("old", "young"), (("grandpa", "lad"), ("old man", "lad")))
    >>> _number_targets(pairs)
    {'grandpa': 0, 'old man': 1, 'lad': 0}
    """
    numbers = {first: number for number, (first, _) in enumerate(pairs.targets)}
    for number, (_, second) in enumerate(pairs.targets):
        numbers.setdefault(second, number)
    return numbers


def _tokenize_terms(model: LocalModel, terms: Sequence[str], *, whole_words: bool) -> list[Any]:
    """Return the tokens of each term as within a text, ``torch.long`` tensors.

    Raises:
        Contradiction: The tokenizer gives no token for a term.
    """
    import torch

    texts = [f" {term}" if whole_words else term for term in terms]
    with silence_transformers():
        ids = model.tokenizer(texts, add_special_tokens=False).input_ids
    for term, tokens in zip(terms, ids, strict=True):
        if not tokens:
            message = f"the tokenizer of the model gives no token for the term {term!r}"
            raise Contradiction(message, where="terms", remedy="remove the term")
    return [torch.tensor(tokens, device=model.device) for tokens in ids]


def _average(matrix: Tensor, terms: Sequence[Any]) -> Tensor:
    """Return the mean of the rows of each term, ``(p, d)``."""
    import torch

    rows = [matrix[tokens].mean(0) for tokens in terms]
    return torch.stack(rows) if rows else matrix.new_zeros(0, matrix.shape[1])


@dataclass(frozen=True, eq=False)
class _Batch:
    """A batch of sentences after a pass of the model.

    Args:
        rows: The sentences, by position, ``int64[b]``.
        is_token: Which positions are not padding, ``bool (b, w)``.
        logits: The logits, ``(b, w, vocabulary)``; those at a position predict the next.
        states: The last hidden states, ``(b, w, d)``; None if no loss uses them.
    """

    rows: AnyArray
    is_token: Tensor
    logits: Tensor
    states: Tensor | None


@dataclass(eq=False)
class _BiasLoss:
    """The bias loss of a method, of the sentences of a batch.

    Args:
        debias: The method.
        model: The model.
        pairs: The terms.
        occurrences: The places of target terms (LMD) or of attribute terms; None for the released
            LMD.
        occurs: Which sentences have the first term of each target pair, for the released LMD.
    """

    debias: Debias
    model: LocalModel
    pairs: TermPairs
    occurrences: Any = None
    occurs: AnyArray = field(default_factory=lambda: np.empty((0, 0), dtype=bool))

    def __post_init__(self) -> None:
        """Tokenize the terms, and find the bias subspace of HD."""
        seconds = tuple(second for _, second in self.pairs.targets)
        self._first, self._second, self._attributes = (
            _tokenize_terms(self.model, terms, whole_words=self.pairs.whole_words)
            for terms in (self.pairs.target_terms, seconds, self.pairs.attribute_terms)
        )
        self.reads_states = self.debias.reading == "released"
        if self.debias.method == "HD":
            self._basis = find_bias_subspace(*self._read_targets()).detach()

    def compute(self, batch: _Batch) -> Tensor:
        """Return the sum of the losses of the sentences of a batch."""
        if self.debias.method == "LMD":
            compute = self._sum_released_log_ratios if self.reads_states else self._sum_log_ratios
            return compute(batch)
        attributes = self._read_attributes(batch)
        if self.debias.method == "ADD":
            return compute_cosine_gap_loss(attributes, *self._read_targets())
        if self.reads_states:
            return compute_released_projection_loss(attributes, self._basis)
        return compute_projection_loss(attributes, self._basis)

    def _read_targets(self) -> tuple[Tensor, Tensor]:
        """Return the vectors of t1 and of t2, ``(p, d)``: constants in the released code."""
        network = self.model.network
        if self.reads_states:
            weight = network.get_output_embeddings().weight.detach()
        else:
            weight = network.get_input_embeddings().weight
        return _average(weight, self._first), _average(weight, self._second)

    def _read_attributes(self, batch: _Batch) -> Tensor:
        """Return the input embedding, or the mean last hidden state, of each occurrence."""
        import torch

        inside = _take_batch(self.occurrences, batch.rows)
        if not self.reads_states:
            weight = self.model.network.get_input_embeddings().weight
            return _average(weight, self._attributes)[torch.from_numpy(inside["term"])]
        states: Any = batch.states
        spans = zip(inside["sentence"], inside["start"], inside["end"], strict=True)
        means = [states[row, start:end].mean(0) for row, start, end in spans]
        return torch.stack(means) if means else states.new_zeros(0, states.shape[-1])

    def _sum_log_ratios(self, batch: _Batch) -> Tensor:
        import torch

        inside = _take_batch(self.occurrences, batch.rows)
        cells = torch.from_numpy(inside["sentence"]), torch.from_numpy(inside["start"] - 1)
        logits = batch.logits[cells]
        sides = [logits.new_zeros(0)], [logits.new_zeros(0)]
        for pair in np.unique(inside["term"]):
            rows = logits[torch.from_numpy(np.flatnonzero(inside["term"] == pair))]
            for side, terms in zip(sides, (self._first, self._second), strict=True):
                side.append(rows[:, terms[pair]].mean(1))
        first, second = (torch.cat(side) for side in sides)
        return compute_log_ratio_loss(first, second, len(self._first))

    def _sum_released_log_ratios(self, batch: _Batch) -> Tensor:
        import torch

        first, second = self._read_targets()
        occurs = torch.from_numpy(self.occurs[batch.rows]).to(batch.is_token.device)
        return compute_released_log_ratio_loss(
            batch.states, batch.is_token, occurs, first - second
        )


def create_bias_loss(
    debias: Debias,
    model: LocalModel,
    texts: Sequence[str],
    tokens: SentenceTokens,
    settings: ScoringSettings,
    pairs: TermPairs,
) -> _BiasLoss:
    """Return the bias loss of a method over training sentences; count those without a term.

    Raises:
        NothingLeft: No sentence has a term that the loss is about.
        Contradiction: The tokenizer does not give the places of tokens.
    """
    if debias.method == "LMD" and debias.reading == "released":
        patterns = [
            compile_terms((term,), whole_words=pairs.whole_words) for term in pairs.target_terms
        ]
        occurs = np.array([[bool(p.search(text)) for p in patterns] for text in texts], dtype=bool)
        _count_without_term(
            debias, np.invert(occurs.any(axis=1)), f"target term of {pairs.groups[0]}"
        )
        return _BiasLoss(debias, model, pairs, occurs=occurs)
    kind = "target" if debias.method == "LMD" else "attribute"
    if debias.method == "LMD":
        numbers = _number_targets(pairs)
    else:
        numbers = {term: number for number, term in enumerate(pairs.attribute_terms)}
    occurrences = _find_occurrences(
        model, texts, tokens, settings, numbers, whole_words=pairs.whole_words
    )
    if debias.method == "LMD":
        occurrences = occurrences[occurrences["start"] > 0]
    if not len(occurrences):
        message = f"none of the {len(texts):,} sentences has {kind} terms of {pairs.category}"
        raise NothingLeft(message, where="terms", remedy="use other terms or another method")
    is_without = np.isin(np.arange(len(texts)), occurrences["sentence"], invert=True)
    _count_without_term(debias, is_without, f"{kind} term of {pairs.category}")
    return _BiasLoss(debias, model, pairs, occurrences)


def _count_without_term(debias: Debias, is_without: BoolArray, noun: str) -> None:
    n_without = int(is_without.sum())
    record_fact("sentences_without_term", n_without)
    if n_without:
        count = f"{debias.method}: {n_without:,} of {is_without.size:,} sentences"
        warn(f"{count} have no {noun} and add no bias loss")


_CATEGORY = "category"
"""The label of sentences that names the category of their terms."""


@dataclass(frozen=True)
class TrainingSentences:
    """Sentences to train on, with the terms of their category.

    Args:
        texts: The sentences, without copies.
        pairs: The terms.
    """

    texts: tuple[str, ...]
    pairs: TermPairs

    @classmethod
    def select(cls, data: TrainingData, debias: Debias, terms: str | Path) -> TrainingSentences:
        """Return the training sentences of a category, with its terms.

        Raises:
            MissingEvidence: There are no sentences.
            NothingLeft: None is for training, or of the category, or has a term that is used.
            UnknownName: The terms have no such category, or the category is not given and there
                are several.
        """
        if data.sentences is None:
            remedy = "use chbias, redditbias or sentence_tables as dataset"
            raise MissingEvidence("debias needs sentences to train on", remedy=remedy)
        sentences = data.sentences.take_part("train")
        pairs_by_category = load_terms(terms)
        category = debias.category or _find_only_category(sentences, tuple(pairs_by_category))
        pairs = select_category(pairs_by_category, category)
        frame = sentences.frame
        if _CATEGORY in frame and frame[_CATEGORY].notna().any():
            frame = frame[frame[_CATEGORY] == pairs.category]
        texts = tuple(str(text) for text in frame["text"])
        if not texts:
            message = f"there are no training sentences of the category {pairs.category}"
            raise NothingLeft(message, where="debias", remedy="name another category or dataset")
        pairs.require_targets(texts, where="terms")
        return cls(texts, pairs)

    def augment(self, debias: Debias) -> tuple[str, ...]:
        """Return the sentences and, of CADA and CTDA, the copies; these are counted.

        Raises:
            NothingLeft: No sentence has a term with a counterpart.
        """
        if debias.has_bias_loss:
            return self.texts
        swap = self.pairs.swap_attributes if debias.method == "CADA" else self.pairs.swap_targets
        copies = [swap(text) for text in self.texts]
        changed = [copy for text, copy in zip(self.texts, copies, strict=True) if copy != text]
        n_unchanged = len(copies) - len(changed)
        kind = "an attribute" if debias.method == "CADA" else "a target"
        if not changed:
            message = f"none of the {len(copies):,} sentences has {kind} term with a counterpart"
            raise NothingLeft(message, where="terms", remedy="use other terms or another method")
        if n_unchanged:
            outcome = "a duplicate" if debias.reading == "released" else "no copy"
            warn(
                f"{debias.method}: {n_unchanged:,} of {len(copies):,} sentences have no "
                f"{kind.split()[1]} term with a counterpart and get {outcome}"
            )
        record_fact("copies", len(changed))
        record_fact("sentences_without_term", n_unchanged)
        return (*self.texts, *(copies if debias.reading == "released" else changed))


def _find_only_category(sentences: Sentences, categories: tuple[str, ...]) -> str:
    """Return the category of sentences, or of the terms, if there is one only.

    Raises:
        NothingLeft: There are several.
    """
    frame = sentences.frame
    names = sorted({str(name) for name in frame[_CATEGORY].dropna()}) if _CATEGORY in frame else []
    names = names or list(categories)
    if len(names) != 1:
        message = f"there are {len(names)} categories: {', '.join(names[:6])}"
        remedy = (
            f"name one: debias: {{category: {names[0]}}}" if names else "add training sentences"
        )
        raise NothingLeft(message, where="debias.category", remedy=remedy)
    return names[0]


_WIDTHS = 8
"""A GPU reads batches that are padded to a multiple of this number of tokens."""

_LANGUAGE_MODEL, _BIAS = "language_model", "bias"
"""The parts of the loss."""

_WORSE_THAN_CHANCE = 1.5
"""Cross-entropy above this multiple of that of a uniform distribution is divergence."""


def debias_model(
    model: LocalModel,
    training: TrainingSentences,
    debias: Debias,
    scoring: ScoringSettings,
    plan: FineTuning,
    rng: np.random.Generator,
) -> LearningCurve:
    """Fine-tune a causal model or an encoder-decoder in place; return the losses of each step.

    Raises:
        NothingLeft: No sentence has a term that the method is about, or a token to predict.
        OutOfRange: The training diverges.
        TooLittleMemory: The device has too little memory for a batch.
    """
    settings = scoring.complete(model)
    texts = training.augment(debias)
    tokens = tokenize_sentences(model, texts, settings)
    if not tokens.n_scored.any():
        message = "no training sentence has a token to predict"
        raise NothingLeft(message, remedy="train on sentences of several words")
    bias = None
    if debias.has_bias_loss:
        bias = create_bias_loss(debias, model, texts, tokens, settings, training.pairs)
    task = SentenceTraining(model, tokens, settings, bias, debias, plan.precision)
    with silence_transformers():
        return fine_tune(task, plan, rng)


@dataclass(eq=False)
class SentenceTraining(Task):
    """Predict the tokens of training sentences, and reduce a bias loss.

    The language-model loss of a step is the mean over its scored tokens, in however many batches
    they are computed, and so is a bias loss of ``reading: paper`` the mean over its sentences. A
    bias loss of ``reading: released`` is about a batch as a whole: that of a step is the mean over
    its batches, weighted by their sentences, and differs from that of one large batch.

    Args:
        model: The model to be trained.
        tokens: The sentences.
        settings: Which tokens are predicted, complete.
        bias: The bias loss; None for the language-model loss alone.
        debias: The weights of the losses.
        precision: The type of matrix products.
    """

    model: LocalModel
    tokens: SentenceTokens
    settings: ScoringSettings
    bias: _BiasLoss | None
    debias: Debias
    precision: Precision = "float32"
    _parts: dict[str, Tensor] = field(default_factory=dict)
    _tokens_per_sentence: float | None = None

    @property
    def module(self) -> Any:
        """The network."""
        return self.model.network

    @property
    def body(self) -> Any:
        """The network without its head, unless a bias loss reads the states of its layers."""
        is_whole = self.model.body is self.model.network
        reads_states = self.bias is not None and self.bias.reads_states
        return None if is_whole or reads_states else self.model.body

    @cached_property
    def lengths(self) -> AnyArray:
        """The number of tokens of each sentence that are read."""
        return np.minimum(self.tokens.lengths, self.settings.max_length)

    @cached_property
    def n_scored(self) -> AnyArray:
        """The number of tokens of each sentence that are predicted, ``int64[n]``."""
        tokens = self.tokens
        starts = np.repeat(tokens.starts[:-1], tokens.lengths)
        columns = np.arange(starts.size) - starts
        is_read = (columns > 0) & (columns < self.settings.max_length)
        owners = np.repeat(np.arange(tokens.lengths.size), tokens.lengths)
        return np.bincount(owners, tokens.is_scored & is_read, tokens.lengths.size)

    @property
    def part_names(self) -> tuple[str, ...]:
        """The losses."""
        return (_LANGUAGE_MODEL,) if self.bias is None else (_LANGUAGE_MODEL, _BIAS)

    @property
    def limits(self) -> Mapping[str, float]:
        """The cross-entropy of a model that is much worse than chance."""
        n_vocabulary = int(self.module.get_input_embeddings().weight.shape[0])
        return {_LANGUAGE_MODEL: _WORSE_THAN_CHANCE * math.log(n_vocabulary)}

    def prepare_step(self, rows: AnyArray) -> None:
        """Count the scored tokens of the sentences of a step."""
        self._tokens_per_sentence = self._average_tokens(rows)

    def loss(self, rows: AnyArray) -> Tensor:
        """Return the share of a batch in the loss of its step, times its number of sentences.

        Without a step, the batch is the step.
        """
        average = self._tokens_per_sentence or self._average_tokens(rows)
        batch, cross_entropy = self._run(rows)
        language_model = cross_entropy / (average * rows.size)
        if self.bias is None:
            self._parts = {_LANGUAGE_MODEL: language_model.detach() * rows.size}
            return language_model * rows.size
        bias = self.bias.compute(batch)
        is_released = self.debias.reading == "released"
        bias = bias if is_released else bias / rows.size
        lm_weight, bias_weight = self.debias.weights
        total = lm_weight * language_model + bias_weight * bias
        if is_released and float(bias.detach()) == 0:
            total = language_model
        losses = {_LANGUAGE_MODEL: language_model, _BIAS: bias}
        self._parts = {name: loss.detach() * rows.size for name, loss in losses.items()}
        return total * rows.size

    def read_parts(self) -> Mapping[str, Tensor]:
        """Return the losses of the last batch times its number of sentences, without weights."""
        return self._parts

    def _average_tokens(self, rows: AnyArray) -> float:
        return max(int(self.n_scored[rows].sum()), 1) / rows.size

    def _run(self, rows: AnyArray) -> tuple[_Batch, Tensor]:
        """Return a batch after a pass of the model, and the sum of its cross-entropies."""
        import torch
        from torch.nn.functional import cross_entropy

        kind = self.model.device.type
        width = int(self.lengths[rows].max(initial=1))
        if kind == "cuda":  # which is fastest at such widths, and captures passes of each
            width = min(-(-width // _WIDTHS) * _WIDTHS, self.settings.max_length)
        padding = self.model.tokenizer.pad_token_id or 0
        values, is_token = self.tokens.pad(rows, padding, width)
        reads_states = self.bias is not None and self.bias.reads_states
        inputs = make_inputs(self.model, self.settings, values, is_token)
        is_reduced = choose_precision(self.precision, kind) == "bfloat16"
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=is_reduced):
            output = self.module(**inputs, output_hidden_states=reads_states)
        lines, columns = np.nonzero(is_token[:, 1:])
        is_scored = self.tokens.is_scored[self.tokens.starts[rows][lines] + columns + 1]
        lines, columns = lines[is_scored], columns[is_scored]
        targets = copy_to_device(values[lines, columns + 1], self.model.device)
        predicted = output.logits[torch.from_numpy(lines), torch.from_numpy(columns)].float()
        total = cross_entropy(predicted, targets, reduction="sum")
        states = None
        if reads_states:
            is_pair = self.model.kind == "encoder_decoder"
            states = (output.decoder_hidden_states if is_pair else output.hidden_states)[-1]
        mask = copy_to_device(is_token, self.model.device)
        return _Batch(rows, mask, output.logits, states), total
