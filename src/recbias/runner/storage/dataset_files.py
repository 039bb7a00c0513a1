"""Stored datasets, splits and queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.queries.queries import Queries
from recbias.runner.storage.array_files import (
    load_arrays,
    load_frame,
    load_ids,
    save_arrays,
    save_frame,
    save_ids,
)


def save_dataset(dataset: Dataset, folder: Path) -> None:
    """Write a dataset to a folder."""
    _save_vocabularies(dataset.interactions, folder)
    arrays = _to_arrays("all", dataset.interactions)
    if dataset.reviews is not None:
        arrays |= {"review_users": dataset.reviews.users, "review_items": dataset.reviews.items}
        save_ids(dataset.reviews.texts, folder / "reviews.parquet")
    save_arrays(arrays, folder / "arrays.npz")
    for name, table in (("users", dataset.users), ("items", dataset.items)):
        if table is not None:
            save_frame(table.frame, folder / f"{name}.parquet")
    (folder / "counts.json").write_text(json.dumps(dataset.counts), encoding="utf-8")


def load_dataset(folder: Path) -> Dataset:
    """Read a dataset."""
    users, items = _load_vocabularies(folder)
    arrays = load_arrays(folder / "arrays.npz")
    reviews = None
    if "review_users" in arrays:
        texts = load_ids(folder / "reviews.parquet")
        reviews = Reviews(arrays["review_users"], arrays["review_items"], texts)
    return Dataset(
        interactions=_from_arrays("all", arrays, users, items),
        users=_load_attributes(folder / "users.parquet", users, "user"),
        items=_load_attributes(folder / "items.parquet", items, "item"),
        reviews=reviews,
        counts=json.loads((folder / "counts.json").read_text(encoding="utf-8")),
    )


def save_split(split: Split, folder: Path) -> None:
    """Write a split to a folder."""
    _save_vocabularies(split.train, folder)
    arrays = _to_arrays("train", split.train)
    for name, rows in (("validation", split.validation), ("test", split.test)):
        if rows is not None:
            arrays |= _to_arrays(name, rows)
    save_arrays(arrays, folder / "arrays.npz")


def load_split(folder: Path) -> Split:
    """Read a split."""
    users, items = _load_vocabularies(folder)
    arrays = load_arrays(folder / "arrays.npz")
    parts = {
        name: _from_arrays(name, arrays, users, items)
        for name in ("train", "test", "validation")
        if f"{name}_users" in arrays
    }
    return Split(parts["train"], parts.get("test"), parts.get("validation"))


def save_queries(queries: Queries, folder: Path) -> None:
    """Write queries to a folder."""
    save_ids(queries.ids.ids, folder / "ids.parquet")
    save_frame(queries.labels.frame, folder / "labels.parquet")
    save_arrays({"users": queries.users}, folder / "arrays.npz")
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
        users=load_arrays(folder / "arrays.npz")["users"],
        texts=load_ids(texts) if texts.exists() else None,
        unit=json.loads((folder / "unit.json").read_text(encoding="utf-8")),
    )


def _to_arrays(prefix: str, rows: Interactions) -> dict[str, AnyArray]:
    arrays: dict[str, AnyArray] = {
        f"{prefix}_users": rows.users,
        f"{prefix}_items": rows.items,
        f"{prefix}_values": rows.values,
    }
    if rows.times is not None:
        arrays[f"{prefix}_times"] = rows.times
    return arrays


def _from_arrays(
    prefix: str, arrays: Mapping[str, AnyArray], users: Vocabulary, items: Vocabulary
) -> Interactions:
    return Interactions(
        arrays[f"{prefix}_users"],
        arrays[f"{prefix}_items"],
        arrays[f"{prefix}_values"],
        arrays.get(f"{prefix}_times"),
        users,
        items,
    )


def _save_vocabularies(rows: Interactions, folder: Path) -> None:
    save_ids(rows.user_ids.ids, folder / "user_ids.parquet")
    save_ids(rows.item_ids.ids, folder / "item_ids.parquet")


def _load_vocabularies(folder: Path) -> tuple[Vocabulary, Vocabulary]:
    users = Vocabulary(load_ids(folder / "user_ids.parquet"))
    return users, Vocabulary(load_ids(folder / "item_ids.parquet"))


def _load_attributes(path: Path, ids: Vocabulary, kind: str) -> Attributes | None:
    return _read_attributes(path, ids, kind) if path.exists() else None


def _read_attributes(path: Path, ids: Vocabulary, kind: str) -> Attributes:
    """Return a stored table; one without columns still has a row for each identifier."""
    return Attributes(ids, load_frame(path).reindex(range(len(ids))), kind)
