"""``recbias run`` and ``recbias plan``: their options, tables and documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from inspect import Parameter, Signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

import typer
from rich.console import Console
from rich.text import Text

from recbias.cli.output import (
    DONE,
    FAILED,
    MEANINGS,
    OUT_OF_TOLERANCE,
    USER,
    AsJson,
    Output,
    allow_closed_output,
    open_document,
    print_grid,
    print_line,
    print_rows,
    print_verdict,
    report_errors,
    show_progress,
)
from recbias.core.context import summarize_failures
from recbias.core.errors import UserError
from recbias.core.machine import pause_collection
from recbias.core.text import make_printable
from recbias.reports.wording import format_count
from recbias.runner.options import Flag, RunOptions, list_option_types
from recbias.runner.remaining import describe_seconds

if TYPE_CHECKING:
    from recbias.reports.wording import Table
    from recbias.runner.estimate import Preview, Step
    from recbias.runner.plan import Plan
    from recbias.runner.request_totals import RequestTotals
    from recbias.runs.tables import Run

_FAILURE = ("stage", "dataset", "model", "seed", "fold", "message", "help", "user")


def _describe_run(run: Run, exit_code: int, exit_meaning: str) -> dict[str, Any]:
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
        "exit_code": exit_code,
        "exit_meaning": exit_meaning,
        "models": [model["label"] for model in manifest["models"]],
        "verdict": asdict(build_verdict(tables)),
        "conclusions": [*map(asdict, collect_conclusions(tables))],
        "summary": to_records(select_headline(tables, tables.metrics)),
        "checks": manifest.get("checks", []),
        "failures": [{name: row[name] for name in _FAILURE} for row in manifest["failures"]],
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


def show_requests(totals: Sequence[RequestTotals], *, quiet: bool) -> None:
    """Print the requests of each model, and the most that those without a stored reply cost."""
    known = [entry for entry in totals if not entry.problem]
    prices = [entry.money for entry in known if entry.money is not None]
    if len(known) > 1 and not quiet:
        columns = ("requests", "stored", "to send", "tokens in", "tokens out", "money")
        rows = [
            [
                entry.model,
                *(f"{number:,}" for number in _count_requests([entry])),
                "" if entry.money is None else f"{entry.money:,.2f}",
            ]
            for entry in known
        ]
        title = "requests to language models"
        print_rows(("model", *columns), rows, title=title, numeric=columns)
    n_requests, n_stored, n_to_send, n_in, n_out = _count_requests(known)
    if n_requests:
        unpriced = ", ".join(entry.model for entry in known if entry.money is None)
        without = f" (without {unpriced}: no prices given)" if unpriced else ""
        money = f"{sum(prices):,.2f} by the prices of the spec{without}"
        print_line(
            f"language models: {n_requests:,} requests, {n_stored:,} stored, {n_to_send:,} to "
            f"send: at most {n_in:,} tokens in, {n_out:,} out, "
            f"{money if prices else 'no prices given'}"
        )
    for entry in totals:
        if entry.problem:
            print_line(f"the requests of {entry.model} are not known: {entry.problem}")


def _count_requests(entries: Sequence[RequestTotals]) -> tuple[int, int, int, int, int]:
    """Return the requests, those stored and to send, and the tokens in and out."""
    n_requests = sum(entry.n_requests for entry in entries)
    n_stored = sum(entry.n_stored for entry in entries)
    n_in = sum(entry.prompt_tokens for entry in entries)
    n_out = sum(entry.completion_tokens for entry in entries)
    return n_requests, n_stored, n_requests - n_stored, n_in, n_out


NUMEROUS = frozenset({"measure", "trial"})
"""Kinds of stage that a plan counts instead of listing them."""

MOST_ROWS = 24
"""The maximum number of rows of a table by group; the report has all of them."""

ELSEWHERE = "metrics.csv and the reports of the run folder have them"


def _show_run(run: Run) -> None:
    """Print the verdict of a run, its tables, its checks, its failures and its paths."""
    from recbias.reports.conclusions import split_conclusions
    from recbias.reports.run import name_groups, read_run
    from recbias.reports.tables import build_check_table, build_group_tables, build_summary
    from recbias.reports.verdict import build_verdict

    console, tables = Output(), name_groups(read_run(run.folder))
    summary = build_summary(tables)
    values = [column.title for column in summary.columns if column.numeric]
    checks = build_check_table(tables)
    with allow_closed_output():
        print_verdict(build_verdict(tables), len(split_conclusions(tables)[1]), console)
        if summary.rows:
            print_grid(summary, console, optional=values[:0:-1], elsewhere=ELSEWHERE)
        for table in (*build_group_tables(tables), *([checks] if checks else [])):
            _print_first_rows(table, console)
    _show_failures(run)
    report = run.folder / "report.html"
    with allow_closed_output():
        for line in (f"run folder: {run.folder}", *([f"report: {report}"] * report.exists())):
            console.print(Text(make_printable(line, None)), soft_wrap=True)


def _print_first_rows(table: Table, console: Output) -> None:
    n_hidden = len(table.rows) - MOST_ROWS
    note = f"{n_hidden:,} more rows are in the reports and in the CSV files."
    notes = (*((note,) if n_hidden > 0 else ()), *table.notes)
    print_grid(replace(table, rows=table.rows[:MOST_ROWS], notes=notes), console)


def _show_failures(run: Run) -> None:
    """Print the failed stages of a run on standard error, each cause once."""
    console = Console(stderr=True, highlight=False)
    for failure in summarize_failures(run.manifest["failures"]):
        failed = f"failed: {failure.stage}: {failure.message}"
        help_lines = [f"help: {failure.help}"] if failure.help else []
        for line, style in zip((failed, *help_lines), ("red", ""), strict=False):
            text = Text(make_printable(line), style=style)
            console.print(text, soft_wrap=not console.is_terminal)


def _show_plan(
    plan: Plan,
    preview: Preview,
    requests: Sequence[RequestTotals],
    *,
    quiet: bool,
    verbose: bool,
) -> None:
    """Print the stages of a plan, which of them are cached, and the cost of the others."""
    if not quiet:
        steps = [step for step in preview.steps if verbose or step.stage.kind not in NUMEROUS]
        varying = [
            name
            for name in ("dataset", "seed", "fold")
            if len({getattr(step.stage.keys, name) for step in steps} - {None}) > 1
        ]
        rows = [
            [
                step.stage.title,
                *(str(getattr(step.stage.keys, name) or "") for name in varying),
                _render_state(step),
                _render_time(step),
                "" if step.memory_mb is None else f"{step.memory_mb:,.0f} MB",
                step.stage.digest[:12],
            ]
            for step in steps
        ]
        columns = ("stage", *varying, "state", "took", "memory", "address")
        numeric = ("seed", "fold", "took", "memory")
        print_rows(columns, rows, title=plan.experiment.name, numeric=numeric)
    for kind, labels in plan.experiment.sweep.items():
        count = format_count(len(labels), kind.removesuffix("s"))
        print_line(f"sweep: {count}: {', '.join(labels)}")
    n_cached = sum(step.stored for step in preview.steps)
    kinds = [step.stage.kind for step in preview.steps]
    trials = f", {kinds.count('trial')} trials" if "trial" in kinds else ""
    print_line(
        f"{len(kinds)} stages ({kinds.count('measure')} metrics{trials}): "
        f"{n_cached} cached, {len(kinds) - n_cached} to run"
    )
    for metric, model, missing in plan.undefined:
        print_line(f"{metric.label} will be undefined for {model.label}: it provides no {missing}")
    from recbias.runner.request_totals import asks_language_models

    if asks_language_models(plan.experiment):
        show_requests(requests, quiet=quiet)
    if preview.expected_seconds is not None:
        time = describe_seconds(preview.expected_seconds)
        print_line(f"estimated time: {time}, from stored results of the same kind")
    if preview.memory_mb is None:
        print_line("estimated memory: unknown without stored results of the same kind")
    else:
        print_line(f"estimated memory: {preview.memory_mb:,.0f} MB")


def _render_time(step: Step) -> str:
    """Return the time that a stage took or, after ``~``, is expected to take."""
    if step.expected_seconds is not None:
        return f"~{describe_seconds(step.expected_seconds)}"
    return "" if step.seconds is None else f"{step.seconds:.2f} s"


def _render_state(step: Step) -> str:
    """Return whether a stage is cached, and for a search the number of its cached trials."""
    if step.stored:
        return "cached"
    if step.stage.kind == "search":
        return f"to run ({step.trials} of {len(step.stage.inputs)} trials cached)"
    return "to resume from its checkpoint" if step.partial else "to run"


def _take_options(act: Callable[[SimpleNamespace], None]) -> Callable[..., None]:
    """Return a command with the options that ``run`` and ``plan`` share."""
    declared = dict(_declare_options())

    def command(**given: Any) -> None:
        chosen = {name: given[name] for name in declared}
        chosen["overrides"] = chosen["overrides"] or ()
        with report_errors(), open_document(is_wanted=given["as_json"]) as document:
            act(SimpleNamespace(**given, chosen=chosen, document=document))

    _declare(command, {"spec": (_Spec, Parameter.empty), **declared, **_OF_THE_COMMAND})
    command.__doc__ = act.__doc__
    return command


_Spec: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="SPEC", help="A file, or the name of a packaged spec.", show_default=False
    ),
]
_Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show warnings and errors, but no progress.")
]
_Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", "-v", help="Show every stage.")]
_OF_THE_COMMAND = {
    "quiet": (_Quiet, False),
    "verbose": (_Verbose, False),
    "as_json": (AsJson, False),
}
"""The options that are not those of a run from Python, with their defaults."""


def _declare(command: Any, parameters: Mapping[str, tuple[Any, Any]]) -> None:
    """Give a command parameters for typer: types and defaults by name."""
    command.__annotations__ = {name: hint for name, (hint, _) in parameters.items()}
    command.__signature__ = Signature(
        [
            Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint, default=default)
            for name, (hint, default) in parameters.items()
        ]
    )


def _declare_options() -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the options of a run by name, each with its type for typer and its default."""
    defaults = {field.name: field.default for field in fields(RunOptions)}
    for name, hint in list_option_types().items():
        flag = next((each for each in get_args(hint)[1:] if isinstance(each, Flag)), None)
        if flag is None:
            continue
        kind = get_args(hint)[0]
        option = typer.Option(
            *filter(None, [flag.name or (f"--{name}" if kind is bool else "")]),
            help=flag.help,
            metavar=flag.metavar,
            envvar=flag.envvar,
            show_default=flag.default or True,
        )
        is_repeatable = kind == Sequence[str]
        if is_repeatable:
            kind = list[str] | None
        elif str in get_args(kind) and Path in get_args(kind):
            kind = Path if defaults[name] else Path | None
        yield name, (Annotated[kind, option], None if is_repeatable else defaults[name])


def _has_multiverse(options: SimpleNamespace) -> bool:
    """Return whether a spec, or a file that it extends, has choices."""
    from recbias.config.source import find_spec, read_spec

    try:
        document = read_spec(find_spec(Path(options.spec)), options.chosen["overrides"])
    except UserError:  # which the run reports
        return False
    return bool(document.data.get("multiverse"))


@_take_options
def run(options: SimpleNamespace) -> None:
    """Run or resume the experiment of a SPEC, and print a summary."""
    from recbias import api

    if _has_multiverse(options):
        from recbias.cli.multiverse import run_multiverse

        run_multiverse(options)
        return
    with show_progress(options) as observer:
        finished_run = api.run(options.spec, observer=observer, **options.chosen)
    code = _find_exit_code(finished_run)
    if options.as_json:
        _show_failures(finished_run)
        options.document.update(_describe_run(finished_run, code, MEANINGS[code]))
    else:
        _show_run(finished_run)
    if code != DONE:
        raise typer.Exit(code)


def _find_exit_code(run: Run) -> int:
    """Return the exit code of a finished run: failures come before failed checks."""
    if len(run.failures):
        return USER if run.failures["user"].all() else FAILED
    return OUT_OF_TOLERANCE if run.checks["failed"].any() else DONE


@_take_options
@pause_collection()  # of a large plan it takes as long as the plan, and finds nothing
def plan(options: SimpleNamespace) -> None:
    """Validate a SPEC; print its stages, requests, time and memory."""
    from recbias import api
    from recbias.runner.execute import Executor
    from recbias.runner.request_totals import count_requests

    if _has_multiverse(options):
        from recbias.cli.multiverse import show_plan

        show_plan(options)
        return
    api.create_executor(options.executor, options.workers)
    with show_progress(options):
        run_plan, store = api.plan(options.spec, **options.chosen)
    for warning in api.list_warnings(run_plan):
        print_line(f"warning: {warning}", to_stderr=True)
    with show_progress(options) as observer:
        requests = count_requests(run_plan, Executor(store, observer, fresh=options.fresh))
        steps, unchecked = api.preview_run(run_plan, store, fresh=options.fresh)
    if options.as_json:
        options.document.update(describe_plan(run_plan, steps, requests, unchecked))
    else:
        _show_plan(run_plan, steps, requests, quiet=options.quiet, verbose=options.verbose)
    note = "note: labels, columns and given lists of {} are checked when it is loaded"
    for name in unchecked:
        print_line(note.format(name), to_stderr=True)
