"""Timestamps in tables to seconds since 1970."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.arrays import BoolArray

SECONDS = r"^-?\d{1,15}(?:\.\d*)?$"


def to_seconds(column: Any) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """Return seconds since 1970, and a mask of the cells that are not a time.

    Numbers are seconds, with NaN for a missing time; text is ISO 8601, in UTC if it names no time
    zone. An Arrow column is one of the two throughout.

    >>> import pyarrow as pa
    >>> times, wrong = to_seconds(pa.chunked_array([["1970-01-02", "1970-01-01T00:00:09Z", "x"]]))
    >>> times[:2].tolist(), wrong.tolist()
    ([86400, 9], [False, False, True])
    """
    if pa.types.is_floating(column.type):
        wrong = ~np.isfinite(column.to_numpy())
        return np.floor(np.where(wrong, 0, column.to_numpy())).astype(np.int64), wrong
    numeric = pc.match_substring_regex(column, SECONDS)
    if pc.any(numeric).as_py():
        numbers = pc.if_else(numeric, column, "0").cast(pa.float64())
        return np.floor(numbers.to_numpy()).astype(np.int64), ~np.asarray(numeric.to_numpy())
    texts = pd.Series(np.asarray(column.to_numpy(), dtype=object), dtype=object)
    parsed = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    stamps = parsed.dt.tz_localize(None)
    times = stamps.to_numpy(dtype="datetime64[s]").astype(np.int64)
    return times, stamps.isna().to_numpy()


def is_blank(column: Any) -> bool:
    """Return whether all cells of a column of times are empty."""
    if pa.types.is_floating(column.type):
        return bool(np.isnan(column.to_numpy()).all())
    return not pc.any(pc.not_equal(column, "")).as_py()
