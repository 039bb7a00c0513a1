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
from recbias.core.errors import BrokenContract, WrongType
from recbias.core.registry import Registry
from recbias.runner.storage.store import report_unwritable

OBJECT_SECTIONS = {"models": "models", "metrics": "metrics", "tests": "tests"}
"""The keys of a spec whose entries may be objects, with their registries."""


def replace_python_inputs(
    spec: Mapping[str, Any], folder: Path, registries: Mapping[str, Registry]
) -> dict[str, Any]:
    """Return a spec in which every data frame and array is the path of a file that holds it.

    A data frame is written to Parquet without its index, an array of one dimension (identifiers)
    to text, any other array to ``.npy``. The name of a file is the digest of its content, so the
    same data has the same stored results. An object among the models, metrics and tests is the
    entry of its class, with its fields as settings.

    Raises:
        WrongType: A data frame cannot be written to Parquet.
        BrokenContract: The class of an object is not in a file.
        Unwritable: The folder cannot be written.
    """
    sections = {
        key: [_describe_object(entry, registries[kind]) for entry in spec[key]]
        for key, kind in OBJECT_SECTIONS.items()
        if isinstance(spec.get(key), list | tuple)
    }
    return {key: _replace(value, folder, key) for key, value in {**spec, **sections}.items()}


def _describe_object(entry: Any, registry: Registry) -> Any:
    """Return the entry of an object: the name of its class, and its settings."""
    if not is_dataclass(entry) or isinstance(entry, type):
        return entry
    cls = type(entry)
    target = f"{cls.__module__}:{cls.__qualname__}"
    names = [name for name, listed in registry.table.items() if listed == target]
    settings = {key: value for key, value in as_plain(entry).items() if value is not None}
    return {"name": names[0] if names else _name_file(cls)} | settings


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
    if isinstance(value, list | tuple):
        return [_replace(item, folder, f"{location}[{at}]") for at, item in enumerate(value)]
    if isinstance(value, pd.DataFrame):
        return _write(_render_frame(value, location), ".parquet", folder)
    if isinstance(value, pd.Series) or (isinstance(value, np.ndarray) and value.ndim == 1):
        lines = "".join(f"{item}\n" for item in value.tolist())
        return _write(lines.encode(), ".txt", folder)
    if isinstance(value, np.ndarray):
        return _write(
            _render(lambda file: np.save(file, value, allow_pickle=False)), ".npy", folder
        )
    return value


def _render_frame(frame: pd.DataFrame, location: str) -> bytes:
    import pyarrow as pa

    try:
        return _render(lambda file: frame.to_parquet(file, index=False))
    except (pa.ArrowException, TypeError, ValueError) as error:
        message = f"the data frame cannot be written to Parquet: {error}"
        remedy = "give each column one type, and text as its name"
        raise WrongType(message, where=location, remedy=remedy) from error


def _render(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _write(content: bytes, suffix: str, folder: Path) -> str:
    path = folder.absolute() / f"{hashlib.sha256(content).hexdigest()[:32]}{suffix}"
    if not path.exists():
        with report_unwritable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix(f"{suffix}.part")
            temporary.write_bytes(content)
            temporary.replace(path)
    return path.as_posix()
