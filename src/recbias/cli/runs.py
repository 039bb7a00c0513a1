"""Finding runs, and the words of ``recbias compare``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from recbias.cli.display import print_rows
from recbias.core.errors import Contradiction, MissingRun, UnknownName
from recbias.core.suggestions import did_you_mean
from recbias.reports.frame import read_run
from recbias.reports.published import compare_with
from recbias.runner.run_comparison import RunFrames, compare_runs


def find_run(run: str, out: Path) -> Path:
    """Return the folder of a run: as given, else the latest run of the experiment of that name.

    Raises:
        MissingRun: There is neither.
    """
    given = Path(run)
    for folder in (given, out / run / "latest", given / "latest"):
        if (folder / "manifest.json").is_file():
            return folder.resolve()
    known = sorted(each.parent.name for each in out.glob("*/latest"))
    found = f"{run!r} is neither a run folder nor an experiment with a finished run in {out}"
    raise MissingRun(found, remedy=did_you_mean(given.name or run, known))


def chosen_formats(text: str, known: Sequence[str]) -> list[str]:
    """Return the formats named in ``md,html``.

    Raises:
        UnknownName: One of them is not a format.
    """
    names = [each.strip() for each in text.split(",") if each.strip()]
    for name in names:
        if name not in known:
            found = f"no format is called {name!r}"
            raise UnknownName(found, where="--format", remedy=did_you_mean(name, known))
    return names


def side_by_side(folders: Sequence[Path], names: Sequence[str], correction: str) -> float:
    """Print every figure that the runs share; return the largest difference.

    Raises:
        Contradiction: There is one run only.
    """
    if len(folders) < 2:
        found = "there is nothing to compare a single run with"
        raise Contradiction(found, remedy="name a second run, or --reference children/a3")
    labels = [
        name if names.count(name) == 1 else folder.name
        for name, folder in zip(names, folders, strict=True)
    ]
    tables = [read_run(each) for each in folders]
    frames = [
        RunFrames(label, table.metrics, table.per_unit)
        for label, table in zip(labels, tables, strict=True)
    ]
    table = compare_runs(frames, correction=correction)
    _print(table, f"{len(table)} figures, p adjusted over them all ({correction})")
    return float(table["difference"].abs().max())


def against_published(folders: Sequence[Path], reference: str, fail_over: float | None) -> float:
    """Print published beside measured for each run; return the largest difference."""
    worst = 0.0
    for folder in folders:
        tolerance = 0.01 if fail_over is None else fail_over
        table = compare_with(read_run(folder), reference, tolerance=tolerance)
        _print(table, f"{folder.parent.name} beside {reference}")
        largest = float(table["difference"].abs().max())
        worst = max(worst, math.inf if math.isnan(largest) else largest)
    return worst


def _print(table: pd.DataFrame, title: str) -> None:
    shown = table.dropna(axis=1, how="all")
    shown = shown.loc[:, [name for name in shown if not (shown[name].astype(str) == "").all()]]
    rows = [[_cell(value) for value in row] for row in shown.itertuples(index=False, name=None)]
    print_rows([str(name) for name in shown.columns], rows, title=title)


def _cell(value: object) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return f"{value:.4g}" if abs(value) < 1e-3 else f"{value:,.4f}".rstrip("0").rstrip(".")
    return "" if value is pd.NA or value is None else str(value)
