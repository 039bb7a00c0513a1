"""The finished runs of a results folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from recbias.core.errors import DataError, MissingRun
from recbias.core.input_files import has_file, to_local_path
from recbias.core.stage_context import warn
from recbias.reports.views.run_tables import read_manifest, require_whole_files

RUN_COLUMNS = (
    *("name", "run", "started", "seconds", "models", "failures", "failed_checks", "folder"),
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
    """Return one row of ``summarize_runs``.

    Raises:
        MissingRun: The folder does not hold the files of a run.
        DataError: One of them cannot be read.
    """
    manifest = read_manifest(folder / "manifest.json")
    if not has_file(folder / "metrics.csv"):
        raise MissingRun("metrics.csv does not exist", where=str(folder))
    require_whole_files(folder, manifest)
    try:
        checks = [bool(check["failed"]) for check in manifest.get("checks", [])]
        values = (
            str(manifest["name"]),
            folder.name,
            str(manifest["started"]),
            float(manifest["seconds"]),
            [str(model["label"]) for model in manifest["models"]],
            len(manifest["failures"]),
            sum(checks),
            folder,
        )
    except (KeyError, TypeError, ValueError) as error:
        reason = f"manifest.json is not that of a run ({type(error).__name__}: {error})"
        raise MissingRun(reason, where=str(folder)) from error
    return dict(zip(RUN_COLUMNS, values, strict=True))
