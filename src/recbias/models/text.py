"""Classifiers of texts whose classes are items: an encoder, its tokens, and lists for users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.context import report_progress, warn
from recbias.core.dataset import AnyArray, Codes, FloatArray, Ids, Queries, Reviews, TrainingData
from recbias.core.errors import MissingEvidence, NothingLeft
from recbias.core.evidence import MASK, RankedLists
from recbias.core.plugins import Device, State, select_settings
from recbias.kernels.devices import OnDevice, Precision, choose_precision, resolve_device
from recbias.kernels.topk import top_k
from recbias.language.local_models import (
    batch_by_tokens,
    check_model,
    count_positions,
    load_encoder,
    load_tokenizer,
)
from recbias.language.model_files import Source, find_model, list_model_files
from recbias.models.gpu import Tensor, copy_to_array, copy_to_device, is_out_of_memory
from recbias.models.ranking import find_history_cells

Blocks: TypeAlias = Iterator[tuple[AnyArray, AnyArray]]
"""Positions of texts, and their log-probabilities of the classes, ``float32 (b, c)``; every text
is in exactly one block."""

MAX_BLOCK_SCORES = 2**22  # Number of log-probabilities per block: 16 MB

_Classifier: TypeAlias = Callable[[Ids], Blocks]  # Computes the log-probabilities of texts


@dataclass(frozen=True, eq=False)
class ItemClasses:
    """The items that are the classes of a classifier.

    Args:
        items: The item of each class, ascending, ``int32[c]``.
        n_items: Number of items of the dataset.
    """

    items: Codes
    n_items: int

    @classmethod
    def from_data(cls, data: TrainingData) -> ItemClasses:
        """Return the items with training interactions."""
        return cls(np.flatnonzero(data.candidates).astype(np.int32), data.train.n_items)

    @classmethod
    def from_state(cls, state: State) -> ItemClasses:
        """Return the classes of a stored state."""
        return cls(state["class_items"], int(state["class_n_items"]))

    def state(self) -> State:
        """Return the arrays."""
        return {"class_items": self.items, "class_n_items": np.array(self.n_items)}

    def __len__(self) -> int:
        return self.items.size

    def encode(self, items: Codes) -> AnyArray:
        """Return the class of each item, ``int64``; every item must have a class."""
        return np.searchsorted(self.items, items)

    def decode(self, classes: AnyArray) -> Codes:
        """Return the item of each class; -1 for the padding -1."""
        return np.where(classes < 0, np.int32(-1), self.items[classes])

    def recommend(self, classify: _Classifier, texts: Ids, k: int) -> RankedLists:
        """Return the ``k`` most probable items for each text, ties by item code."""
        items = np.full((len(texts), k), -1, dtype=np.int32)
        scores = np.full((len(texts), k), np.nan, dtype=np.float32)
        for rows, log_probabilities in classify(texts):
            classes, scores[rows] = top_k(log_probabilities, k)
            items[rows] = self.decode(classes)
        return RankedLists(items, scores)

    def rank_all(self, classify: _Classifier, texts: Ids) -> Codes:
        """Return all items for each text, the most probable first, ``int32[n, c]``."""
        rankings = np.empty((len(texts), len(self)), dtype=np.int32)
        for rows, log_probabilities in classify(texts):
            rankings[rows] = self.items[np.argsort(-log_probabilities, axis=1, kind="stable")]
        return rankings


def accuracy(blocks: Blocks, classes: AnyArray) -> float:
    """Return the share of texts whose most probable class is the true one; NaN without texts."""
    hits = [scores.argmax(axis=1) == classes[rows] for rows, scores in blocks]
    return float(np.concatenate(hits).mean()) if hits else float("nan")


def require_reviews(data: TrainingData) -> Reviews:
    """Return the training reviews.

    Raises:
        MissingEvidence: The dataset has no reviews.
        NothingLeft: No review belongs to a training interaction.
    """
    if data.reviews is None:
        remedy = "choose a dataset with review texts, and keep them"
        raise MissingEvidence("the dataset has no reviews", remedy=remedy)
    if not len(data.reviews):
        problem = "no review belongs to a training interaction"
        raise NothingLeft(problem, remedy="choose other filters")
    return data.reviews


def prepare_reviews(data: TrainingData) -> Reviews:
    """Return the training reviews; a warning reports the number of candidates without any."""
    reviews = require_reviews(data)
    n_without = int(data.candidates.sum()) - np.unique(reviews.items).size
    if n_without:
        warn(f"{n_without:,} items with training interactions have no training review")
    return reviews


def select_validation_reviews(data: TrainingData, classes: ItemClasses) -> Reviews | None:
    """Return the validation reviews of items that are classes; None if there are none."""
    reviews = data.validation_reviews
    if reviews is None:
        return None
    rows = np.flatnonzero(np.isin(reviews.items, classes.items))
    selected = Reviews(reviews.users[rows], reviews.items[rows], reviews.texts[rows])
    return selected if rows.size else None


CHUNK = 16384  # Number of texts per call of the tokenizer, which uses all cores
_WIDTHS = 8  # Batches are padded to a multiple of this number of tokens

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of texts, concatenated.

    Args:
        values: The tokens of all texts, ``int32[t]``.
        starts: The position of the first token of each text, ``int64[n + 1]``.
    """

    values: AnyArray
    starts: _Integers

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def lengths(self) -> _Integers:
        """The number of tokens of each text, ``int64[n]``."""
        return np.diff(self.starts)

    def pad_rows(self, rows: AnyArray, pad: int) -> tuple[_Integers, AnyArray]:
        """Return padded tokens of a batch, ``int64[b, w]``, and attention mask, ``bool[b, w]``.

        The width is a multiple of ``_WIDTHS``: kernels are cached per width, and accelerators are
        fastest at such widths. A text without tokens, such as an empty one under a tokenizer
        without special tokens, attends to one padding token: attention to nothing is NaN.
        """
        lengths = self.lengths[rows]
        offsets = np.arange(-(-np.maximum(lengths, 1).max(initial=0) // _WIDTHS) * _WIDTHS)
        mask = offsets < lengths[:, None]
        tokens = np.full(mask.shape, pad, dtype=np.int64)
        tokens[mask] = self.values[(self.starts[rows][:, None] + offsets)[mask]]
        mask[np.flatnonzero(lengths == 0), :1] = True
        return tokens, mask


def tokenize_texts(texts: Ids, tokenizer: Any, max_length: int) -> Tokens:
    """Return the tokens of texts.

    Texts of more than ``max_length`` tokens, with the special tokens, are truncated; an empty one
    has only the special tokens. The tokenizer is a fast one of ``transformers``.
    """
    values, lengths = [np.empty(0, dtype=np.int32)], [0]
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK].tolist()
        tokens = tokenizer(chunk, truncation=True, max_length=max_length)["input_ids"]
        lengths += map(len, tokens)
        values.append(np.fromiter(chain.from_iterable(tokens), dtype=np.int32))
        report_progress("texts tokenized", start + len(chunk), len(texts))
    return Tokens(np.concatenate(values), np.cumsum(lengths))


Pooling: TypeAlias = Literal["first", "mean"]
"""The state of a text: the last layer's state of the first token, or the mean over all tokens."""

_COMMIT = "commit"  # The name of the encoder's commit among the stored weights
_MAX_BATCH_TOKENS = 2**14  # Number of tokens per batch outside training
_DEVICE_BATCH_TOKENS = 2**17  # The same on a GPU, which is done with a smaller batch too soon


@dataclass(frozen=True, kw_only=True)
class EncodingSettings:
    """How texts are encoded."""

    pooling: Pooling  # How the state of a text is computed from the last layer
    dropout: float = 0.0  # Dropout rate of the state in training
    encoder_dropout: bool = True  # Whether the encoder's own dropout layers are active in training
    # Maximum number of tokens per text, including special tokens; limited by the encoder's
    # maximum
    max_length: int = 512
    precision: Precision = "auto"  # The type of matrix products


@dataclass(frozen=True, eq=False)
class TextClassifier:
    """The network ``softmax(W dropout(h) + b)``, where ``h`` is the encoder's state of a text."""

    module: Any  # A ``torch`` module with an ``encoder`` and a linear ``head``
    tokenizer: Any  # The encoder's tokenizer
    encoding: EncodingSettings  # How texts are encoded
    commit: str | None = None  # The commit of the encoder on the hub; None for a local encoder

    @classmethod
    def create(
        cls,
        source: Source,
        n_classes: int,
        encoding: EncodingSettings,
        weights: Mapping[str, AnyArray] | None = None,
    ) -> TextClassifier:
        """Return a network with pretrained weights and a random head, or with stored weights.

        The head is initialized from the global random state of torch, which the caller sets.
        """
        import torch

        encoder = load_encoder(source, weights=weights is None)
        head = torch.nn.Linear(encoder.config.hidden_size, n_classes)
        module = torch.nn.ModuleDict({"encoder": encoder, "head": head})
        if weights is not None:
            arrays = {name: array for name, array in weights.items() if name != _COMMIT}
            module.load_state_dict({name: torch.from_numpy(arrays[name]) for name in arrays})
        else:
            torch.nn.init.normal_(head.weight, std=0.02)
            torch.nn.init.zeros_(head.bias)
        tokenizer = load_tokenizer(source)
        max_length = min(encoding.max_length, find_max_length(encoder, tokenizer))
        return cls(
            module.eval(), tokenizer, replace(encoding, max_length=max_length), source.commit
        )

    @property
    def device(self) -> Any:
        """The device of the weights."""
        return self.module["head"].weight.device

    def weights(self) -> Mapping[str, AnyArray]:
        """Return the weights by name, and the commit of the encoder."""
        tensors = self.module.state_dict()
        weights = {name: copy_to_array(tensor) for name, tensor in tensors.items()}
        return {**weights, **_encode_commit(self.commit)}

    def autocast(self) -> Any:
        """Return the context in which matrix products have the precision of the settings."""
        import torch

        kind = self.device.type
        is_reduced = choose_precision(self.encoding.precision, kind) == "bfloat16"
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=is_reduced)

    def replace_masks(self, texts: Ids) -> Ids:
        """Replace ``[MASK]`` by the tokenizer's mask token, or remove it if there is none."""
        mask_token = self.tokenizer.mask_token or ""
        if mask_token == MASK:
            return texts
        return np.array([text.replace(MASK, mask_token) for text in texts], dtype=object)

    def tokenize(self, texts: Ids) -> Tokens:
        """Return the tokens of texts."""
        return tokenize_texts(self.replace_masks(texts), self.tokenizer, self.encoding.max_length)

    def states(self, tokens: Tokens, rows: AnyArray) -> Tensor:
        """Return ``h`` of a batch of texts, ``(b, hidden)``."""
        encoder = self.module["encoder"]
        is_training = self.module.training and self.encoding.encoder_dropout
        if encoder.training != is_training:  # the call visits all layers
            encoder.train(is_training)
        ids, mask_array = tokens.pad_rows(rows, self.tokenizer.pad_token_id or 0)
        inputs, mask = (copy_to_device(array, self.device) for array in (ids, mask_array))
        states = encoder(input_ids=inputs, attention_mask=mask.long()).last_hidden_state
        if self.encoding.pooling == "first":
            return states[:, 0]
        weights = mask.unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1)

    def logits(self, tokens: Tokens, rows: AnyArray) -> Tensor:
        """Return the logits of a batch of texts, ``float32 (b, n_classes)``."""
        import torch
        from torch.nn.functional import dropout

        states = self.states(tokens, rows).float()
        inputs = dropout(states, self.encoding.dropout, training=self.module.training)
        with torch.autocast(self.device.type, enabled=False):  # rounded logits would often tie
            return self.module["head"](inputs)

    def classify(self, texts: Ids, *, label: str = "texts classified") -> Blocks:
        """Yield the log-probabilities of the classes, in batches of texts of similar length."""
        tokens = self.tokenize(texts)
        return self.infer(tokens, lambda rows: self.logits(tokens, rows).log_softmax(1), label)

    def encode(self, texts: Ids) -> Blocks:
        """Yield positions of texts and their states, ``float32 (b, hidden)``."""
        tokens = self.tokenize(texts)
        return self.infer(tokens, lambda rows: self.states(tokens, rows).float(), "texts encoded")

    def infer(self, tokens: Tokens, compute: Callable[[AnyArray], Tensor], label: str) -> Blocks:
        """Yield positions of texts and what is computed of them, in batches of similar length."""
        import torch

        n_completed, is_training = 0, self.module.training
        self.module.eval()
        is_cpu = self.device.type == "cpu"
        size = _MAX_BATCH_TOKENS if is_cpu else _DEVICE_BATCH_TOKENS
        batches = [*batch_by_tokens(tokens.lengths, size)][::-1]
        while batches:
            rows = batches.pop()
            try:
                with torch.inference_mode(), self.autocast():
                    block = compute(rows).cpu().numpy()
            except RuntimeError as error:
                if is_cpu or rows.size == 1 or not is_out_of_memory(error):
                    raise
                batches += np.array_split(rows, 2)[::-1]
                continue
            n_completed += rows.size
            report_progress(label, n_completed, len(tokens))
            yield rows, block
        self.module.train(is_training)


def _encode_commit(commit: str | None) -> Mapping[str, AnyArray]:
    """Return a commit as an array of a state; nothing for None.

    >>> _decode_commit(_encode_commit("0123abc")), _decode_commit({})
    ('0123abc', None)
    """
    return {} if commit is None else {_COMMIT: np.frombuffer(commit.encode(), dtype=np.uint8)}


def _decode_commit(weights: Mapping[str, AnyArray] | None) -> str | None:
    """Return the commit of the encoder in stored weights, None if there is none."""
    return (
        None if weights is None or _COMMIT not in weights else weights[_COMMIT].tobytes().decode()
    )


def find_max_length(encoder: Any, tokenizer: Any) -> int:
    """Return the maximum number of tokens of an encoder, a multiple of ``_WIDTHS``."""
    max_length = count_positions(encoder, tokenizer)
    return max(max_length - max_length % _WIDTHS, 1)


def recommend_by_reviews(
    classes: ItemClasses, classify: _Classifier, queries: Queries, k: int, data: TrainingData
) -> RankedLists:
    """Return the ``k`` items of the highest mean log-probability for the users' reviews.

        score(u, i) = (1 / |R_u|) Σ_{r in R_u} ln p(i | r)

    ``R_u`` are the training reviews of user u. Training items of the user are excluded. Queries
    without a training review have empty lists, and a warning reports their number. Users are
    processed in blocks of at most ``MAX_BLOCK_SCORES`` scores, and each review is classified once.

    Args:
        classes: The items that are classes.
        classify: Computes the log-probabilities of texts.
        queries: The users.
        k: List length.
        data: The training data, with reviews.
    """
    reviews = require_reviews(data)
    users, positions = np.unique(queries.users, return_inverse=True)
    rows = np.flatnonzero(np.isin(users, reviews.users))
    items = np.full((users.size, k), -1, dtype=np.int32)
    scores = np.full((users.size, k), np.nan, dtype=np.float32)
    size = max(1, MAX_BLOCK_SCORES // len(classes))
    for start in range(0, rows.size, size):
        block = rows[start : start + size]
        means = _average_by_user(classify, reviews, users[block], len(classes))
        history_rows, history_items = find_history_cells(data.train.binary, users[block])
        means[history_rows, classes.encode(history_items)] = -np.inf
        columns, scores[block] = top_k(means, k)
        items[block] = classes.decode(columns)
    n_empty = int((~np.isin(positions, rows)).sum())
    if n_empty:
        warn(f"{n_empty:,} of {len(queries):,} queries have no training review: empty lists")
    return RankedLists(items[positions], scores[positions])


def _average_by_user(
    classify: _Classifier, reviews: Reviews, users: Codes, n_classes: int
) -> FloatArray:
    """Return the mean log-probabilities over the reviews of each user, ``float64 (b, c)``.

    ``users`` are ascending, and each has a review.
    """
    from scipy.sparse import csr_array

    selected = np.flatnonzero(np.isin(reviews.users, users))
    owners = np.searchsorted(users, reviews.users[selected])
    sums = np.zeros((users.size, n_classes))
    for rows, log_probabilities in classify(reviews.texts[selected]):
        present, owner_rows = np.unique(owners[rows], return_inverse=True)
        cells = (np.ones(rows.size), (owner_rows, np.arange(rows.size)))
        membership = csr_array(cells, shape=(present.size, rows.size))
        sums[present] += membership @ log_probabilities.astype(np.float64)
    return np.asarray(sums / np.bincount(owners)[:, None])


class EncoderModel(OnDevice):
    """Base class of models with a pretrained encoder."""

    needs: ClassVar[frozenset[str]] = frozenset({"train", "reviews"})

    encoder: str
    revision: str | None
    precision: Precision

    def choose_device(self, default: Device) -> Mapping[str, str]:
        """Return the device of this machine, and the type of matrix products on it."""
        chosen = super().choose_device(default)
        return {**chosen, "precision": choose_precision(self.precision, chosen["device"])}

    @property
    def encoding(self) -> EncodingSettings:
        """How texts are encoded: the settings of the model with these names."""
        return select_settings(self, EncodingSettings)

    def model_files(self) -> Sequence[Path]:
        """Return the files of a local encoder; none for one of the hub."""
        return list_model_files(self.encoder)

    def check_data(self, data: TrainingData) -> None:
        """Refuse an encoder that is not available."""
        del data
        check_model(self.encoder, self.revision)

    def create_network(
        self, n_classes: int, weights: Mapping[str, AnyArray] | None = None, *, seed: int = 0
    ) -> TextClassifier:
        """Return the network on its device: pretrained with a new head, or with stored weights.

        ``seed`` is that of the initial weights of the head.
        """
        import torch

        source = find_model(self.encoder, _decode_commit(weights) or self.revision)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = TextClassifier.create(source, n_classes, self.encoding, weights)
        network.module.to(resolve_device(self.device))
        return network


@dataclass(frozen=True, eq=False)
class FittedTextModel:
    """A fitted classifier of texts."""

    settings: Any  # The model
    classes: ItemClasses  # The items that are classes

    def classify(self, texts: Ids) -> Blocks:
        """Yield the log-probabilities of the classes."""
        raise NotImplementedError

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the most probable items for the text of each query, or for a user's reviews."""
        if queries.texts is not None:
            return self.classes.recommend(self.classify, queries.texts, k)
        return recommend_by_reviews(self.classes, self.classify, queries, k, data)

    def named(self, texts: Ids, data: TrainingData) -> Codes:
        """Return all items for each text, the most probable first."""
        return self.classes.rank_all(self.classify, texts)


@dataclass(frozen=True, eq=False)
class FittedEncoderModel(FittedTextModel):
    """A fitted classifier of texts with an encoder.

    Args:
        settings: The model.
        classes: The items that are classes.
        weights: The weights of the encoder, and of the classifier as ``head``.
    """

    settings: EncoderModel
    weights: Mapping[str, AnyArray]

    def state(self) -> State:
        """Return the weights and the classes."""
        return {**self.weights, **self.classes.state()}

    @cached_property
    def network(self) -> TextClassifier:
        """The network with these weights."""
        return self.settings.create_network(len(self.classes), self.weights)

    def classify(self, texts: Ids) -> Blocks:
        """Yield the log-probabilities of the network."""
        return self.network.classify(texts)


def split_state(state: State) -> tuple[ItemClasses, Mapping[str, AnyArray]]:
    """Return the classes and the weights of a stored state."""
    weights = {name: array for name, array in state.items() if not name.startswith("class_")}
    return ItemClasses.from_state(state), weights
