"""``recbias report`` and ``recbias compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from recbias.cli.printing import OUT_OF_TOLERANCE, print_line, print_text, report_errors

FORMATS = ("csv", "json", "md", "html", "latex")
Out: TypeAlias = Annotated[Path, typer.Option(help="Folder of results.")]
Reference: TypeAlias = Annotated[
    str | None, typer.Option(help="Published results to compare with: children/a3.")
]


def report(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run folder, or the name of an experiment.")
    ],
    formats: Annotated[
        str, typer.Option("--format", help="Formats, separated by commas: csv,json,md,html,latex.")
    ] = ",".join(FORMATS),
    reference: Reference = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Largest difference that counts as agreement.")
    ] = 0.01,
    out: Out = Path("results"),
) -> None:
    """Write the reports of a finished run again."""
    with report_errors():
        from recbias.reports.writers.write import write_reports

        folder, names = find_run(run, out), parse_formats(formats)
        for path in write_reports(folder, formats=names, reference=reference, tolerance=tolerance):
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    correction: Annotated[
        str, typer.Option(help="Correction for multiple tests: none, bonferroni, holm or bh.")
    ] = "bonferroni",
    out: Out = Path("results"),
) -> None:
    """Compare runs, the oldest first, by paired tests, or runs with published results."""
    with report_errors():
        from recbias.cli.comparisons import compare_side_by_side
        from recbias.cli.gates.published import compare_with_published
        from recbias.cli.gates.tolerances import explain_excess
        from recbias.reports.writers.json_report import render_value
        from recbias.runner.checks.tolerances import Tolerances, parse_tolerance

        tolerances = Tolerances([*map(parse_tolerance, fail_over or ())])
        folders = [find_run(run, out) for run in runs]
        comparison = (
            compare_side_by_side(folders, correction, tolerances)
            if reference is None
            else compare_with_published(folders, reference, tolerances)
        )
        if as_json:
            print_text(render_value(comparison.as_json()))
        else:
            comparison.print()
        for row in comparison.worse:
            print_line(explain_excess(row), to_stderr=True)
        if comparison.worse:
            raise typer.Exit(OUT_OF_TOLERANCE)


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
