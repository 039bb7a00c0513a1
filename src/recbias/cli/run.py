"""``recbias run`` and ``recbias plan``, also of a spec with ``multiverse``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial, wraps
from inspect import Parameter, getdoc, signature
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import typer

from recbias.cli.output import (
    DONE,
    FAILED,
    OUT_OF_TOLERANCE,
    USER,
    Answer,
    Data,
    Part,
    command,
    print_line,
    select_first,
    show_progress,
    show_verdict,
)
from recbias.core.context import summarize_failures
from recbias.core.docstrings import split_sections
from recbias.core.errors import UserError
from recbias.core.machine import pause_collection
from recbias.reports.wording import Cell, format_count, pick, tabulate
from recbias.runner.plan import RunOptions, describe_seconds

if TYPE_CHECKING:
    from recbias.runner.estimate import Preview, Step
    from recbias.runner.plan import Plan
    from recbias.runs.tables import Run

# ---- options ----

Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q")]
Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", "-v")]
_TYPES: Mapping[str, Any] = {
    "overrides": Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE")],
    "out": Path,
    "data": Data,
    "device": Annotated[str | None, typer.Option(metavar="auto|cpu|cuda|cuda:1|mps")],
    "store": Annotated[str | None, typer.Option(metavar="URL")],
}
"""How the command line takes options of a run that have another type in Python."""


def _take_options(act: Callable[..., Answer]) -> Callable[..., Answer]:
    """Return a function with the parameters of another, and the options of a run for its last."""

    @wraps(act)
    def take(**given: Any) -> Answer:
        options = {name: given.pop(name) for name in defaults}
        return act(**given, options={**options, "overrides": options["overrides"] or ()})

    own = signature(act, eval_str=True)
    defaults = {each.name: each.default for each in fields(RunOptions)} | {"overrides": None}
    del defaults["progress"], defaults["observer"]
    hints = {**get_type_hints(RunOptions), **_TYPES}
    parameters = [
        *[*own.parameters.values()][:-1],
        *(
            Parameter(name, Parameter.KEYWORD_ONLY, annotation=hints[name], default=default)
            for name, default in defaults.items()
        ),
    ]
    vars(take)["__signature__"] = own.replace(parameters=parameters)
    take.__annotations__ = {each.name: each.annotation for each in parameters}
    of_options = split_sections(getdoc(RunOptions) or "")["Args"]
    take.__doc__ = f"{getdoc(act)}\n{indent(of_options, '    ')}"
    return take


def _has_multiverse(spec: Path, options: Mapping[str, Any]) -> bool:
    """Return whether a spec, or a file that it extends, has choices."""
    from recbias.config.source import find_spec, read_spec

    try:
        document = read_spec(find_spec(spec), options["overrides"])
    except UserError:  # which the run reports
        return False
    return bool(document.data.get("multiverse"))


# ---- run ----

_MEANINGS = {
    DONE: "done",
    FAILED: "a stage failed",
    USER: "the input is at fault",
    OUT_OF_TOLERANCE: "a check failed",
}
"""The exit codes of a finished run in words."""

_FAILURE = ("stage", "dataset", "model", "seed", "fold", "message", "help", "user")
_MOST_ROWS = 24
"""The maximum number of rows of a table by group; the report has all of them."""


@command
@_take_options
def run(
    spec: Path, quiet: Quiet = False, verbose: Verbose = False, *, options: dict[str, Any]
) -> Answer:
    """Run or resume the experiment of a SPEC, and print a summary.

    Args:
        spec: A file, or the name of a packaged spec.
        quiet: Show warnings and errors, but no progress.
        verbose: Show every stage.
    """
    from recbias import api

    if _has_multiverse(spec, options):
        return _run_multiverse(spec, options, quiet=quiet, verbose=verbose)
    with show_progress(quiet=quiet, verbose=verbose) as observer:
        finished = api.run(spec, observer=observer, **options)
    failures, code = finished.failures, DONE
    if len(failures):  # which come before failed checks
        code = USER if failures["user"].all() else FAILED
    elif finished.checks["failed"].any():
        code = OUT_OF_TOLERANCE
    notes = [
        line
        for failure in summarize_failures(finished.manifest["failures"])
        for line in (f"failed: {failure.stage}: {failure.message}", f"help: {failure.help}")
        if line != "help: "
    ]
    return Answer(_describe_run(finished, code), _show_run(finished), notes, code)


def _describe_run(run: Run, code: int) -> dict[str, Any]:
    """Return what the terminal shows of a finished run."""
    from recbias.reports.conclusions import collect_conclusions
    from recbias.reports.run import read_run, to_records
    from recbias.reports.verdict import build_verdict
    from recbias.reports.views import select_headline

    tables, manifest, report = read_run(run.folder), run.manifest, run.folder / "report.html"
    return {
        "name": manifest["name"],
        "run": run.folder.name,
        "folder": str(run.folder),
        "report": str(report) if report.exists() else None,
        "started": manifest["started"],
        "seconds": manifest["seconds"],
        "exit_code": code,
        "exit_meaning": _MEANINGS[code],
        "models": [model["label"] for model in manifest["models"]],
        "verdict": asdict(build_verdict(tables)),
        "conclusions": [*map(asdict, collect_conclusions(tables))],
        "summary": to_records(select_headline(tables, tables.metrics)),
        "checks": manifest.get("checks", []),
        "failures": [{name: row[name] for name in _FAILURE} for row in manifest["failures"]],
        "warnings": manifest["warnings"],
    }


def _show_run(run: Run) -> Iterator[Part]:
    """Yield the verdict of a run, its tables, its checks and its paths."""
    from recbias.reports.conclusions import split_conclusions
    from recbias.reports.run import name_groups, read_run
    from recbias.reports.tables import build_check_table, build_group_tables, build_summary
    from recbias.reports.verdict import build_verdict

    tables = name_groups(read_run(run.folder))
    yield from show_verdict(build_verdict(tables), len(split_conclusions(tables)[1]))
    if (summary := build_summary(tables)).rows:
        yield summary
    for table in filter(None, (*build_group_tables(tables), build_check_table(tables))):
        yield select_first(table, _MOST_ROWS, "in the reports and in the CSV files")
    yield f"run folder: {run.folder}"
    if (report := run.folder / "report.html").exists():
        yield f"report: {report}"


def _run_multiverse(
    spec: Path, options: Mapping[str, Any], *, quiet: bool, verbose: bool
) -> Answer:
    """Run every universe."""
    from recbias.claims.multiverse import multiverse
    from recbias.reports.pages import describe_multiverse
    from recbias.reports.run import to_records

    with show_progress(quiet=quiet, verbose=verbose) as observer:
        result = multiverse(spec, observer=observer, **options)
    choices = to_records(result.choices)
    failed = result.universes.loc[result.universes["verdict"] == "failed", "problem"]
    shown: list[Part] = [result.verdict, *describe_multiverse(result.claim, result.summary)]
    shown += [f"{count:,} failed: {problem}" for problem, count in failed.value_counts().items()]
    if choices:
        columns: dict[str, Callable[[Any], Cell | str]] = {
            **pick("choice"),
            "share of the variance": lambda row: Cell(f"{row['share']:.0%}", row["share"]),
            "95% interval": lambda row: f"{row['ci_low']:.0%} to {row['ci_high']:.0%}",
        }
        shown.append(tabulate("which choice decides", choices[:8], columns))
    document = {
        "claim": result.claim,
        "summary": result.summary,
        "choices": choices,
        "folder": str(result.folder),
    }
    return Answer(document, [*shown, f"report: {result.folder / 'report.html'}"])


# ---- plan ----

_NUMEROUS = frozenset({"measure", "trial"})
"""Kinds of stage that a plan counts instead of listing them."""


@command
@_take_options
@pause_collection()  # of a large plan it takes as long as the plan, and finds nothing
def plan(
    spec: Path, quiet: Quiet = False, verbose: Verbose = False, *, options: dict[str, Any]
) -> Answer:
    """Validate a SPEC; print its stages, requests, time and memory.

    Args:
        spec: A file, or the name of a packaged spec.
        quiet: Print no table of the stages.
        verbose: Show every stage.
    """
    from recbias import api
    from recbias.runner.estimate import count_requests
    from recbias.runner.execute import Executor

    if _has_multiverse(spec, options):
        from recbias.claims.multiverse import plan_multiverse

        planned = plan_multiverse(spec, RunOptions(**options)).describe()
        return Answer(planned, _show_multiverse(planned))
    with show_progress(quiet=quiet, verbose=verbose):
        planned_run, store = api.plan(spec, **options)
    for warning in planned_run.warnings:
        print_line(f"warning: {warning}", to_stderr=True)
    with show_progress(quiet=quiet, verbose=verbose) as observer:
        requests = count_requests(planned_run, Executor(store, observer, fresh=options["fresh"]))
        preview, unchecked = api.preview_run(planned_run, store, fresh=options["fresh"])
    note = "note: labels, columns and given lists of {} are checked when it is loaded"
    return Answer(
        {
            **_describe_plan(planned_run, preview),
            "requests": requests,
            "unchecked_datasets": unchecked,
        },
        _show_plan(planned_run, preview, requests, quiet=quiet, verbose=verbose),
        [*map(note.format, unchecked)],
    )


def _show_multiverse(planned: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many universes a spec has, and which stages they share."""
    for choice, labels in planned["choices"].items():
        yield f"{choice}: {', '.join(labels)}"
    sample = f" of {n:,}" if (n := planned["combinations"]) > planned["universes"] else ""
    failing = f", {planned['failing']:,} of them with a fault" if planned["failing"] else ""
    yield f"{planned['universes']:,} universes{sample}{failing}"
    yield (
        f"{planned['stages']:,} stages, which are {planned['stages_unshared']:,} without sharing: "
        f"{planned['stages_stored']:,} stored, which took {planned['stored_seconds']:,.0f} s"
    )


def _describe_plan(plan: Plan, preview: Preview) -> dict[str, Any]:
    """Return the stages of a plan, their time and the memory."""
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
                "expected_seconds": step.expected_seconds and round(step.expected_seconds, 3),
                "expected_from": step.n_records or None,
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
        "expected_seconds": preview.expected_seconds,
        "expected_unknown": preview.n_unexpected,
        "memory_mb": None if preview.memory_mb is None else round(preview.memory_mb),
        "memory_unknown": preview.n_without_memory,
    }


def _show_plan(
    plan: Plan,
    preview: Preview,
    requests: Sequence[Mapping[str, Any]],
    *,
    quiet: bool,
    verbose: bool,
) -> Iterator[Part]:
    """Yield the stages of a plan, which of them are cached, and the cost of the others."""
    if not quiet:
        steps = [step for step in preview.steps if verbose or step.stage.kind not in _NUMEROUS]
        yield _tabulate_steps(plan.experiment.name, steps)
    for kind, labels in plan.experiment.sweep.items():
        yield f"sweep: {format_count(len(labels), kind.removesuffix('s'))}: {', '.join(labels)}"
    n_cached = sum(step.stored for step in preview.steps)
    kinds = [step.stage.kind for step in preview.steps]
    trials = f", {kinds.count('trial')} trials" if "trial" in kinds else ""
    yield (
        f"{len(kinds)} stages ({kinds.count('measure')} metrics{trials}): "
        f"{n_cached} cached, {len(kinds) - n_cached} to run"
    )
    for metric, model, missing in plan.undefined:
        yield f"{metric.label} will be undefined for {model.label}: it provides no {missing}"
    yield from _show_requests(requests, quiet=quiet)
    if preview.expected_seconds is not None:
        time = describe_seconds(preview.expected_seconds)
        yield f"estimated time: {time}, from stored results of the same kind"
    known = None if preview.memory_mb is None else f"{preview.memory_mb:,.0f} MB"
    yield f"estimated memory: {known or 'unknown without stored results of the same kind'}"


def _tabulate_steps(title: str, steps: Sequence[Step]) -> Part:
    """Return a row for each stage, with its dataset, seed and fold where these differ."""
    columns: dict[str, Callable[[Step], Cell | str]] = {"stage": lambda step: step.stage.title}
    for name in ("dataset", "seed", "fold"):
        if len({getattr(step.stage.keys, name) for step in steps} - {None}) > 1:
            columns[name] = partial(_render_key, name)
    columns |= {"state": _render_state, "took": _render_time, "memory": _render_memory}
    columns["address"] = lambda step: step.stage.digest[:12]
    return tabulate(title, steps, columns).without_blanks()


def _render_key(name: str, step: Step) -> str:
    return str(getattr(step.stage.keys, name) or "")


def _render_memory(step: Step) -> Cell | str:
    return "" if step.memory_mb is None else Cell(f"{step.memory_mb:,.0f} MB", step.memory_mb)


def _render_time(step: Step) -> Cell | str:
    """Return the time that a stage took or, after ``~``, is expected to take."""
    if (expected := step.expected_seconds) is not None:
        return Cell(f"~{describe_seconds(expected)}", expected)
    return "" if step.seconds is None else Cell(f"{step.seconds:.2f} s", step.seconds)


def _render_state(step: Step) -> str:
    """Return whether a stage is cached, and for a search the number of its cached trials."""
    if step.stored:
        return "cached"
    if step.stage.kind == "search":
        return f"to run ({step.trials} of {len(step.stage.inputs)} trials cached)"
    return "to resume from its checkpoint" if step.partial else "to run"


def _render_count(name: str, row: Mapping[str, Any]) -> Cell:
    return Cell(f"{row[name]:,}", row[name])


def _show_requests(requests: Sequence[Mapping[str, Any]], *, quiet: bool) -> Iterator[Part]:
    """Yield the requests of each model, and the most that those without a stored reply cost."""
    from recbias.runner.estimate import REQUEST_COUNTS

    known = [row for row in requests if not row["problem"]]
    if len(known) > 1 and not quiet:
        columns = pick("model") | {
            name.replace("_", " "): partial(_render_count, name) for name in REQUEST_COUNTS
        }
        columns["money"] = lambda row: "" if row["money"] is None else f"{row['money']:,.2f}"
        yield tabulate("requests to language models", known, columns).without_blanks()
    total = {name: sum(row[name] for row in known) for name in REQUEST_COUNTS}
    if total.get("requests"):
        prices = [row["money"] for row in known if row["money"] is not None]
        unpriced = ", ".join(row["model"] for row in known if row["money"] is None)
        without = f" (without {unpriced}: no prices given)" if unpriced else ""
        money = f"{sum(prices):,.2f} by the prices of the spec{without}"
        yield (
            f"language models: {total['requests']:,} requests, {total['stored']:,} stored, "
            f"{total['to_send']:,} to send: at most {total['tokens_in']:,} tokens in, "
            f"{total['tokens_out']:,} out, {money if prices else 'no prices given'}"
        )
    for row in known:
        if row["budget"] is not None and row["to_send"] > row["budget"]:
            yield f"{row['model']} will fail: its budget.requests allows {row['budget']:,} of them"
    for row in requests:
        if row["problem"]:
            yield f"the requests of {row['model']} are not known: {row['problem']}"
