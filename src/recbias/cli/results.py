"""``recbias runs``, ``report`` and ``compare``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from recbias.cli.output.document import AsJson, open_document
from recbias.cli.printing import OUT_OF_TOLERANCE, allow_closed_output, print_line, report_errors

MOST_MODELS = 3
"""The maximum number of models that ``recbias runs`` names for a run."""

DEFAULT_FORMATS = ("csv", "json", "md", "html", "latex")
"""The formats that ``recbias report`` writes: without the card, whose signature needs a key."""

FORMATS = (*DEFAULT_FORMATS, "card")
Out: TypeAlias = Annotated[Path, typer.Option(help="Folder of results.")]
Reference: TypeAlias = Annotated[
    str | None, typer.Option(help="Published results to compare with: children/a3.")
]

KeyEnv: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The environment variable with the key of the card's signature."
    ),
]


def report(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run folder, or the name of an experiment.")
    ],
    formats: Annotated[
        str,
        typer.Option(
            "--format", help="Formats, separated by commas: csv,json,md,html,latex,card."
        ),
    ] = ",".join(DEFAULT_FORMATS),
    reference: Reference = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Largest difference that counts as agreement.")
    ] = 0.01,
    key_env: KeyEnv = None,
    out: Out = Path("results"),
) -> None:
    """Write the reports of a finished run again."""
    with report_errors():
        from recbias.core.errors import Contradiction
        from recbias.reports.writers.audit_card import read_key
        from recbias.reports.writers.write import write_reports

        folder, names = find_run(run, out), parse_formats(formats)
        if key_env is not None and "card" not in names:
            remedy = "add --format card, or leave out --key-env"
            raise Contradiction("only a card is signed", where="--key-env", remedy=remedy)
        settings = {"reference": reference, "tolerance": tolerance, "key": read_key(key_env)}
        for path in write_reports(folder, formats=names, **settings):  # type: ignore[arg-type]
            print_line(path, longest=None)


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="A B ...", help="Run folders, or names of experiments."),
    ],
    reference: Reference = None,
    fail_over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[METRIC=]X",
            help="Exit with 3 if a value is worse by more than X (with --reference: differs by "
            "more). Repeatable: --fail-over 0.05 --fail-over nDCG=0.01.",
        ),
    ] = None,
    as_json: AsJson = False,
    correction: Annotated[
        str, typer.Option(help="Correction for multiple tests: none, bonferroni, holm or bh.")
    ] = "bonferroni",
    out: Out = Path("results"),
) -> None:
    """Compare runs, the oldest first, by paired tests, or runs with published results."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        from recbias.cli.comparisons import compare_side_by_side
        from recbias.cli.gates.published import compare_with_published
        from recbias.runner.checks.tolerances import Tolerances, parse_tolerance

        tolerances = Tolerances([*map(parse_tolerance, fail_over or ())])
        folders = [find_run(run, out) for run in runs]
        comparison = (
            compare_side_by_side(folders, correction, tolerances)
            if reference is None
            else compare_with_published(folders, reference, tolerances)
        )
        if as_json:
            document |= {"folders": [*map(str, folders)], **comparison.as_json()}
        else:
            with allow_closed_output():
                comparison.print()
        for line in comparison.explain_excesses():
            print_line(line, to_stderr=True)
        if comparison.worse:
            raise typer.Exit(OUT_OF_TOLERANCE)


def runs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Only the runs of this experiment.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
    out: Out = Path("results"),
) -> None:
    """List the runs of a results folder, the newest first."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        from recbias.cli.output.contents import describe_runs
        from recbias.core.stage_context import collect_warnings
        from recbias.reports.finished_runs import summarize_runs

        with collect_warnings() as warnings:
            found = summarize_runs(out)
        for warning in warnings:
            print_line(f"warning: {warning}", to_stderr=True)
        rows = select_experiment(found, name, out)
        if as_json:
            document |= {"runs": describe_runs(rows), "warnings": warnings}
        else:
            show_runs(rows, out)


def select_experiment(
    rows: Sequence[Mapping[str, Any]], name: str | None, out: Path
) -> list[Mapping[str, Any]]:
    """Return the runs of an experiment; all of them if it is None.

    Raises:
        UnknownName: No run is of the experiment.
    """
    from recbias.core.errors import UnknownName
    from recbias.core.suggestions import normalize_name, suggest

    names = {str(row["name"]) for row in rows}
    if name is None:
        return [*rows]
    chosen = [row for row in rows if normalize_name(row["name"]) == normalize_name(name)]
    if not chosen:
        remedy = suggest(name, names) if names else f"{out} has no finished run"
        raise UnknownName(f"{out} has no run of {name!r}", remedy=remedy)
    return chosen


def show_runs(rows: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Print one row for each run: its experiment, id, start, duration, models and failures."""
    from datetime import datetime

    from recbias.cli.grids import print_rows
    from recbias.reports.views.rounding import format_count, format_duration

    if not rows:
        print_line(f"{out} has no finished run: recbias run SPEC writes one")
        return
    print_rows(
        ("name", "run", "started", "took", "models", "failed"),
        [
            (
                row["name"],
                row["run"],
                f"{datetime.fromisoformat(row['started']):%Y-%m-%d %H:%M}",
                format_duration(row["seconds"]),
                _name_models(row["models"]),
                _count_failures(row),
            )
            for row in rows
        ],
        title=f"{out}: {format_count(len(rows), 'run')}, the newest first",
        notes=(f"Started: UTC. The folder of a run is {out / 'NAME' / 'RUN'}.",),
    )


def _name_models(labels: Sequence[str]) -> str:
    """Return the first models of a run, and the number of the others."""
    if len(labels) <= MOST_MODELS:
        return ", ".join(labels)
    shown = labels[: MOST_MODELS - 1]
    return f"{', '.join(shown)} and {len(labels) - len(shown)} more"


def _count_failures(row: Mapping[str, Any]) -> str:
    """Return the numbers of failed stages and checks; blank if there are none."""
    from recbias.reports.views.rounding import format_count

    counts = {"stage": row["failures"], "check": row["failed_checks"]}
    return ", ".join(format_count(count, noun) for noun, count in counts.items() if count)


def find_run(run: str, out: Path) -> Path:
    """Return a run folder: the one given, else the latest run of the experiment of that name.

    Raises:
        MissingRun: There is neither.
    """
    from recbias import runs

    return runs.find_run(run, out)


def parse_formats(text: str) -> list[str]:
    """Return the formats in a list such as ``md,html``.

    Raises:
        UnknownName: A name is not a format.
    """
    from recbias.core.errors import UnknownName
    from recbias.core.suggestions import suggest

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in FORMATS:
            message = f"no format is called {name!r}"
            raise UnknownName(message, where="--format", remedy=suggest(name, FORMATS))
    return names
