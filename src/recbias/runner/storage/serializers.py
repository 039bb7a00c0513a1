"""How each kind of result is stored: arrays as ``.npz``, tables as Parquet, the rest as JSON.

There is no pickle: a store that somebody else wrote is data, never code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.measurements.scores import Contrast, Measurement, UnitScores
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.predictions import Predictions
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.sentences import Responses, SentenceScores
from recbias.core.queries.queries import Queries
from recbias.runner.stages.model import Answers
from recbias.runner.tuning.search import load_found, save_found
from recbias.runner.tuning.trial import load_trials, save_trials


@dataclass(frozen=True)
class Format:
    """How one kind of result is written to a folder and read again."""

    save: Callable[[Any, Path], None]
    load: Callable[[Path], Any]


def save_arrays(arrays: Mapping[str, AnyArray], path: Path) -> None:
    """Write named arrays to one file."""
    np.savez(path, allow_pickle=False, **{name: np.asarray(each) for name, each in arrays.items()})


def load_arrays(path: Path) -> dict[str, AnyArray]:
    """Read the named arrays of one file."""
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def save_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a table to Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)


def load_frame(path: Path) -> pd.DataFrame:
    """Read a table from Parquet; missing text is None."""
    from pyarrow import parquet

    frame: pd.DataFrame = parquet.read_table(path, memory_map=False).to_pandas()
    return frame


def _save_ids(ids: Ids, path: Path) -> None:
    save_frame(pd.DataFrame({"id": ids}), path)


def _load_ids(path: Path) -> Ids:
    return load_frame(path)["id"].to_numpy(dtype=object)


def _rows(prefix: str, rows: Interactions) -> dict[str, AnyArray]:
    arrays: dict[str, AnyArray] = {
        f"{prefix}_users": rows.users,
        f"{prefix}_items": rows.items,
        f"{prefix}_values": rows.values,
    }
    if rows.times is not None:
        arrays[f"{prefix}_times"] = rows.times
    return arrays


def _rows_from(
    prefix: str, arrays: Mapping[str, AnyArray], users: Vocabulary, items: Vocabulary
) -> Interactions | None:
    if f"{prefix}_users" not in arrays:
        return None
    return Interactions(
        arrays[f"{prefix}_users"],
        arrays[f"{prefix}_items"],
        arrays[f"{prefix}_values"],
        arrays.get(f"{prefix}_times"),
        users,
        items,
    )


def _save_vocabularies(rows: Interactions, folder: Path) -> None:
    _save_ids(rows.user_ids.ids, folder / "user_ids.parquet")
    _save_ids(rows.item_ids.ids, folder / "item_ids.parquet")


def _load_vocabularies(folder: Path) -> tuple[Vocabulary, Vocabulary]:
    users = Vocabulary(_load_ids(folder / "user_ids.parquet"))
    return users, Vocabulary(_load_ids(folder / "item_ids.parquet"))


def _save_dataset(dataset: Dataset, folder: Path) -> None:
    _save_vocabularies(dataset.interactions, folder)
    arrays = _rows("all", dataset.interactions)
    if dataset.reviews is not None:
        arrays |= {"review_users": dataset.reviews.users, "review_items": dataset.reviews.items}
        _save_ids(dataset.reviews.texts, folder / "reviews.parquet")
    save_arrays(arrays, folder / "arrays.npz")
    for name, table in (("users", dataset.users), ("items", dataset.items)):
        if table is not None:
            save_frame(table.frame, folder / f"{name}.parquet")
    (folder / "counts.json").write_text(json.dumps(dataset.counts), encoding="utf-8")


def _load_dataset(folder: Path) -> Dataset:
    users, items = _load_vocabularies(folder)
    arrays = load_arrays(folder / "arrays.npz")
    rows = _rows_from("all", arrays, users, items)
    reviews = None
    if "review_users" in arrays:
        texts = _load_ids(folder / "reviews.parquet")
        reviews = Reviews(arrays["review_users"], arrays["review_items"], texts)
    return Dataset(
        interactions=rows,  # type: ignore[arg-type]
        users=_load_table(folder / "users.parquet", users, "user"),
        items=_load_table(folder / "items.parquet", items, "item"),
        reviews=reviews,
        counts=json.loads((folder / "counts.json").read_text(encoding="utf-8")),
    )


def _load_table(path: Path, ids: Vocabulary, kind: str) -> Attributes | None:
    return _table(path, ids, kind) if path.exists() else None


def _table(path: Path, ids: Vocabulary, kind: str) -> Attributes:
    """Return a stored table; one without columns has a row for each identifier all the same."""
    return Attributes(ids, load_frame(path).reindex(range(len(ids))), kind)


def _save_split(split: Split, folder: Path) -> None:
    _save_vocabularies(split.train, folder)
    arrays = _rows("train", split.train)
    for name, part in (("validation", split.validation), ("test", split.test)):
        if part is not None:
            arrays |= _rows(name, part)
    save_arrays(arrays, folder / "arrays.npz")


def _load_split(folder: Path) -> Split:
    users, items = _load_vocabularies(folder)
    arrays = load_arrays(folder / "arrays.npz")
    train = _rows_from("train", arrays, users, items)
    test = _rows_from("test", arrays, users, items)
    return Split(train, test, _rows_from("validation", arrays, users, items))  # type: ignore[arg-type]


def _save_queries(queries: Queries, folder: Path) -> None:
    _save_ids(queries.ids.ids, folder / "ids.parquet")
    save_frame(queries.labels.frame, folder / "labels.parquet")
    save_arrays({"users": queries.users}, folder / "arrays.npz")
    if queries.texts is not None:
        _save_ids(queries.texts, folder / "texts.parquet")
    (folder / "unit.json").write_text(json.dumps(queries.unit), encoding="utf-8")


def _load_queries(folder: Path) -> Queries:
    ids = Vocabulary(_load_ids(folder / "ids.parquet"))
    texts = folder / "texts.parquet"
    return Queries(
        ids=ids,
        labels=_table(folder / "labels.parquet", ids, "query"),
        users=load_arrays(folder / "arrays.npz")["users"],
        texts=_load_ids(texts) if texts.exists() else None,
        unit=json.loads((folder / "unit.json").read_text(encoding="utf-8")),
    )


def _save_answers(answers: Answers, folder: Path) -> None:
    arrays: dict[str, AnyArray] = {}
    if answers.lists is not None:
        arrays |= {"items": answers.lists.items, "scores": answers.lists.scores}
        _save_ids(answers.lists.outside, folder / "outside.parquet")
    if answers.embeddings is not None:
        vectors = {"user": answers.embeddings.users, "item": answers.embeddings.items}
        arrays |= {f"{of}_vectors": each for of, each in vectors.items() if each is not None}
    if answers.predictions is not None:
        ranked = answers.predictions.ranked
        small = np.min_scalar_type(int(ranked.max(initial=0)))
        arrays |= {"named": ranked.astype(small), "named_of": answers.predictions.items}
        _save_ids(answers.predictions.ids, folder / "named_ids.parquet")
    save_arrays(arrays, folder / "arrays.npz")
    for name, table in (("sentences", answers.sentence_scores), ("responses", answers.responses)):
        if table is not None:
            _save_columns(table, folder, name)


def _load_answers(folder: Path) -> Answers:
    arrays = load_arrays(folder / "arrays.npz")
    lists = None
    if "items" in arrays:
        outside = _load_ids(folder / "outside.parquet")
        lists = RankedLists(arrays["items"], arrays["scores"], outside)
    users, items = arrays.get("user_vectors"), arrays.get("item_vectors")
    has = users is not None or items is not None
    return Answers(
        lists,
        Embeddings(users, items) if has else None,
        _load_columns(SentenceScores, folder, "sentences"),
        _load_columns(Responses, folder, "responses"),
        _load_predictions(arrays, folder),
    )


def _load_predictions(arrays: Mapping[str, AnyArray], folder: Path) -> Predictions | None:
    if "named" not in arrays:
        return None
    ranked = arrays["named"].astype(np.int32)
    return Predictions(_load_ids(folder / "named_ids.parquet"), arrays["named_of"], ranked)


def _save_columns(table: SentenceScores | Responses, folder: Path, name: str) -> None:
    columns = {key: each for key, each in vars(table).items() if key != "labels"}
    save_frame(pd.DataFrame(columns), folder / f"{name}.parquet")
    save_frame(table.labels, folder / f"{name}_labels.parquet")


def _load_columns(cls: Any, folder: Path, name: str) -> Any:
    path = folder / f"{name}.parquet"
    if not path.exists():
        return None
    frame = load_frame(path)
    columns = {str(key): frame[key].to_numpy() for key in frame.columns}
    labels = load_frame(folder / f"{name}_labels.parquet").reindex(range(len(frame)))
    return cls(**columns, labels=labels)


_SCALARS = ("value", "std", "n", "undefined", "group", "target", "ci_low", "ci_high", "df")


def _save_measurements(measurements: Sequence[Measurement], folder: Path) -> None:
    records: list[dict[str, Any]] = []
    arrays: dict[str, AnyArray] = {}
    tables: list[Ids] = []
    for place, each in enumerate(measurements):
        record = {name: _json_number(vars(each)[name]) for name in _SCALARS}
        if each.units is not None:
            arrays[f"values_{place}"] = each.units.values
            record |= {"unit": each.units.unit, "ids": _place(tables, each.units.ids)}
            record["share"] = each.units.share
        if each.replicates is not None:
            arrays[f"replicates_{place}"] = each.replicates
        if each.counts is not None:
            arrays[f"counts_{place}"] = each.counts
        if each.contrasts:
            record["contrasts"] = [_contrast_record(one) for one in each.contrasts]
        records.append(record)
    for place, ids in enumerate(tables):
        _save_ids(ids, folder / f"units_{place}.parquet")
    save_arrays(arrays, folder / "arrays.npz")
    (folder / "measurements.json").write_text(json.dumps(records), encoding="utf-8")


def _place(tables: list[Ids], ids: Ids) -> int:
    for place, each in enumerate(tables):
        if each is ids:
            return place
    tables.append(ids)
    return len(tables) - 1


def _load_measurements(folder: Path) -> tuple[Measurement, ...]:
    records = json.loads((folder / "measurements.json").read_text(encoding="utf-8"))
    arrays = load_arrays(folder / "arrays.npz")
    n_tables = 1 + max((each["ids"] for each in records if "ids" in each), default=-1)
    tables = [_load_ids(folder / f"units_{place}.parquet") for place in range(n_tables)]
    found = []
    for place, record in enumerate(records):
        units = None
        if "unit" in record:
            values = arrays[f"values_{place}"]
            units = UnitScores(record["unit"], tables[record["ids"]], values, record["share"])
        scalars = {name: _number(record[name]) for name in _SCALARS}
        found.append(
            Measurement(
                **scalars,
                units=units,
                replicates=arrays.get(f"replicates_{place}"),
                counts=arrays.get(f"counts_{place}"),
                contrasts=tuple(_contrast(one) for one in record.get("contrasts", [])),
            )
        )
    return tuple(found)


def _contrast_record(contrast: Contrast) -> dict[str, Any]:
    return {name: _json_number(each) for name, each in vars(contrast).items()}


def _contrast(record: Mapping[str, Any]) -> Contrast:
    return Contrast(**{name: _number(each) for name, each in record.items()})


def _json_number(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and math.isnan(plain) else plain


def _number(value: Any) -> Any:
    return math.nan if value is None else value


def _save_state(state: Mapping[str, AnyArray], folder: Path) -> None:
    save_arrays(state, folder / "arrays.npz")


FORMATS: Mapping[str, Format] = {
    "dataset": Format(_save_dataset, _load_dataset),
    "split": Format(_save_split, _load_split),
    "queries": Format(_save_queries, _load_queries),
    "label": Format(
        lambda frame, folder: save_frame(frame, folder / "labels.parquet"),
        lambda folder: load_frame(folder / "labels.parquet"),
    ),
    "trial": Format(
        lambda trial, folder: save_trials([trial], folder),
        lambda folder: load_trials(folder)[0],
    ),
    "search": Format(save_found, load_found),
    "fit": Format(_save_state, lambda folder: load_arrays(folder / "arrays.npz")),
    "answer": Format(_save_answers, _load_answers),
    "measure": Format(_save_measurements, _load_measurements),
    "compare": Format(
        lambda frame, folder: save_frame(frame, folder / "frame.parquet"),
        lambda folder: load_frame(folder / "frame.parquet"),
    ),
}
"""The format of each kind of stage."""
