"""A run folder, read back as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.core.errors import MissingRun
from recbias.core.input_files import convert_read_errors, has_file, open_input
from recbias.core.measurements.columns import FIT_COLUMNS, METRICS_COLUMNS, SIGNIFICANCE_COLUMNS

_NUMBERS = frozenset(
    {
        *("k", "value", "std", "n", "undefined", "ci_low", "ci_high", "mean_a", "mean_b"),
        *("difference", "statistic", "df", "p", "p_adjusted", "family_size", "alpha"),
        "effect_size",
    }
)
_SEARCHED = frozenset({"trial", "value", "seconds", "epochs", "importance"})
"""The columns of figures of ``trials.csv`` and ``importances.csv``."""

REMEDY = "give a folder that `recbias run` wrote: it holds manifest.json and metrics.csv"


@dataclass(frozen=True, eq=False)
class RunTables:
    """What a run folder holds.

    Args:
        folder: The run folder.
        metrics: ``metrics.csv``, one row a figure; labels are text, figures are float64.
        significance: ``significance.csv``, one row a comparison; no rows where none was made.
        manifest: ``manifest.json``.
    """

    folder: Path
    metrics: pd.DataFrame
    significance: pd.DataFrame
    manifest: Mapping[str, Any]

    @cached_property
    def per_unit(self) -> pd.DataFrame | None:
        """``per_unit.parquet``, or None where there is none."""
        return self._parquet("per_unit.parquet")

    @cached_property
    def lists(self) -> pd.DataFrame | None:
        """``lists.parquet``, or None where there is none."""
        return self._parquet("lists.parquet")

    @cached_property
    def popularity(self) -> pd.DataFrame | None:
        """``popularity.parquet``, or None where there is none."""
        return self._parquet("popularity.parquet")

    @cached_property
    def trials(self) -> pd.DataFrame | None:
        """``trials.csv``, or None where nothing was searched."""
        return self._csv("trials.csv")

    @cached_property
    def importances(self) -> pd.DataFrame | None:
        """``importances.csv``, or None where there is none."""
        return self._csv("importances.csv")

    @cached_property
    def spec_text(self) -> str:
        """``spec.yaml`` as it is written, blank where there is none."""
        path = self.folder / "spec.yaml"
        return _text(path, errors="replace") if has_file(path) else ""

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        """``spec.yaml`` as a mapping; empty where it is none."""
        import yaml

        try:
            return read_yaml(self.spec_text)
        except yaml.YAMLError:
            return {}

    def _csv(self, name: str) -> pd.DataFrame | None:
        path = self.folder / name
        if not has_file(path):
            return None
        texts = dict.fromkeys((*FIT_COLUMNS, "state", "settings", "setting"), "str")
        return _read(path, texts | dict.fromkeys(_SEARCHED, "float64"), [*_SEARCHED])

    def _parquet(self, name: str) -> pd.DataFrame | None:
        path = self.folder / name
        if not has_file(path):
            return None
        with convert_read_errors(path):
            return pd.read_parquet(path)


def read_run(folder: Path) -> RunTables:
    """Return the tables of a run folder; the Parquet files are read when they are asked for.

    Args:
        folder: The folder, ``results/<name>/<run id>`` or ``results/<name>/latest``.

    Raises:
        MissingRun: It is not there, or does not hold a run's files.
    """
    if not folder.is_dir():
        raise MissingRun("there is no such folder", where=str(folder), remedy=REMEDY)
    manifest = _manifest(folder / "manifest.json")
    metrics = _table(folder / "metrics.csv", METRICS_COLUMNS)
    path = folder / "significance.csv"
    if has_file(path) and path.stat().st_size:
        significance = _table(path, SIGNIFICANCE_COLUMNS)
    else:
        significance = pd.DataFrame(columns=list(SIGNIFICANCE_COLUMNS))
    return RunTables(folder, metrics, significance, manifest)


def read_yaml(text: str) -> dict[str, Any]:
    """Return the mapping that a YAML text holds, empty where it holds none."""
    import yaml

    loader = vars(yaml).get("CSafeLoader", yaml.SafeLoader)(text)
    try:
        found = loader.get_single_data()
    finally:
        loader.dispose()
    return found if isinstance(found, dict) else {}


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame, one mapping each, of Python values."""
    columns = {str(each): frame[each].tolist() for each in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _text(path: Path, errors: str = "strict") -> str:
    with open_input(path) as stream:
        return stream.read().decode("utf-8", errors)


def _manifest(path: Path) -> Mapping[str, Any]:
    if not has_file(path):
        raise MissingRun(f"{path.name} is not there", where=str(path.parent), remedy=REMEDY)
    try:
        found = json.loads(_text(path))
    except ValueError as error:
        raise MissingRun(f"it is not JSON: {error}", where=str(path), remedy=REMEDY) from error
    if not isinstance(found, dict):
        raise MissingRun("it is not a JSON object", where=str(path), remedy=REMEDY)
    return found


def _table(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    if not has_file(path):
        raise MissingRun(f"{path.name} is not there", where=str(path.parent), remedy=REMEDY)
    numbers = [each for each in columns if each in _NUMBERS]
    types = {each: "float64" if each in _NUMBERS else "str" for each in columns}
    read = _read(path, types, numbers)
    missing = [each for each in columns if each not in read.columns]
    if missing:
        found = f"it has no column {', '.join(missing)}"
        raise MissingRun(found, where=str(path), remedy=REMEDY)
    return read


def _read(path: Path, types: Mapping[str, str], numbers: Sequence[str]) -> pd.DataFrame:
    try:
        with convert_read_errors(path):
            return pd.read_csv(
                path,
                dtype=dict(types),
                keep_default_na=False,
                na_values={each: ["", "nan", "NaN"] for each in numbers},
                float_precision="round_trip",
            )
    except (ValueError, pd.errors.ParserError) as error:
        raise MissingRun(f"it cannot be read: {error}", where=str(path), remedy=REMEDY) from error
