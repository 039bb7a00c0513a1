"""What the n of a value or a comparison counts: users, items, prompts, names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from recbias.core.input_files import has_file
from recbias.reports.run_files import convert_parquet_errors
from recbias.reports.views.comparisons import Row
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables


def name_unit(run: RunTables, metric: Definition) -> str:
    """Return what a metric counts: its unit, or that of the queries; blank if it is unknown.

    Metrics of a whole set of prompts count names or templates.
    """
    requested = {str(entry.get("unit", "query")) for entry in run.manifest.get("queries", [])}
    queries = requested.pop() if len(requested) == 1 else "query"
    if metric.unit not in {"", "query"}:
        return metric.unit.replace("_", " ")
    return "" if queries == "prompt" and not metric.unit else queries


def name_compared_unit(run: RunTables, metric: Definition, row: Row) -> str:
    """Return what the n of a comparison counts.

    Metrics of vectors have values of users and of items: that of the target in
    ``per_unit.parquet``, or the sets that are compared.
    """
    sets = [metric.parameters.get(name) for name in ("groups", "targets")]
    of = [str(item["of"]) for item in sets if isinstance(item, Mapping) and "of" in item]
    if not of:
        return name_unit(run, metric)
    if row["between"] == "groups":
        return of[0].removesuffix("s")
    unit = _collect_target_units(run).get((row["metric"], row["target"]))
    return unit or of[-1].removesuffix("s")


@lru_cache(maxsize=2)
def _collect_target_units(run: RunTables) -> Mapping[tuple[str, str], str]:
    """Return the unit of each metric and target that has values of units."""
    path = run.folder / "per_unit.parquet"
    if not has_file(path):
        return {}
    import pyarrow.parquet as pq

    with convert_parquet_errors(path):
        table = pq.ParquetFile(path).read(columns=["metric", "target", "unit"])
    units = table.to_pandas().drop_duplicates().astype(str)
    return {(metric, target): unit for metric, target, unit in units.itertuples(index=False)}
