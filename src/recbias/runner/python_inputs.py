"""Data frames, arrays and objects in a spec from Python, as files and entries."""

from __future__ import annotations

import hashlib
import inspect
import io
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.config.settings import as_plain
from recbias.core.dataset import AnyArray
from recbias.core.errors import BrokenContract, WrongType
from recbias.core.registry import Registry
from recbias.runner.store import report_unwritable

_OBJECT_SECTIONS = {"models": "models", "metrics": "metrics", "tests": "tests"}
"""The keys of a spec whose entries may be objects, with their registries."""

_IDENTIFIERS = frozenset({"user_ids", "item_ids"})
"""The settings that name a file of identifiers, one on each line."""

_LISTS = frozenset({"seeds", "tune", "sweep"})
"""The keys of a spec in which an array is a list."""


def replace_python_inputs(
    spec: Mapping[str, Any], folder: Path, registries: Mapping[str, Registry]
) -> dict[str, Any]:
    """Return a spec in which every data frame and array is the path of a file that holds it.

    A data frame is written to Parquet without its index, identifiers to text, and other arrays to
    ``.npy``. Frames are those that narwhals knows (pandas, polars, also lazy, Arrow, DuckDB) and
    what exports Arrow streams. The name of a file has the digest of its content, so the same data
    has the same stored results. An object among the models, metrics and tests, or as the ``name``
    of an entry, is the entry of its class, with its fields as settings.

    Raises:
        WrongType: A data frame or an array cannot be written, or an entry is a class or a frame.
        BrokenContract: The class of an object is not in a file.
        Unwritable: The folder cannot be written.
    """
    sections = {
        key: [
            _describe_entry(entry, registries[kind], f"{key}[{at}]")
            for at, entry in enumerate(spec[key])
        ]
        for key, kind in _OBJECT_SECTIONS.items()
        if isinstance(spec.get(key), list | tuple)
    }
    return {key: _replace(value, folder, str(key)) for key, value in {**spec, **sections}.items()}


def _describe_entry(entry: Any, registry: Registry, location: str) -> Any:
    """Return an entry with the name of the class of an object, and its settings."""
    if isinstance(entry, Mapping) and not isinstance(entry.get("name"), str | None):
        settings = {key: value for key, value in entry.items() if key != "name"}
        return _describe_object(entry["name"], registry, location) | settings
    return (
        entry if isinstance(entry, str | Mapping) else _describe_object(entry, registry, location)
    )


def _describe_object(plugin: Any, registry: Registry, location: str) -> dict[str, Any]:
    """Return the entry of an object: the name of its class, and its settings."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    if cls is plugin or not is_dataclass(plugin):
        subject = f"the class {cls.__name__}" if cls is plugin else f"a {cls.__name__}"
        example = (
            '{"name": "lists", "path": frame}' if _is_frame(plugin) else f"{cls.__name__}(...)"
        )
        message = f"must be a name, a mapping or an object of a {registry.kind}, found {subject}"
        raise WrongType(message, where=location, remedy=f"write it like {example}")
    settings = {key: value for key, value in as_plain(plugin).items() if value is not None}
    return {"name": registry.find_name(cls) or _name_file(cls)} | settings


def _name_file(cls: type) -> str:
    try:
        path = Path(inspect.getsourcefile(cls) or "")
    except (OSError, TypeError):
        path = Path()
    if path.suffix != ".py" or cls.__module__ == "__main__":  # a script would run again
        message = f"the class {cls.__name__} is not in a module that can be imported"
        remedy = "write it to a file of its own, and import it or name it as ./file.py:Class"
        raise BrokenContract(message, remedy=remedy)
    return f"{path.absolute().as_posix()}:{cls.__qualname__}"


def _replace(value: Any, folder: Path, location: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _replace(item, folder, f"{location}.{key}") for key, item in value.items()}
    key = location.rpartition(".")[2]
    if isinstance(value, list | tuple) and key in _IDENTIFIERS:
        value = pd.Series(value, dtype=object)
    if isinstance(value, list | tuple):
        return [_replace(item, folder, f"{location}[{at}]") for at, item in enumerate(value)]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if _is_frame(value):
        return _write(_render_frame(value, location), key, ".parquet", folder)
    if _is_array(value):
        return _replace_array(np.asarray(value), folder, location)
    return value


def _is_array(value: Any) -> bool:
    """Return whether a value is a column or an array, of one library or another."""
    if isinstance(value, pd.Index | np.ndarray):
        return True
    import narwhals as nw

    return isinstance(nw.from_native(value, series_only=True, pass_through=True), nw.Series)


def _is_frame(value: Any) -> bool:
    """Return whether a value is a data frame, of one library or another, or exports a stream."""
    import narwhals as nw

    frame = nw.from_native(value, pass_through=True)
    is_stream = hasattr(value, "__arrow_c_stream__") and not hasattr(value, "__array__")
    return isinstance(frame, nw.DataFrame | nw.LazyFrame) or is_stream


def _to_arrow(value: Any) -> Any:
    """Return a data frame as an Arrow table."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(value, pd.DataFrame):
        return pa.Table.from_pandas(value, preserve_index=False)
    frame = nw.from_native(value, pass_through=True)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return frame.to_arrow() if isinstance(frame, nw.DataFrame) else pa.table(value)


def _replace_array(array: AnyArray, folder: Path, location: str) -> Any:
    """Return the file of an array; in a list of settings, its values."""
    key = location.rpartition(".")[2]
    if array.ndim == 1 and (key in _IDENTIFIERS or array.dtype.kind in "OSU"):
        return _write(_render_identifiers(array, location), key, ".txt", folder)
    if _LISTS.intersection(location.replace("[", ".").split(".")):
        return array.tolist()
    if array.dtype.kind not in "fiub":
        message = f"an array of type {array.dtype} cannot be written"
        raise WrongType(message, where=location, remedy="give an array of numbers")
    return _write(_render(lambda file: np.save(file, array)), key, ".npy", folder)


def _render_identifiers(array: AnyArray, location: str) -> bytes:
    """Return identifiers as the lines of a text file."""
    for at, item in enumerate(array.tolist()):
        is_valid = isinstance(item, int) or (isinstance(item, str) and item.strip() == item != "")
        if not is_valid or "\n" in str(item) or "\r" in str(item):
            message = f"the identifier at position {at} (from 0) is {item!r}"
            remedy = "give text on one line or whole numbers; vectors have two dimensions"
            raise WrongType(message, where=location, remedy=remedy)
    return "".join(f"{item}\n" for item in array.tolist()).encode()


def _render_frame(frame: Any, location: str) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = _to_arrow(frame)
        return _render(lambda file: parquet.write_table(table, file))
    except (pa.ArrowException, TypeError, ValueError) as error:
        message = f"the data frame cannot be written to Parquet: {error}"
        remedy = "give each column one type, and text as its name"
        raise WrongType(message, where=location, remedy=remedy) from error


def _render(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _write(content: bytes, key: str, suffix: str, folder: Path) -> str:
    """Write a file and return its path; a message that names it has the key of the spec."""
    stem = "".join(letter if letter.isalnum() else "_" for letter in key)
    digest = hashlib.sha256(content).hexdigest()[:32]
    path = folder.absolute() / f"{stem}-{digest}{suffix}"
    if not path.exists():
        with report_unwritable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix(f"{suffix}.part")
            temporary.write_bytes(content)
            temporary.replace(path)
    return path.as_posix()
