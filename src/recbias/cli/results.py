"""``recbias report`` and ``recbias compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recbias.cli.faults import OUT_OF_TOLERANCE, reported
from recbias.cli.printing import print_line

FORMATS = ("csv", "json", "md", "html", "latex")


def report(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or an experiment.")],
    formats: Annotated[
        str, typer.Option("--format", help="Which, with commas: csv,json,md,html,latex.")
    ] = ",".join(FORMATS),
    reference: Annotated[str | None, typer.Option(help="Published figures: children/a3.")] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Largest difference that agrees.")
    ] = 0.01,
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
) -> None:
    """Write the reports of a stored run again."""
    with reported():
        from recbias.cli.runs import chosen_formats, find_run
        from recbias.reports.writers.write import write_reports

        folder = find_run(run, out)
        written = write_reports(
            folder,
            formats=chosen_formats(formats, FORMATS),
            reference=reference,
            tolerance=tolerance,
        )
        for path in written:
            print_line(path, longest=None)


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="A B ...", help="Run folders or names.")],
    reference: Annotated[str | None, typer.Option(help="Published figures: children/a3.")] = None,
    fail_over: Annotated[
        float | None, typer.Option(min=0, help="Leave with 3 where a figure differs by more.")
    ] = None,
    correction: Annotated[
        str, typer.Option(help="none, bonferroni, holm or bh over all tests.")
    ] = "bonferroni",
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
) -> None:
    """Compare runs side by side with paired tests, or against published figures."""
    with reported():
        from recbias.cli.comparisons import against_published, side_by_side
        from recbias.cli.runs import find_run

        folders = [find_run(each, out) for each in runs]
        if reference is not None:
            worst = against_published(folders, reference, fail_over)
        else:
            worst = side_by_side(folders, correction)
        if fail_over is not None and not worst <= fail_over:
            said = f"the largest difference is {worst:.4f}, more than {fail_over}"
            print_line(said, to_stderr=True)
            raise typer.Exit(OUT_OF_TOLERANCE)
