"""``recbias run`` and ``recbias plan`` of a spec with ``multiverse``."""

from __future__ import annotations

from types import SimpleNamespace

from recbias.claims.multiverse import multiverse, plan_multiverse
from recbias.cli.output import print_line, print_rows, show_progress
from recbias.reports.pages import describe_multiverse
from recbias.reports.run import to_records
from recbias.runner.options import RunOptions


def run_multiverse(options: SimpleNamespace) -> None:
    """Run every universe, and print the first line, the shares of the choices and the paths."""
    with show_progress(options) as observer:
        result = multiverse(options.spec, observer=observer, **options.chosen)
    if options.as_json:
        options.document.update(
            {
                "claim": result.claim,
                "summary": result.summary,
                "choices": to_records(result.choices),
                "folder": str(result.folder),
            }
        )
        return
    for line in (result.verdict, *describe_multiverse(result.claim, result.summary)):
        print_line(line, longest=None)
    failed = result.universes.loc[result.universes["verdict"] == "failed", "problem"]
    for problem, count in failed.value_counts().items():
        print_line(f"{count:,} failed: {problem}", longest=None)
    rows = [
        (row["choice"], f"{row['share']:.0%}", f"{row['ci_low']:.0%} to {row['ci_high']:.0%}")
        for row in to_records(result.choices.head(8))
    ]
    columns = ("choice", "share of the variance", "95% interval")
    if rows:
        print_rows(columns, rows, title="which choice decides", numeric=columns[1:2])
    print_line(f"report: {result.folder / 'report.html'}")


def show_plan(options: SimpleNamespace) -> None:
    """Print how many universes a spec has, and which stages they share."""
    planned = plan_multiverse(options.spec, RunOptions(**options.chosen)).describe()
    if options.as_json:
        options.document.update(planned)
        return
    for choice, labels in planned["choices"].items():
        print_line(f"{choice}: {', '.join(labels)}")
    sample = f" of {n:,}" if (n := planned["combinations"]) > planned["universes"] else ""
    failing = f", {planned['failing']:,} of them with a fault" if planned["failing"] else ""
    print_line(f"{planned['universes']:,} universes{sample}{failing}")
    print_line(
        f"{planned['stages']:,} stages, which are {planned['stages_unshared']:,} without sharing: "
        f"{planned['stages_stored']:,} stored, which took {planned['stored_seconds']:,.0f} s"
    )
