"""Stored datasets, labels, splits and queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.sentences import Sentences
from recbias.core.dataset.split import Split
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.queries.queries import Queries
from recbias.runner.stages.labels import ItemLabels
from recbias.runner.storage.array_files import (
    load_arrays,
    load_frame,
    load_ids,
    save_arrays,
    save_frame,
    save_ids,
)

_COLUMNS = ("users", "items", "values", "times")
"""The arrays of interactions."""


def save_dataset(dataset: Dataset, folder: Path) -> None:
    """Write a dataset to a folder."""
    arrays: dict[str, AnyArray] = {}
    if dataset.reviews is not None:
        arrays |= {"review_users": dataset.reviews.users, "review_items": dataset.reviews.items}
        save_ids(dataset.reviews.texts, folder / "reviews.parquet")
    _save_parts({"all": dataset.interactions}, folder, arrays)
    for name, table in (("users", dataset.users), ("items", dataset.items)):
        if table is not None:
            save_frame(table.frame, folder / f"{name}.parquet")
    if dataset.sentences is not None:
        save_frame(dataset.sentences.frame, folder / "sentences.parquet")
    (folder / "counts.json").write_text(json.dumps(dataset.counts), encoding="utf-8")


def load_dataset(folder: Path) -> Dataset:
    """Read a dataset."""
    arrays = load_arrays(folder)
    rows = _load_parts(arrays, folder)["all"]
    reviews = None
    if "review_users" in arrays:
        texts = load_ids(folder / "reviews.parquet")
        reviews = Reviews(arrays["review_users"], arrays["review_items"], texts)
    sentences = folder / "sentences.parquet"
    return Dataset(
        interactions=rows,
        users=_load_attributes(folder / "users.parquet", rows.user_ids, "user"),
        items=_load_attributes(folder / "items.parquet", rows.item_ids, "item"),
        reviews=reviews,
        sentences=Sentences(load_frame(sentences)) if sentences.exists() else None,
        counts=json.loads((folder / "counts.json").read_text(encoding="utf-8")),
    )


def save_labels(labels: ItemLabels, folder: Path) -> None:
    """Write the labels of a detector to a folder."""
    save_frame(labels.frame, folder / "labels.parquet")
    if labels.replies is not None:
        save_frame(labels.replies, folder / "replies.parquet")


def load_labels(folder: Path) -> ItemLabels:
    """Read the labels of a detector."""
    replies = folder / "replies.parquet"
    return ItemLabels(
        load_frame(folder / "labels.parquet"), load_frame(replies) if replies.exists() else None
    )


def save_split(split: Split, folder: Path) -> None:
    """Write a split to a folder."""
    parts = {"train": split.train, "validation": split.validation, "test": split.test}
    _save_parts({name: rows for name, rows in parts.items() if rows is not None}, folder, {})


def load_split(folder: Path) -> Split:
    """Read a split."""
    parts = _load_parts(load_arrays(folder), folder)
    return Split(parts["train"], parts.get("test"), parts.get("validation"))


def save_queries(queries: Queries, folder: Path) -> None:
    """Write queries to a folder."""
    save_ids(queries.ids.ids, folder / "ids.parquet")
    save_frame(queries.labels.frame, folder / "labels.parquet")
    save_arrays({"users": queries.users}, folder)
    if queries.texts is not None:
        save_ids(queries.texts, folder / "texts.parquet")
    (folder / "unit.json").write_text(json.dumps(queries.unit), encoding="utf-8")


def load_queries(folder: Path) -> Queries:
    """Read queries."""
    ids = Vocabulary(load_ids(folder / "ids.parquet"))
    texts = folder / "texts.parquet"
    return Queries(
        ids=ids,
        labels=_read_attributes(folder / "labels.parquet", ids, "query"),
        users=load_arrays(folder)["users"],
        texts=load_ids(texts) if texts.exists() else None,
        unit=json.loads((folder / "unit.json").read_text(encoding="utf-8")),
    )


def _save_parts(
    parts: Mapping[str, Interactions], folder: Path, arrays: Mapping[str, AnyArray]
) -> None:
    """Write the rows of interactions by name, their vocabulary, and other arrays."""
    columns = {
        f"{name}_{column}": getattr(rows, column)
        for name, rows in parts.items()
        for column in _COLUMNS
        if getattr(rows, column) is not None
    }
    save_arrays({**columns, **arrays}, folder)
    for vocabulary in ("user_ids", "item_ids"):
        ids: Vocabulary = getattr(next(iter(parts.values())), vocabulary)
        save_ids(ids.ids, folder / f"{vocabulary}.parquet")


def _load_parts(arrays: Mapping[str, Any], folder: Path) -> dict[str, Interactions]:
    ids = [Vocabulary(load_ids(folder / f"{kind}_ids.parquet")) for kind in ("user", "item")]
    parts: dict[str, Interactions] = {}
    for name in ("all", "train", "validation", "test"):
        if f"{name}_users" in arrays:
            columns: list[Any] = [arrays.get(f"{name}_{column}") for column in _COLUMNS]
            parts[name] = Interactions(*columns, *ids)
    return parts


def _load_attributes(path: Path, ids: Vocabulary, kind: str) -> Attributes | None:
    return _read_attributes(path, ids, kind) if path.exists() else None


def _read_attributes(path: Path, ids: Vocabulary, kind: str) -> Attributes:
    """Return a stored table; one without columns still has a row for each identifier."""
    return Attributes(ids, load_frame(path).reindex(range(len(ids))), kind)
