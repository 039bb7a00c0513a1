"""Files of arrays (``.npz``) and tables (Parquet), without pickle: stored data never runs code.

Stored answers of models: lists, vectors, sentence scores, responses and predictions.
Stored datasets, labels, splits and queries.
Stored measurements of metrics.
The storage format of each kind of stage: arrays as ``.npz``, tables as Parquet, else JSON.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import (
    AnyArray,
    Attributes,
    Dataset,
    Ids,
    Interactions,
    Reviews,
    Sentences,
    Split,
    Vocabulary,
)
from recbias.core.evidence import (
    Embeddings,
    Policy,
    Predictions,
    RankedLists,
    Responses,
    SentenceScores,
)
from recbias.core.files import digest_file
from recbias.core.measures import Contrast, Measurement, UnitScores
from recbias.core.queries import Queries
from recbias.runner.stages import ItemLabels, ModelOutputs
from recbias.runner.tuning import load_search, load_trials, save_search, save_trials
from recbias.statistics.prediction_powered import Audit

ARRAYS = "arrays.npz"
"""The file of named arrays in a folder."""


def _save_arrays(arrays: Mapping[str, AnyArray], folder: Path, name: str = ARRAYS) -> None:
    """Write named arrays to one file in a folder."""
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez(folder / name, allow_pickle=False, **plain)


def _load_arrays(folder: Path, name: str = ARRAYS) -> dict[str, AnyArray]:
    """Read the named arrays of a folder."""
    # numpy leaves a file that it opens itself open if its archive is damaged
    with (folder / name).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


_MIN_THREADED_SIZE = 2**20
"""The size in bytes from which on columns are read by threads, for which pyarrow waits for ever
where the limit of the process (``ulimit -v``) lets none start."""


def _save_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a table to Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)


def _load_frame(path: Path) -> pd.DataFrame:
    """Read a table from Parquet; missing text is None."""
    from pyarrow import parquet

    is_large = path.stat().st_size > _MIN_THREADED_SIZE
    try:
        with parquet.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
            frame: pd.DataFrame = file.read(use_threads=is_large).to_pandas(use_threads=is_large)
    except OSError as error:
        if error.errno is None:  # not of the system: pyarrow means a damaged page
            raise ValueError(str(error)) from error
        raise
    return frame


def _save_ids(ids: Ids, path: Path) -> None:
    """Write identifiers or texts to Parquet."""
    _save_frame(pd.DataFrame({"id": ids}), path)


def _load_ids(path: Path) -> Ids:
    """Read identifiers or texts from Parquet."""
    return _load_frame(path)["id"].to_numpy(dtype=object)


def _load_vocabulary(path: Path) -> Vocabulary:
    """Read the identifiers of units; results that have the same ones share them in memory."""
    digest = digest_file(path)
    if digest not in _recent:
        if len(_recent) == _MOST_RECENT:
            del _recent[next(iter(_recent))]
        _recent[digest] = Vocabulary(_load_ids(path))
    return _recent[digest]


_MOST_RECENT = 4
"""Vocabularies that stay in memory: users and items of the dataset, queries, and one more."""

_recent: dict[str, Vocabulary] = {}


_CURVE, _POLICY = "learning_curve.parquet", "policy.npz"


def _save_answers(answers: ModelOutputs, folder: Path) -> None:
    """Write the answers of a model to a folder."""
    arrays: dict[str, AnyArray | None] = {}
    if answers.lists is not None:
        arrays |= {"items": answers.lists.items, "scores": answers.lists.scores}
        _save_ids(answers.lists.outside, folder / "outside.parquet")
    if answers.embeddings is not None:
        arrays |= {"user_vectors": answers.embeddings.users}
        arrays |= {"item_vectors": answers.embeddings.items}
    if answers.predictions is not None:
        ranked = answers.predictions.ranked
        smallest_type = np.min_scalar_type(int(ranked.max(initial=0)))
        arrays |= {"named": ranked.astype(smallest_type), "named_of": answers.predictions.items}
        _save_ids(answers.predictions.ids, folder / "named_ids.parquet")
    if answers.learning_curve is not None:
        _save_frame(answers.learning_curve, folder / _CURVE)
    _save_arrays({key: array for key, array in arrays.items() if array is not None}, folder)
    if (policy := answers.policy) is not None:
        _save_arrays(vars(policy), folder, _POLICY)
    for name, table in (("sentences", answers.sentence_scores), ("responses", answers.responses)):
        if table is not None:
            columns = {key: column for key, column in vars(table).items() if key != "labels"}
            _save_frame(pd.DataFrame(columns), folder / f"{name}.parquet")
            _save_frame(table.labels, folder / f"{name}_labels.parquet")


def _load_answers(folder: Path) -> ModelOutputs:
    """Read the answers of a model."""
    arrays = _load_arrays(folder)
    lists = predictions = None
    if "items" in arrays:
        outside = _load_ids(folder / "outside.parquet")
        lists = RankedLists(arrays["items"], arrays["scores"], outside)
    if "named" in arrays:
        ids, ranked = _load_ids(folder / "named_ids.parquet"), arrays["named"].astype(np.int32)
        predictions = Predictions(ids, arrays["named_of"], ranked)
    users, items = arrays.get("user_vectors"), arrays.get("item_vectors")
    return ModelOutputs(
        lists,
        None if users is None and items is None else Embeddings(users, items),
        _load_columns(SentenceScores, folder, "sentences"),
        _load_columns(Responses, folder, "responses"),
        predictions,
        _load_frame(folder / _CURVE) if (folder / _CURVE).exists() else None,
        _load_policy(folder) if (folder / _POLICY).exists() else None,
    )


def _load_policy(folder: Path) -> Policy:
    arrays = _load_arrays(folder, _POLICY)
    variant, is_shown = str(arrays.pop("variant")), bool(arrays.pop("is_shown"))
    return Policy(**arrays, variant=variant, is_shown=is_shown)


def _load_columns(cls: Any, folder: Path, name: str) -> Any:
    path = folder / f"{name}.parquet"
    if not path.exists():
        return None
    frame = _load_frame(path)
    columns = {str(key): frame[key].to_numpy() for key in frame.columns}
    labels = _load_frame(folder / f"{name}_labels.parquet").reindex(range(len(frame)))
    return cls(**columns, labels=labels)


_COLUMNS = ("users", "items", "values", "times")
"""The arrays of interactions."""


def save_dataset(dataset: Dataset, folder: Path) -> None:
    """Write a dataset to a folder."""
    arrays: dict[str, AnyArray] = {}
    if dataset.reviews is not None:
        arrays |= {"review_users": dataset.reviews.users, "review_items": dataset.reviews.items}
        _save_ids(dataset.reviews.texts, folder / "reviews.parquet")
    _save_parts({"all": dataset.interactions}, folder, arrays)
    for name, table in (("users", dataset.users), ("items", dataset.items)):
        if table is not None:
            _save_frame(table.frame, folder / f"{name}.parquet")
    if dataset.sentences is not None:
        _save_frame(dataset.sentences.frame, folder / "sentences.parquet")
    (folder / "counts.json").write_text(json.dumps(dataset.counts), encoding="utf-8")


def load_dataset(folder: Path) -> Dataset:
    """Read a dataset."""
    arrays = _load_arrays(folder)
    rows = _load_parts(arrays, folder)["all"]
    reviews = None
    if "review_users" in arrays:
        texts = _load_ids(folder / "reviews.parquet")
        reviews = Reviews(arrays["review_users"], arrays["review_items"], texts)
    sentences = folder / "sentences.parquet"
    return Dataset(
        interactions=rows,
        users=_load_attributes(folder / "users.parquet", rows.user_ids, "user"),
        items=_load_attributes(folder / "items.parquet", rows.item_ids, "item"),
        reviews=reviews,
        sentences=Sentences(_load_frame(sentences)) if sentences.exists() else None,
        counts=json.loads((folder / "counts.json").read_text(encoding="utf-8")),
    )


def _save_labels(labels: ItemLabels, folder: Path) -> None:
    """Write the labels of a detector to a folder."""
    _save_frame(labels.frame, folder / "labels.parquet")
    if labels.replies is not None:
        _save_frame(labels.replies, folder / "replies.parquet")


def _load_labels(folder: Path) -> ItemLabels:
    """Read the labels of a detector."""
    replies = folder / "replies.parquet"
    return ItemLabels(
        _load_frame(folder / "labels.parquet"), _load_frame(replies) if replies.exists() else None
    )


def _save_split(split: Split, folder: Path) -> None:
    """Write a split to a folder."""
    parts = {"train": split.train, "validation": split.validation, "test": split.test}
    _save_parts({name: rows for name, rows in parts.items() if rows is not None}, folder, {})


def _load_split(folder: Path) -> Split:
    """Read a split."""
    parts = _load_parts(_load_arrays(folder), folder)
    return Split(parts["train"], parts.get("test"), parts.get("validation"))


def save_queries(queries: Queries, folder: Path) -> None:
    """Write queries to a folder."""
    _save_ids(queries.ids.ids, folder / "ids.parquet")
    _save_frame(queries.labels.frame, folder / "labels.parquet")
    _save_arrays({"users": queries.users}, folder)
    if queries.texts is not None:
        _save_ids(queries.texts, folder / "texts.parquet")
    (folder / "unit.json").write_text(json.dumps(queries.unit), encoding="utf-8")


def load_queries(folder: Path) -> Queries:
    """Read queries."""
    ids = _load_vocabulary(folder / "ids.parquet")
    texts = folder / "texts.parquet"
    return Queries(
        ids=ids,
        labels=_read_attributes(folder / "labels.parquet", ids, "query"),
        users=_load_arrays(folder)["users"],
        texts=_load_ids(texts) if texts.exists() else None,
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
    _save_arrays({**columns, **arrays}, folder)
    for vocabulary in ("user_ids", "item_ids"):
        ids: Vocabulary = getattr(next(iter(parts.values())), vocabulary)
        _save_ids(ids.ids, folder / f"{vocabulary}.parquet")


def _load_parts(arrays: Mapping[str, Any], folder: Path) -> dict[str, Interactions]:
    ids = [_load_vocabulary(folder / f"{kind}_ids.parquet") for kind in ("user", "item")]
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
    return Attributes(ids, _load_frame(path).reindex(range(len(ids))), kind)


_SCALARS = ("value", "std", "n", "undefined", "group", "target", "ci_low", "ci_high", "df")
_FLAGS = ("log_scale", "own_interval")
_ARRAYS = ("replicates", "counts")


def _save_measurements(measurements: Sequence[Measurement], folder: Path) -> None:
    """Write the measurements of a metric to a folder; shared arrays of ids are written once."""
    records: list[dict[str, Any]] = []
    arrays: dict[str, AnyArray | None] = {}
    unit_ids: dict[int, Ids] = {}
    for index, measurement in enumerate(measurements):
        record = {name: _to_json(vars(measurement)[name]) for name in (*_SCALARS, *_FLAGS)}
        if (units := measurement.units) is not None:
            unit_ids.setdefault(id(units.ids), units.ids)
            number = list(unit_ids).index(id(units.ids))
            record |= {"unit": units.unit, "ids": number, "share": units.share}
            record["positive"] = units.positive
            arrays |= {f"values_{index}": units.values, f"totals_{index}": units.totals}
            if units.errors is not None:
                arrays |= {
                    f"audit_{index}_{name}": array
                    for name, array in units.errors.to_arrays().items()
                }
        arrays |= {f"{name}_{index}": vars(measurement)[name] for name in _ARRAYS}
        record["axes"], record["parts"] = list(measurement.axes), list(measurement.parts)
        if measurement.parts:
            arrays[f"parts_{index}"] = np.stack([*measurement.parts.values()])
        axes = enumerate(measurement.axes.values())
        arrays |= {f"axis_{index}_{number}": axis for number, axis in axes}
        record["contrasts"] = [
            {name: _to_json(value) for name, value in vars(contrast).items()}
            for contrast in measurement.contrasts
        ]
        records.append(record)
    for number, ids in enumerate(unit_ids.values()):
        _save_ids(ids, folder / f"units_{number}.parquet")
    _save_arrays({name: array for name, array in arrays.items() if array is not None}, folder)
    (folder / "measurements.json").write_text(json.dumps(records), encoding="utf-8")


def _load_measurements(folder: Path) -> tuple[Measurement, ...]:
    """Read the measurements of a metric."""
    records = json.loads((folder / "measurements.json").read_text(encoding="utf-8"))
    arrays = _load_arrays(folder)
    n_ids = 1 + max((record["ids"] for record in records if "ids" in record), default=-1)
    paths = [folder / f"units_{number}.parquet" for number in range(n_ids)]
    unit_ids = [_load_vocabulary(path).ids for path in paths]
    measurements = []
    for index, record in enumerate(records):
        units = None
        if (values := arrays.get(f"values_{index}")) is not None:
            start = f"audit_{index}_"
            audit = {
                name.removeprefix(start): array
                for name, array in arrays.items()
                if name.startswith(start)
            }
            errors = Audit.from_arrays(audit) if audit else None
            unit = record["unit"], unit_ids[record["ids"]], values, record["share"]
            totals = arrays.get(f"totals_{index}")
            units = UnitScores(*unit, totals, errors, bool(record.get("positive")))
        contrasts = tuple(
            Contrast(**_read_numbers(contrast)) for contrast in record.get("contrasts", ())
        )
        numbers = _read_numbers({name: record[name] for name in (*_SCALARS, *_FLAGS)})
        shared: dict[str, Any] = {name: arrays.get(f"{name}_{index}") for name in _ARRAYS}
        names = enumerate(record.get("axes", ()))
        axes = {name: arrays[f"axis_{index}_{number}"] for number, name in names}
        parts = dict(zip(record.get("parts", ()), arrays.get(f"parts_{index}", ()), strict=True))
        sides: dict[str, Any] = {"contrasts": contrasts, "axes": axes, "parts": parts}
        measurements.append(Measurement(**numbers, **shared, **sides, units=units))
    return tuple(measurements)


def _to_json(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and math.isnan(plain) else plain


def _read_numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None else value for name, value in record.items()}


def _copy_files(source: Path, folder: Path) -> None:
    """Copy the files of a folder; Parquet, which nobody edits, becomes a link to the same file."""
    for path in source.rglob("*"):
        target = folder / path.relative_to(source)
        if path.is_dir():
            target.mkdir(exist_ok=True)
            continue
        if path.suffix == ".parquet":
            with suppress(OSError):  # another disk, or one without links
                target.hardlink_to(path)
                continue
        shutil.copyfile(path, target)


FORMATS: Mapping[str, tuple[Callable[[Any, Path], None], Callable[[Path], Any]]] = {
    "dataset": (save_dataset, load_dataset),
    "split": (_save_split, _load_split),
    "queries": (save_queries, load_queries),
    "label": (_save_labels, _load_labels),
    "trial": (
        lambda trial, folder: save_trials([trial], folder),
        lambda folder: load_trials(folder)[0],
    ),
    "baseline": (_save_answers, _load_answers),
    "search": (save_search, load_search),
    "fit": (_save_arrays, _load_arrays),
    "answer": (_save_answers, _load_answers),
    "measure": (_save_measurements, _load_measurements),
    "files": (_copy_files, Path),
}
"""How results of each kind of stage are written to a folder, and read again."""
