"""Base classes of the models that classify texts by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.language.backends import check_model
from recbias.language.model_folders import find_model, list_model_files
from recbias.models.text.text_classifier import EncodingSettings, TextClassifier, decode_commit
from recbias.models.text.text_ranking import Blocks, ItemClasses
from recbias.models.text.user_reviews import recommend_by_reviews
from recbias.numerics.devices import OnDevice, Precision, choose_precision, resolve_device

Settings = TypeVar("Settings")


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

        source = find_model(self.encoder, decode_commit(weights) or self.revision)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = TextClassifier.create(source, n_classes, self.encoding, weights)
        network.module.to(resolve_device(self.device))
        return network


def select_settings(model: Any, kind: type[Settings], **others: Any) -> Settings:
    """Return a dataclass of the settings of a model that have the names of its fields."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: vars(model)[name] for name in names & vars(model).keys()}, **others)


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
