"""The run folder: its files as tables, remedies for damaged ones, and the finished runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.core.context import warn
from recbias.core.errors import DataError, MissingRun, describe_exception
from recbias.core.files import (
    convert_read_errors,
    has_file,
    open_input,
    read_input,
    to_local_path,
)
from recbias.core.grouping import JOIN, NAMED
from recbias.core.measures import (
    ALL,
    FIT_COLUMNS,
    METRIC_KEY_COLUMNS,
    METRICS,
    SIGNIFICANCE,
    TABLES,
    TRIALS,
    Table,
)
from recbias.formats.manifest import parse_manifest

REMEDY = "give a folder that `recbias run` wrote: it holds manifest.json and metrics.csv"

REPAIR = "copy the run folder again, or `recbias run` its spec again: stored stages are reused"


@contextmanager
def convert_parquet_errors(path: Path) -> Iterator[None]:
    """Raise what pyarrow raises for a file of a run folder as an error with a remedy.

    Raises:
        MissingFile: It cannot be read.
        MissingRun: It is damaged.
    """
    from pyarrow import ArrowException

    try:
        with convert_read_errors(path):
            try:
                yield
            except OSError as error:  # pyarrow has no other error for a damaged page
                if error.errno is None:
                    raise ValueError(str(error)) from error
                raise
    except (ArrowException, ValueError) as error:
        raise MissingRun(f"it cannot be read: {error}", where=str(path), remedy=REPAIR) from error


def read_row_groups(path: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the row groups of a Parquet file of a run folder, each an Arrow table of columns."""
    from pyarrow.parquet import ParquetFile  # pandas imports pyarrow.dataset, which is slow

    with convert_parquet_errors(path), ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, columns)


def read_parquet(
    path: Path,
    columns: Sequence[str] | None = None,
    where: tuple[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """Return columns of a Parquet file of a run folder.

    With ``where``, a column and values, only the rows that have one of them: the others are never
    in memory together.
    """
    import pyarrow as pa
    from pyarrow import compute

    groups = read_row_groups(path, columns)
    if where is not None:
        name, values = where[0], pa.array(where[1], pa.string())
        groups = (
            group.filter(compute.is_in(group[name].cast(pa.string()), values)) for group in groups
        )
    frame: pd.DataFrame = pa.concat_tables(groups).unify_dictionaries().to_pandas()
    return frame


_TABLES = {Path(table.file).stem: table for table in TABLES}


def _read_if_present(name: str) -> cached_property[pd.DataFrame | None]:
    """Return a property that reads a file at its first use; None if there is no such file."""

    def read_file(run: RunTables) -> pd.DataFrame | None:
        table = _TABLES[name]
        path = run.folder / table.file
        if not has_file(path):
            return None
        if path.suffix == ".parquet":
            return read_parquet(path)
        return _read_table(table, run.folder)

    return cached_property(read_file)


@dataclass(frozen=True, eq=False)
class RunTables:
    """The tables of a run folder. The files that have no field are read at first use.

    A run without hyperparameter search has no ``trials`` and no ``importances``, one without
    metrics by group no ``groups``, one without recorded losses no ``learning_curves``, and one
    without re-ranking no ``tradeoffs``: they are None.

    Args:
        folder: The run folder.
        metrics: ``metrics.csv``, one row per estimate; labels are text, numbers are float64.
        significance: ``significance.csv``, one row per comparison; empty where there is none.
        manifest: ``manifest.json``.
    """

    folder: Path
    metrics: pd.DataFrame
    significance: pd.DataFrame
    manifest: Mapping[str, Any]

    per_unit = _read_if_present("per_unit")
    replicates = _read_if_present("replicates")
    lists = _read_if_present("lists")
    popularity = _read_if_present("popularity")
    trials = _read_if_present("trials")
    importances = _read_if_present("importances")
    groups = _read_if_present("groups")
    tradeoffs = _read_if_present("tradeoffs")
    learning_curves = _read_if_present("learning_curves")

    @cached_property
    def units(self) -> pd.DataFrame | None:
        """Units with a value in a seed or fold, and undefined ones; None if they are unknown."""
        path, keys = self.folder / "per_unit.parquet", ["dataset", "model", *METRIC_KEY_COLUMNS]
        if not (self.metrics[["seed", "fold"]] == ALL).any(axis=None) or not has_file(path):
            return None
        rows = read_parquet(path, [*keys, "unit_id", "value"])
        every, defined = (
            own.groupby(keys, observed=True, dropna=False)["unit_id"].nunique()
            for own in (rows, rows.dropna(subset="value"))
        )
        n = defined.reindex(every.index, fill_value=0).astype("float64")
        found = pd.DataFrame({"n": n, "undefined": every - n}).reset_index()
        return found.astype(dict.fromkeys({*keys} - {"k"}, "str"))

    @cached_property
    def spec_text(self) -> str:
        """The text of ``spec.yaml``, blank if it does not exist."""
        path = self.folder / "spec.yaml"
        return read_input(path).decode("utf-8", "replace") if has_file(path) else ""

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        """``spec.yaml`` as a mapping, empty if it is not valid."""
        import yaml

        try:
            return read_yaml(self.spec_text)
        except yaml.YAMLError:
            return {}


def read_run(folder: Path) -> RunTables:
    """Read the tables of a run folder.

    Args:
        folder: The folder, ``results/<name>/<run id>`` or ``results/<name>/latest``.

    Raises:
        MissingRun: The folder does not exist, does not hold the files of a run, or holds one that
            is not as long as the run wrote it.
    """
    if not folder.is_dir():
        raise MissingRun("there is no such folder", where=str(folder), remedy=REMEDY)
    manifest = read_manifest(folder / "manifest.json")
    _require_whole_files(folder, manifest)
    metrics = _read_table(METRICS, folder)
    path = folder / SIGNIFICANCE.file
    significance = pd.DataFrame(columns=list(SIGNIFICANCE.names))
    if has_file(path) and path.stat().st_size:
        significance = _read_table(SIGNIFICANCE, folder)
    return RunTables(folder, metrics, significance, manifest)


def name_groups(run: RunTables) -> RunTables:
    """Return a run whose groups have names for people: ``age=under 18`` for ``age=1``."""
    checks = pd.DataFrame(run.manifest.get("checks", []), dtype=object)
    named = replace(
        run,
        metrics=name_values(run, run.metrics),
        significance=name_values(run, run.significance),
        manifest={**run.manifest, "checks": to_records(name_values(run, checks))},
    )
    for name in ("groups", "units"):
        if (table := getattr(run, name)) is not None:
            vars(named)[name] = name_values(run, table)
    return named


def _collect_names(run: RunTables) -> dict[str, str]:
    """Return other names of parts of groups: of coded values, and quantiles with their bounds.

    A quantile whose bounds depend on the dataset, seed or fold keeps its name.
    """
    names = {
        f"{column}={code}": f"{column}={name}"
        for dataset in run.manifest.get("datasets", [])
        for column, named in dataset.get("value_labels", {}).items()
        for code, name in named.items()
    }
    bounds: dict[str, set[str]] = {}
    for stage in run.manifest.get("stages", []):
        for fact, text in (stage.get("facts") or {}).items():
            if fact.startswith(NAMED):
                bounds.setdefault(fact.removeprefix(NAMED), set()).add(text)
    return names | {name: min(texts) for name, texts in bounds.items() if len(texts) == 1}


def name_values(run: RunTables, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of which the groups have names for people; those of the files stay."""
    labels = _collect_names(run)
    if not labels:
        return table
    named = {}
    for column in {"group", "a", "b"} & {*table.columns}:
        texts = {text: str(text).split(JOIN) for text in table[column].unique()}
        names = {text: JOIN.join(labels.get(p, p) for p in parts) for text, parts in texts.items()}
        named[column] = table[column].map(names).where(table[column].notna())
    return table.assign(**named)


def _require_whole_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse tables of another size than in the manifest; a Parquet file may be absent."""
    for name, size in manifest.get("files", {}).items():
        if not has_file(path := folder / name):
            if path.suffix == ".csv":
                _require_file(path)
        elif (found := path.stat().st_size) != size:
            message = f"{name} has {found:,} bytes, but manifest.json says {size}: it is not whole"
            raise MissingRun(message, where=str(folder), remedy=REPAIR)


def read_yaml(text: str) -> dict[str, Any]:
    """Return the mapping in a YAML text, or an empty one if it is not a mapping."""
    import yaml

    loader = vars(yaml).get("CSafeLoader", yaml.SafeLoader)(text)
    try:
        content = loader.get_single_data()
    finally:
        loader.dispose()
    return content if isinstance(content, dict) else {}


def to_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as mappings of Python values."""
    columns = {str(name): frame[name].tolist() for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _require_file(path: Path) -> None:
    if not has_file(path):
        raise MissingRun(f"{path.name} does not exist", where=str(path.parent), remedy=REMEDY)


def read_manifest(path: Path) -> Mapping[str, Any]:
    """Return the content of ``manifest.json``.

    Raises:
        MissingRun: The file does not exist, or is not the manifest of a run.
    """
    _require_file(path)
    try:
        return parse_manifest(read_input(path)).as_json()
    except ValueError as error:
        raise MissingRun(str(error), where=str(path), remedy=REPAIR) from error


def _read_table(table: Table, folder: Path) -> pd.DataFrame:
    path = folder / table.file
    _require_file(path)
    types = {name: "float64" if name in table.numbers else "str" for name in table.names}
    try:
        with convert_read_errors(path):
            frame = pd.read_csv(
                path,
                dtype=types,
                keep_default_na=False,
                na_values={name: ["", "nan", "NaN"] for name in table.numbers},
                float_precision="round_trip",
            )
    except (ValueError, pd.errors.ParserError) as error:
        raise MissingRun(f"it cannot be read: {error}", where=str(path), remedy=REMEDY) from error
    for name in table.names:
        if name not in frame:
            raise MissingRun(f"it has no column {name!r}", where=str(path), remedy=REPAIR)
    return frame


def read_trials(run: RunTables) -> list[dict[str, Any]]:
    """Return the rows of ``trials.csv`` with the settings as a mapping.

    Raises:
        MissingRun: The file is damaged.
    """
    rows = [] if run.trials is None else to_records(run.trials)
    try:
        return [row | {"settings": json.loads(row["settings"])} for row in rows]
    except ValueError as error:
        where, message = str(run.folder / TRIALS.file), f"the settings are no JSON: {error}"
        raise MissingRun(message, where=where, remedy=REPAIR) from error


_RESPONSE_KEYS = frozenset({*FIT_COLUMNS, "query_id", "outcome", "reply"})


def read_responses(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the content of each line of ``responses.jsonl``.

    Raises:
        MissingRun: The file is damaged.
    """
    path = folder / "responses.jsonl"
    with open_input(path) as stream:
        for number, line in enumerate(stream, start=1):
            where, response = f"{path}:{number}", None
            with suppress(ValueError):
                response = json.loads(line)
            if not (isinstance(response, dict) and response.keys() >= _RESPONSE_KEYS):
                raise MissingRun("it is not a response of a run", where=where, remedy=REPAIR)
            yield where, response


RUN_COLUMNS = (
    *("name", "run", "started", "seconds", "models", "failures", "failed_checks"),
    *("folder", "limit"),
)
"""The columns of ``recbias.list_runs``."""

_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")


def summarize_runs(out: Path | str = "results") -> list[dict[str, Any]]:
    """Return the finished runs, the newest first; the models of each are a list of labels.

    A run folder whose files are damaged is skipped with a warning.
    """
    rows = []
    for folder in to_local_path(out).glob("*/*/"):
        if folder.is_symlink():
            continue
        try:
            if _RUN_ID.fullmatch(folder.name) or has_file(folder / "manifest.json"):
                rows.append(_summarize(folder))
        except (MissingRun, DataError) as error:
            warn(f"{folder} is not a whole run and is left out: {error.message}")
    return sorted(rows, key=lambda row: str(row["run"]), reverse=True)


def _summarize(folder: Path) -> dict[str, Any]:
    """Return one row of ``summarize_runs``."""
    manifest = read_manifest(folder / "manifest.json")
    _require_file(folder / METRICS.file)
    _require_whole_files(folder, manifest)
    try:
        values = (
            manifest["name"],
            folder.name,
            manifest["started"],
            float(manifest["seconds"]),
            [model["label"] for model in manifest["models"]],
            len(manifest["failures"]),
            sum(check["failed"] for check in manifest.get("checks", [])),
            folder,
            manifest.get("limit"),
        )
    except (KeyError, TypeError) as error:
        reason = f"manifest.json is not that of a run ({describe_exception(error)})"
        raise MissingRun(reason, where=str(folder)) from error
    return dict(zip(RUN_COLUMNS, values, strict=True))
