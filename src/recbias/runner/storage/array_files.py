"""Files of arrays (``.npz``) and tables (Parquet), without pickle: stored data never runs code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Ids

ARRAYS = "arrays.npz"
"""The file of named arrays in a folder."""


def save_arrays(arrays: Mapping[str, AnyArray], folder: Path) -> None:
    """Write named arrays to one file in a folder."""
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez(folder / ARRAYS, allow_pickle=False, **plain)


def load_arrays(folder: Path) -> dict[str, AnyArray]:
    """Read the named arrays of a folder."""
    # numpy leaves a file that it opens itself open if its archive is damaged
    with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


MIN_THREADED_SIZE = 2**20
"""The size in bytes from which on columns are read by threads, for which pyarrow waits for ever
where the limit of the process (``ulimit -v``) lets none start."""


def save_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a table to Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)


def load_frame(path: Path) -> pd.DataFrame:
    """Read a table from Parquet; missing text is None.

    Raises:
        ValueError: It is damaged.
    """
    from pyarrow import parquet

    is_large = path.stat().st_size > MIN_THREADED_SIZE
    try:
        with parquet.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
            frame: pd.DataFrame = file.read(use_threads=is_large).to_pandas(use_threads=is_large)
    except OSError as error:
        if error.errno is None:  # not of the system: pyarrow means a damaged page
            raise ValueError(str(error)) from error
        raise
    return frame


def save_ids(ids: Ids, path: Path) -> None:
    """Write identifiers or texts to Parquet."""
    save_frame(pd.DataFrame({"id": ids}), path)


def load_ids(path: Path) -> Ids:
    """Read identifiers or texts from Parquet."""
    return load_frame(path)["id"].to_numpy(dtype=object)
