"""What the documents of ``run``, ``plan``, ``list`` and ``runs`` hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from recbias.cli.catalogue import find_extra, list_entries
from recbias.reports.published_tables.sources import read_source
from recbias.reports.views.conclusions.conclude import collect_conclusions
from recbias.reports.views.headline import select_headline
from recbias.reports.views.run_tables import read_run, to_records
from recbias.runner.execution.request_totals import RequestTotals
from recbias.runner.planning.plan import Plan
from recbias.runner.planning.preview import Preview
from recbias.runs import Run

_FAILURE = ("stage", "dataset", "model", "seed", "fold", "message", "help", "user")


def describe_run(run: Run, exit_code: int, exit_meaning: str) -> dict[str, Any]:
    """Return what the terminal shows of a finished run; ``summary`` is of all groups and targets.

    Where there are several seeds or folds, ``summary`` holds the means over them.
    """
    tables, manifest, report = read_run(run.folder), run.manifest, run.folder / "report.html"
    return {
        "name": manifest["name"],
        "run": run.folder.name,
        "folder": str(run.folder),
        "report": str(report) if report.exists() else None,
        "started": manifest["started"],
        "seconds": manifest["seconds"],
        "exit_code": exit_code,
        "exit_meaning": exit_meaning,
        "models": [model["label"] for model in manifest["models"]],
        "conclusions": [*map(asdict, collect_conclusions(tables))],
        "summary": to_records(select_headline(tables, tables.metrics)),
        "checks": run.checks,
        "failures": [{name: row[name] for name in _FAILURE} for row in run.failures],
        "warnings": manifest["warnings"],
    }


def describe_plan(
    plan: Plan, preview: Preview, requests: Sequence[RequestTotals], unchecked: Sequence[str]
) -> dict[str, Any]:
    """Return the stages of a plan, the requests to language models, and the memory.

    ``unchecked`` are the datasets whose content is checked only when it is loaded.
    """
    return {
        "name": plan.experiment.name,
        "sweep": {kind: [*labels] for kind, labels in plan.experiment.sweep.items()},
        "stages": [
            {
                "stage": step.stage.kind,
                "title": step.stage.title,
                **asdict(step.stage.keys),
                "stored": step.stored,
                "resumes": step.partial,
                "stored_trials": step.trials,
                "seconds": step.seconds,
                "expected_seconds": step.expected and round(step.expected.seconds, 3),
                "expected_from": step.expected and step.expected.n_records,
                "memory_mb": None if step.memory_mb is None else round(step.memory_mb),
                "address": step.stage.digest,
            }
            for step in preview.steps
        ],
        "stages_stored": sum(step.stored for step in preview.steps),
        "stages_to_run": sum(not step.stored for step in preview.steps),
        "undefined": [
            {"metric": metric.label, "k": metric.cutoff, "model": model.label, "missing": missing}
            for metric, model, missing in plan.undefined
        ],
        "requests": [_describe_requests(entry) for entry in requests],
        "expected_seconds": preview.expected_seconds,
        "expected_unknown": preview.n_unexpected,
        "memory_mb": None if preview.memory_mb is None else round(preview.memory_mb),
        "memory_unknown": preview.n_without_memory,
        "unchecked_datasets": [*unchecked],
    }


def _describe_requests(totals: RequestTotals) -> dict[str, Any]:
    """Return the requests of a model; the numbers are None where they are not known."""
    numbers = {
        "requests": totals.n_requests,
        "stored": totals.n_stored,
        "to_send": totals.n_requests - totals.n_stored,
        "tokens_in": totals.prompt_tokens,
        "tokens_out": totals.completion_tokens,
        "money": totals.money,
    }
    values: Mapping[str, Any] = dict.fromkeys(numbers) if totals.problem else numbers
    return {"model": totals.model, **values, "problem": totals.problem or None}


def describe_kinds(kinds: Sequence[str]) -> dict[str, Any]:
    """Return the entries of each kind: name, summary, and the extra that installs its packages.

    A published table has the specs that are compared with it, or the reason why none is, too.
    """
    return {
        kind: [
            {
                "name": name,
                "summary": summary,
                "extra": find_extra(kind, name) or None,
                **(_describe_use(name) if kind == "references" else {}),
            }
            for name, summary in list_entries(kind)
        ]
        for kind in kinds
    }


def _describe_use(name: str) -> dict[str, Any]:
    table = read_source(name)
    return {"specs": [*table.specs], "reason": table.reason or None}


def describe_runs(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of ``summarize_runs`` with the folder as text."""
    return [{**row, "folder": str(row["folder"])} for row in rows]
