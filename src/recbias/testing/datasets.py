"""The contract of a dataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.protocols import DatasetSource
from recbias.core.stage_context import collect_warnings
from recbias.testing.declared import check_dataclass, refuse

PARTS = frozenset({"train", "users", "items", "reviews", "sentences"})
"""The parts that a dataset may have."""


@collect_warnings()
def check_dataset(source: DatasetSource, *, data: Path | None = None) -> None:
    """Check that a dataset meets the contract of its kind.

    It is a documented frozen dataclass; its files exist; it has the parts that ``gives`` declares
    and no other; codes lie within the vocabularies and attributes are aligned to them; with the
    same generator it loads the same interactions.

    Args:
        source: The dataset with its settings.
        data: The folder of datasets, by default the current one.

    Raises:
        BrokenContract: It violates a rule.
        MissingFile: It lacks a file.

    Example:
        check_dataset(MyDataset(path=Path("purchases.csv")))
    """
    name = type(source).__name__
    folder = data or Path()
    check_dataclass(source, ("gives", "files", "load"), name)
    parts = source.gives()
    refuse(set(parts) - PARTS, name, f"gives other parts than {sorted(PARTS)}")
    for path in source.files(folder):
        refuse(not path.is_file(), name, f"lists the file {path}, which does not exist")
    dataset = source.load(folder, np.random.default_rng(0))
    _check_parts(dataset, parts, name)
    _check_interactions(dataset.interactions, name)
    _check_attributes(dataset.users, dataset.user_ids, name, "users")
    _check_attributes(dataset.items, dataset.item_ids, name, "items")
    _check_reviews(dataset.reviews, dataset, name)
    reloaded = source.load(folder, np.random.default_rng(0)).interactions
    same = _are_equal(dataset.interactions, reloaded)
    refuse(not same, name, "loads other rows the second time")


def _check_parts(dataset: Dataset, parts: frozenset[str], name: str) -> None:
    present = {
        "train": len(dataset.interactions) > 0,
        "users": dataset.users is not None,
        "items": dataset.items is not None,
        "reviews": dataset.reviews is not None,
        "sentences": dataset.sentences is not None,
    }
    for part, is_present in present.items():
        refuse(part in parts and not is_present, name, f"gives {part} but does not load them")
        refuse(part not in parts and is_present, name, f"loads {part} but does not give them")


def _check_interactions(rows: Interactions, name: str) -> None:
    _check_codes(rows.users, rows.n_users, name, "users")
    _check_codes(rows.items, rows.n_items, name, "items")
    times = rows.values if rows.times is None else rows.times
    sizes = {array.size for array in (rows.users, rows.items, rows.values, times)}
    refuse(len(sizes) > 1, name, "has interaction columns of different lengths")
    refuse(rows.values.dtype != np.float32, name, f"has values of type {rows.values.dtype}")
    for ids, kind in ((rows.user_ids, "user"), (rows.item_ids, "item")):
        names = ids.ids.tolist()
        refuse(len(set(names)) < len(names), name, f"has a {kind} identifier twice")
        is_text = all(isinstance(identifier, str) for identifier in names)
        refuse(not is_text, name, f"has a {kind} identifier that is not text")


def _check_codes(codes: AnyArray, n: int, name: str, kind: str) -> None:
    refuse(codes.dtype != np.int32, name, f"has codes of {kind} of type {codes.dtype}, not int32")
    outside = codes.size and (codes.min() < 0 or codes.max() >= n)
    refuse(outside, name, f"has codes of {kind} outside 0 to {n - 1}")


def _check_attributes(table: Attributes | None, ids: Vocabulary, name: str, kind: str) -> None:
    if table is not None:
        aligned = table.ids.digest == ids.digest and len(table.frame) == len(ids)
        refuse(not aligned, name, f"has attributes of {kind} that are not aligned to the {kind}")


def _check_reviews(reviews: Reviews | None, dataset: Dataset, name: str) -> None:
    if reviews is not None:
        _check_codes(reviews.users, len(dataset.user_ids), name, "reviewers")
        _check_codes(reviews.items, len(dataset.item_ids), name, "reviewed items")
        sizes = {reviews.users.size, reviews.items.size, reviews.texts.size}
        refuse(len(sizes) > 1, name, "has review columns of different lengths")


def _are_equal(rows: Interactions, reloaded: Interactions) -> bool:
    names = ("users", "items", "values")
    same = all(np.array_equal(getattr(rows, name), getattr(reloaded, name)) for name in names)
    ids, reloaded_ids = ((part.user_ids, part.item_ids) for part in (rows, reloaded))
    return same and [part.digest for part in ids] == [part.digest for part in reloaded_ids]
