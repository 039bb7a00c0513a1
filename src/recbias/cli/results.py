"""Commands about finished runs: ``runs``, ``report``, ``examples``, ``explain``, ``verify``.

And about systems in production: ``probe`` and ``monitor``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from recbias.cli.output import (
    DONE,
    OUT_OF_TOLERANCE,
    Answer,
    Data,
    Out,
    Part,
    RunName,
    command,
    select_first,
    show_progress,
)
from recbias.core.context import collect_warnings
from recbias.core.errors import UnknownName
from recbias.core.files import to_local_path
from recbias.core.text import normalize_name, shorten, suggest
from recbias.reports.run import summarize_runs, to_records
from recbias.reports.views import format_title, group_rows
from recbias.reports.wording import (
    format_count,
    format_duration,
    make_heading,
    pick,
    tabulate,
    tabulate_frame,
)

# ---- runs and their reports ----

_MOST_MODELS = 3


@command
def runs(
    name: Annotated[str | None, typer.Argument()] = None,
    out: Out = Path("results"),
) -> Answer:
    """List the runs of a results folder, the newest first.

    Args:
        name: Only the runs of this experiment.
    """
    with collect_warnings() as warnings:
        found = summarize_runs(out)
    rows = [
        row for row in found if not name or normalize_name(row["name"]) == normalize_name(name)
    ]
    if name and not rows:
        names = {str(row["name"]) for row in found}
        remedy = suggest(name, names) if names else f"{out} has no finished run"
        raise UnknownName(f"{out} has no run of {name!r}", remedy=remedy)
    columns = {
        **pick("name", "run"),
        "started": lambda row: f"{datetime.fromisoformat(row['started']):%Y-%m-%d %H:%M}",
        "took": lambda row: format_duration(row["seconds"]),
        "models": _name_models,
        "failed": _count_failures,
    }
    title = f"{out}: {format_count(len(rows), 'run')}, the newest first"
    note = f"Started: UTC. The folder of a run is {out / 'NAME' / 'RUN'}."
    grid = tabulate(title, rows, columns, [note]).without_blanks()
    records = [{**row, "folder": str(row["folder"])} for row in rows]
    return Answer(
        {"runs": records, "warnings": warnings},
        [grid if rows else f"{out} has no finished run: recbias run SPEC writes one"],
        [f"warning: {warning}" for warning in warnings],
    )


def _name_models(row: Mapping[str, Any]) -> str:
    """Return the first models of a run, the number of the others, and ``--limit``."""
    labels, few = row["models"], f" (--limit {row['limit']})" if row["limit"] else ""
    if len(labels) <= _MOST_MODELS:
        return ", ".join(labels) + few
    shown = labels[: _MOST_MODELS - 1]
    return f"{', '.join(shown)} and {len(labels) - len(shown)} more{few}"


def _count_failures(row: Mapping[str, Any]) -> str:
    """Return the numbers of failed stages and checks; blank if there are none."""
    counts = {"stage": row["failures"], "check": row["failed_checks"]}
    return ", ".join(format_count(count, noun) for noun, count in counts.items() if count)


@command
def report(
    run: RunName,
    formats: Annotated[str, typer.Option("--format")] = "csv,json,md,html,latex",
    reference: str | None = None,
    tolerance: Annotated[float, typer.Option(min=0)] = 0.01,
    track: Annotated[str | None, typer.Option(metavar="TRACKER")] = None,
    out: Out = Path("results"),
) -> Iterator[str]:
    """Write the reports of a finished run again.

    Args:
        formats: Formats, separated by commas:
            csv,json,md,html,latex,card,card_hub,card_ll144,card_eu,pdf,png.
        reference: Published results to compare with: children/a3.
        tolerance: Largest difference that counts as agreement.
        track: Log the run to mlflow or wandb too.
    """
    from recbias.core.packages import TRACKERS
    from recbias.reports.trackers import track_run
    from recbias.reports.write import write_reports
    from recbias.runs.tables import find_run

    if track is not None and track not in TRACKERS:
        message, remedy = f"must be one of {', '.join(TRACKERS)}", suggest(track, TRACKERS)
        raise UnknownName(message, where="--track", remedy=remedy)
    folder, names = find_run(run, out), [name.strip() for name in formats.split(",")]
    paths = write_reports(folder, formats=names, reference=reference, tolerance=tolerance)
    yield from map(str, paths)
    if track is not None:
        track_run(folder, track)


_MOST_DIFFERENCES, _LONGEST = 30, 100
"""The number of differences that are printed, and of their characters; ``--json`` has all."""


@command
def verify(
    card: Path,
    run: RunName,
    out: Out = Path("results"),
) -> Answer:
    """Compare an audit card with a run, by digests.

    Args:
        card: The card.json to verify.
    """
    from recbias.runs.tables import verify as verify_card

    found = verify_card(to_local_path(card), run, out=out)
    differences = [each._asdict() for each in found.differences]
    document = {"card": found.card.digest, "same": found.is_same, "differences": differences}
    texts = [{name: shorten(text, _LONGEST) for name, text in row.items()} for row in differences]
    columns = pick("location", "stated", "found")
    grid = tabulate(format_count(len(texts), "difference"), texts, columns)
    shown: list[Part] = [select_first(grid, _MOST_DIFFERENCES, "--json lists all")] * bool(texts)
    shown.append(f"{'same' if found.is_same else 'differs'}: card {found.card.digest[:16]}")
    return Answer(document, shown, code=DONE if found.is_same else OUT_OF_TOLERANCE)


# ---- users, and why there is a gap ----

_MOST_ITEMS = 10
"""The number of items of a history or of missed items that are printed."""


@command
def examples(
    run: RunName,
    metric: str | None = None,
    group: str = "",
    worst: Annotated[int, typer.Option(min=1)] = 10,
    model: list[str] | None = None,
    out: Out = Path("results"),
) -> Answer:
    """Print the units with the worst values, and their lists.

    Args:
        metric: The metric, such as nDCG; by default the first.
        group: Only units with these labels: gender=F.
        worst: The number of units.
        model: A model; the first one selects. Repeatable. By default the best two.
    """
    from recbias.runs.tables import examples as select_examples

    with collect_warnings() as warnings:
        table = select_examples(
            run, metric=metric, group=group, worst=worst, models=model or (), out=out
        )
    rows = to_records(table)
    notes = [f"warning: {warning}" for warning in warnings]
    return Answer({"rows": rows}, _show_examples(rows), notes)


def _show_examples(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines about each unit: what it is, then the list of each model or prompt."""
    for (unit,), own in group_rows(rows, ["unit_id"]).items():
        first, has_prompts = own[0], len({row["text"] for row in own}) > 1
        labels = f" ({first['labels'].replace('&', ', ')})" if first["labels"] else ""
        yield f"{first['unit']} {unit.removeprefix(first['unit'] + '=')}{labels}"
        if first["text"] and not has_prompts:
            yield f"  text: {first['text']}"
        if first["history"]:
            yield f"  history: {_join(first['history'])}"
        for row in own:
            title = format_title(row["metric"], float(row["k"]) if row["k"] else None)
            metric = " ".join(filter(None, [make_heading(title), row["group"], row["target"]]))
            listed = f": {'; '.join(row['list'])}" if row["list"] else ""
            yield f"  {row['model']}, {metric} {row['value']:.4f}{listed}"
            if has_prompts:
                yield f"    text: {row['text']}"
            if row["missed"]:
                yield f"    missed: {_join(row['missed'])}"
            if row["neutral"]:
                yield f"    neutral: {'; '.join(row['neutral'])}"
                yield f"    new: {_list_others(row['list'], row['neutral'])}"
                yield f"    gone: {_list_others(row['neutral'], row['list'])}"


def _list_others(items: Sequence[str], known: Sequence[str]) -> str:
    return "; ".join(item for item in items if item not in known) or "nothing"


def _join(items: Sequence[str]) -> str:
    more = f" and {len(items) - _MOST_ITEMS:,} more" if len(items) > _MOST_ITEMS else ""
    return "; ".join(items[:_MOST_ITEMS]) + more


_MOST_ROWS = 10
_TITLES = {
    "parts": "what the groups differ in: parts of the gap",
    "interventions": "the gap after training on equalised data",
    "worst": "groups of users, found in one half, tested in the other",
    "changes": "models of the run",
}


@command
def explain(
    run: RunName,
    gap: Annotated[str, typer.Option()],
    model: str | None = None,
    groups: list[str] | None = None,
    anyway: bool = False,
    retrain: Annotated[
        list[str] | None, typer.Option(metavar="size|length|popularity|worst|seed")
    ] = None,
    data: Data = None,
    out: Out = Path("results"),
) -> Answer:
    """Say what a gap between two groups comes from.

    The report is written to a folder beside the run.

    Args:
        gap: The metric and the label: "nDCG by gender".
        model: The model; by default the one with the best mean.
        groups: One of the two groups. Give it twice.
        anyway: Explain a gap whose interval holds 0 too.
        retrain: Train the model again with equal: size, length, popularity; tuned for its worst
            group; or another seed. Repeatable: one training for each subset.
    """
    from recbias.claims.explain import explain as explain_gap
    from recbias.claims.interventions import read_interventions
    from recbias.reports.svg import FileNames
    from recbias.runs.tables import load

    loaded = load(run, out)
    with collect_warnings() as warnings:
        found = explain_gap(
            loaded,
            gap,
            model=model,
            groups=groups or (),
            anyway=anyway,
            retrain=read_interventions(retrain or ()),
            data=data,
            out=out,
        )
    name = FileNames().free(f"{gap} of {found.gap['model']}")
    folder = loaded.folder.parent / "explained" / name
    found.write(folder)
    shown: list[Part] = [*found.sentences, *(f"note: {note}" for note in found.notes)]
    for name, title in _TITLES.items():
        if len(rows := found.tables[name].head(_MOST_ROWS)):
            shown.append(tabulate_frame(title, rows))
    document = {
        "folder": str(folder),
        "gap": dict(found.gap),
        **{name: to_records(table) for name, table in found.tables.items()},
        "notes": [*found.notes],
        "sentences": found.sentences,
    }
    notes = [f"warning: {warning}" for warning in warnings]
    return Answer(document, [*shown, f"report: {folder / 'report.html'}"], notes)


# ---- systems in production ----


@command
def probe(
    spec: str,
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE")] = None,
    quiet: bool = False,
    out: Out = Path("results"),
) -> Answer:
    """Audit a live HTTP endpoint until every effect is decided.

    Args:
        spec: A spec file, or the name of a packaged spec.
        overrides: Override: budget.requests=600. Repeatable.
        quiet: Show no progress.
    """
    from recbias.audits.probe import probe as ask

    with nullcontext() if quiet else show_progress(quiet=False) as observer:
        listener = observer.progressed if observer else None
        found = ask(spec, overrides=overrides or (), out=out, on_progress=listener)
    document = {
        "sentences": found.sentences,
        "summary": found.summary,
        "effects": to_records(found.effects),
        "folder": str(found.folder),
    }
    return Answer(document, [*found.sentences, f"report: {found.folder / 'report.html'}"])


@command
def monitor(
    name: str,
    metric: str = "",
    by: str = "",
    alpha: float = 0.05,
    report: Path | None = None,
    out: Out = Path("results"),
) -> Answer:
    """Say since when runs or exports have a gap.

    Args:
        name: An experiment, a folder of its runs, a folder of tables named by date: user, value,
            group; or a table: date, value, std_error.
        metric: The metric; by default the first by group.
        by: The label of the users; by default the first.
        alpha: The probability of any false alarm.
        report: Write report.html and report.md into this folder.
    """
    from recbias.audits.monitor import monitor as follow

    found = follow(name, metric=metric, by=by, alpha=alpha, out=out)
    grid = tabulate_frame("runs", found.looks).without_blanks()
    shown: list[Part] = [*found.sentences, grid]
    if report is not None:
        shown.append(f"report: {found.report(report)}")
    return Answer({"sentences": [*found.sentences], "looks": to_records(found.looks)}, shown)
