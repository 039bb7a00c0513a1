"""The stage in which a detector labels the items of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, cast

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.labelled_texts import evaluates_texts, label_texts
from recbias.core.models.planned_requests import AsksAboutItems
from recbias.core.outputs.evidence import REMEDIES
from recbias.core.seeds import make_generator
from recbias.core.stage_context import get_context
from recbias.runner.stages.returned_values import require_labels


@dataclass(frozen=True, eq=False)
class ItemLabels:
    """The labels of a detector.

    Args:
        frame: One row per item and one column per kind of label.
        replies: One row per reply of a language model that the labels follow from; None without.
    """

    frame: pd.DataFrame
    replies: pd.DataFrame | None = None


@dataclass(frozen=True)
class LabelItems:
    """Label every item of a dataset with a detector: the columns are ``label.kind``."""

    detector: Any
    label: str
    seed: int
    values_digest: str = ""  # of what could change the values of a text, besides the text

    def __call__(self, dataset: Dataset) -> ItemLabels:
        """Return the labels of every item."""
        if not isinstance(self.detector, AsksAboutItems):
            return ItemLabels(self._name_columns(dataset, self._choose_method()))
        reply_tables: list[pd.DataFrame] = []

        @wraps(self.detector.label_with_replies)
        def label(items: Attributes, _: np.random.Generator) -> Mapping[str, FloatArray]:
            columns: Mapping[str, FloatArray]
            columns, replies = self.detector.label_with_replies(items)
            reply_tables.append(replies)
            return columns

        return ItemLabels(self._name_columns(dataset, label), *reply_tables)

    def _choose_method(self) -> Callable[..., Any]:
        """Return the method that labels items, by the stored values of their texts if it can."""
        open_values = get_context().open_values
        detector, method = self.detector, self.detector.label
        if not evaluates_texts(detector) or open_values is None:
            return cast("Callable[..., Any]", method)
        stored = open_values(self.values_digest)

        @wraps(method)
        def label(items: Attributes, _: np.random.Generator) -> Mapping[str, FloatArray]:
            return label_texts(detector, stored, items)

        return label

    def rehearse(self, dataset: Dataset) -> ItemLabels:
        """Return label 0 for every item in place of those that a language model would give.

        Raises:
            UserError: The items do not have what the detector reads.
        """

        def label(items: Attributes, _: np.random.Generator) -> Mapping[str, FloatArray]:
            self.detector.plan_label_requests(items)
            return {
                column: np.zeros(len(items.ids))
                for kind in self.detector.kinds
                for column in (kind, f"{kind}_score")
            }

        return ItemLabels(self._name_columns(dataset, label))

    def _name_columns(self, dataset: Dataset, label: Callable[..., Any]) -> pd.DataFrame:
        """Return one row per item and one column per kind of label."""
        if dataset.items is None:
            raise MissingEvidence("there is no items table to label", remedy=REMEDIES["items"])
        rng = make_generator(self.seed, "label", self.label)
        labels = require_labels(label, self.detector.kinds, dataset.items, rng)
        columns = {f"{self.label}.{kind}": values for kind, values in labels.items()}
        for name in columns:
            if name in dataset.items.names:
                message = f"the items table already has a column {name!r}"
                raise BrokenContract(message, remedy="give the labels another name")
        return pd.DataFrame(columns)


def add_labels(dataset: Dataset, labels: Sequence[ItemLabels]) -> Dataset:
    """Return the dataset with the labels of detectors as columns of its items."""
    if dataset.items is None or not labels:
        return dataset
    frame = dataset.items.frame.reset_index(drop=True)
    columns = [item_labels.frame for item_labels in labels]
    items = replace(dataset.items, frame=pd.concat([frame, *columns], axis=1))
    return replace(dataset, items=items)
