"""Stored results: plain values as JSON, arrays as ``.npz``, texts and tables as Parquet.

Nothing is pickled, and only the classes of ``_CLASSES`` are made again: stored data never runs
code. In ``value.json`` a value that JSON lacks is ``{tag: content}``, where the tag is one of
``map``, ``tuple``, ``array``, ``texts``, ``ids``, ``vocabulary``, ``frame`` and ``csr``, or the
name of a class, whose content are its fields.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core import dataset, evidence, measures
from recbias.core.context import Failure
from recbias.core.dataset import AnyArray, Ids, Queries, Vocabulary
from recbias.core.files import digest_file
from recbias.runner.stages import ItemLabels, ModelOutputs
from recbias.runner.tuning import SearchResult, Trial
from recbias.statistics.prediction_powered import Audit

ARRAYS = "arrays.npz"
"""The file of named arrays in a folder."""

_TREE = "value.json"

_CLASSES: Mapping[str, type] = {
    cls.__name__: cls
    for cls in (
        *(dataset.Attributes, dataset.Dataset, dataset.Interactions, dataset.Reviews),
        *(dataset.Sentences, dataset.Split, Queries, ItemLabels, ModelOutputs),
        *(evidence.Embeddings, evidence.Policy, evidence.Predictions, evidence.RankedLists),
        *(evidence.Responses, evidence.SentenceScores, measures.Contrast, measures.Measurement),
        *(measures.UnitScores, Audit, Failure, SearchResult, Trial),
    )
}
"""The classes of results, by name."""


def save_value(value: Any, folder: Path) -> None:
    """Write the result of a stage to a folder.

    Raises:
        TypeError: It holds an object that cannot be stored.
    """
    writer = _Writer(folder)
    tree = writer.encode(value)
    if writer.arrays:
        np.savez(folder / ARRAYS, allow_pickle=False, **writer.arrays)
    (folder / _TREE).write_text(json.dumps(tree), encoding="utf-8")


def load_value(folder: Path) -> Any:
    """Read the result of a stage."""
    tree = json.loads((folder / _TREE).read_text(encoding="utf-8"))
    if not (folder / ARRAYS).exists():
        return _Reader(folder, {}).decode(tree)
    # numpy leaves a file that it opens itself open if its archive is damaged
    with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return _Reader(folder, arrays).decode(tree)


def copy_files(source: Path, folder: Path) -> None:
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


@dataclass
class _Writer:
    """Turns a value into JSON; its arrays are kept, its texts and tables written at once."""

    folder: Path
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    texts: dict[int, tuple[int, Ids]] = field(default_factory=dict)
    n_frames: int = 0

    def encode(self, value: Any, name: str = "") -> Any:
        """Return a value as JSON; texts that are the ``ids`` of something are shared when read."""
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        if isinstance(value, list):
            return [self.encode(item) for item in value]
        if isinstance(value, np.generic):
            return value.item()
        tag, content = self._encode_object(value, name)
        return {tag: content}

    def _encode_object(self, value: Any, name: str) -> tuple[str, Any]:
        """Return the tag and the content of a value that JSON lacks."""
        kind = type(value).__name__
        if isinstance(value, np.ndarray) and value.dtype != object:
            self.arrays[number := str(len(self.arrays))] = value
            content: tuple[str, Any] = "array", number
        elif isinstance(value, np.ndarray):
            content = "ids" if name == "ids" else "texts", self._add_texts(value)
        elif isinstance(value, Vocabulary):
            content = "vocabulary", self._add_texts(value.ids)
        elif isinstance(value, pd.DataFrame):
            self.n_frames += 1
            _save_frame(value, self.folder / f"frame_{self.n_frames}.parquet")
            content = "frame", [self.n_frames, len(value)]
        elif hasattr(value, "tocsr"):
            parts = value.data, value.indices, value.indptr, value.shape
            content = "csr", [self.encode(part) for part in parts]
        else:
            content = self._encode_parts(value, kind)
        return content

    def _encode_parts(self, value: Any, kind: str) -> tuple[str, Any]:
        if isinstance(value, tuple):
            return "tuple", [self.encode(item) for item in value]
        if isinstance(value, Mapping):
            return "map", {key: self.encode(item) for key, item in value.items()}
        if _CLASSES.get(kind) is not type(value):
            raise TypeError(f"a {kind} cannot be stored")
        return kind, {
            each.name: self.encode(vars(value)[each.name], each.name)
            for each in fields(_CLASSES[kind])
        }

    def _add_texts(self, texts: Ids) -> int:
        """Write texts, unless they are written; return their number."""
        if id(texts) not in self.texts:
            self.texts[id(texts)] = len(self.texts), texts
            frame = pd.DataFrame({"id": texts})
            _save_frame(frame, self.folder / f"texts_{len(self.texts) - 1}.parquet")
        return self.texts[id(texts)][0]


@dataclass(frozen=True)
class _Reader:
    folder: Path
    arrays: Mapping[str, AnyArray]

    def decode(self, node: Any) -> Any:
        """Return the value of a node of the JSON."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        ((tag, content),) = node.items()
        if tag in {"array", "texts", "ids", "vocabulary", "frame"}:
            return getattr(self, f"_read_{tag}")(content)
        if tag == "tuple":
            return tuple(self.decode(content))
        if tag == "csr":
            from scipy.sparse import csr_array

            *parts, shape = self.decode(content)
            return csr_array(tuple(parts), shape)
        values = {key: self.decode(item) for key, item in content.items()}
        return values if tag == "map" else _CLASSES[tag](**values)

    def _read_array(self, name: str) -> AnyArray:
        return self.arrays[name]

    def _read_texts(self, number: int) -> Ids:
        return _load_texts(self.folder / f"texts_{number}.parquet")

    def _read_ids(self, number: int) -> Ids:
        return self._read_vocabulary(number).ids

    def _read_vocabulary(self, number: int) -> Vocabulary:
        """Return the identifiers of units; results that have the same ones share them."""
        path = self.folder / f"texts_{number}.parquet"
        digest = digest_file(path)
        if digest not in _recent:
            if len(_recent) == _MOST_RECENT:
                del _recent[next(iter(_recent))]
            _recent[digest] = Vocabulary(_load_texts(path))
        return _recent[digest]

    def _read_frame(self, content: tuple[int, int]) -> pd.DataFrame:
        number, n_rows = content
        frame = _load_frame(self.folder / f"frame_{number}.parquet")
        return frame if frame.columns.size else frame.reindex(range(n_rows))


_MIN_THREADED_SIZE = 2**20
"""The size in bytes from which on columns are read by threads, for which pyarrow waits for ever
where the limit of the process (``ulimit -v``) lets none start."""


def _save_frame(frame: pd.DataFrame, path: Path) -> None:
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


def _load_texts(path: Path) -> Ids:
    return _load_frame(path)["id"].to_numpy(dtype=object)


_MOST_RECENT = 4
"""Vocabularies that stay in memory: users and items of the dataset, queries, and one more."""

_recent: dict[str, Vocabulary] = {}
