"""Data frames, arrays and objects in a spec from Python, as files and entries."""

from __future__ import annotations

import hashlib
import inspect
import io
from collections.abc import Mapping
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

_OBJECT_SECTIONS = ("models", "metrics", "tests")
"""The keys of a spec whose entries may be objects: those of their registries."""

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
            _describe_entry(entry, registries[key], f"{key}[{at}]")
            for at, entry in enumerate(spec[key])
        ]
        for key in _OBJECT_SECTIONS
        if isinstance(spec.get(key), list | tuple)
    }
    return {key: _replace(value, folder, str(key)) for key, value in {**spec, **sections}.items()}


def _describe_entry(entry: Any, registry: Registry, location: str) -> Any:
    """Return an entry with the name of the class of an object, and its settings."""
    if isinstance(entry, Mapping) and not isinstance(entry.get("name"), str | None):
        settings = {key: value for key, value in entry.items() if key != "name"}
        return _describe_object(entry["name"], registry, location) | settings
    if isinstance(entry, str | Mapping):
        return entry
    return _describe_object(entry, registry, location)


def _describe_object(plugin: Any, registry: Registry, location: str) -> dict[str, Any]:
    """Return the entry of an object: the name of its class, and its settings."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    if cls is plugin or not is_dataclass(plugin):
        found, example = f"a {cls.__name__}", '{"name": "lists", "path": frame}'
        if cls is plugin:
            found, example = f"the class {cls.__name__}", f"{cls.__name__}(...)"
        message = f"must be a name, a mapping or an object of a {registry.kind}, found {found}"
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
    """Return a value with the paths of files in place of its frames and arrays."""
    if isinstance(value, Mapping):
        return {key: _replace(item, folder, f"{location}.{key}") for key, item in value.items()}
    key = location.rpartition(".")[2]
    if isinstance(value, list | tuple) and key not in _IDENTIFIERS:
        return [_replace(item, folder, f"{location}[{at}]") for at, item in enumerate(value)]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    is_list = isinstance(value, list | tuple)
    array = np.asarray(value, dtype=object) if is_list else _to_array(value)
    if array is None:
        content = _render_frame(value, location)
        return value if content is None else _write(content, key, ".parquet", folder)
    return _replace_array(array, folder, location)


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
    file = io.BytesIO()
    np.save(file, array)
    return _write(file.getvalue(), key, ".npy", folder)


def _to_array(value: Any) -> AnyArray | None:
    """Return a column or an array, of one library or another, as an array; None of another."""
    import narwhals as nw

    column = nw.from_native(value, series_only=True, pass_through=True)
    is_array = isinstance(value, pd.Index | np.ndarray) or isinstance(column, nw.Series)
    return np.asarray(value) if is_array else None


def _render_identifiers(array: AnyArray, location: str) -> bytes:
    """Return identifiers as the lines of a text file."""
    items = array.tolist()
    for at, item in enumerate(items):
        is_line = isinstance(item, str) and item.strip() == item and item.splitlines() == [item]
        if not (is_line or isinstance(item, int)):
            message = f"the identifier at position {at} (from 0) is {item!r}"
            remedy = "give text on one line or whole numbers; vectors have two dimensions"
            raise WrongType(message, where=location, remedy=remedy)
    return "".join(f"{item}\n" for item in items).encode()


def _render_frame(value: Any, location: str) -> bytes | None:
    """Return a data frame of one library or another as Parquet; None if it is none."""
    import narwhals as nw
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    is_stream = hasattr(value, "__arrow_c_stream__") and not hasattr(value, "__array__")
    try:
        frame = nw.from_native(value, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        if isinstance(value, pd.DataFrame):
            table = pa.Table.from_pandas(value, preserve_index=False)
        elif isinstance(frame, nw.DataFrame):
            table = frame.to_arrow()
        elif is_stream:
            table = pa.table(value)
        else:
            return None
        parquet.write_table(table, file)
    except (pa.ArrowException, TypeError, ValueError) as error:
        message = f"the data frame cannot be written to Parquet: {error}"
        remedy = "give each column one type, and a name of its own that is text"
        raise WrongType(message, where=location, remedy=remedy) from error
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
