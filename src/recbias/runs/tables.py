"""Finished runs from Python: their tables, comparisons, worst examples, and audit cards."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from recbias.core.context import summarize_failures
from recbias.core.errors import Contradiction, MissingRun
from recbias.core.files import has_file, to_local_path
from recbias.core.machine import follow_link
from recbias.core.measures import CHECKS, FAILURES, METRICS, SIGNIFICANCE
from recbias.core.text import suggest
from recbias.reports.run import (
    REPAIR,
    RUN_COLUMNS,
    name_groups,
    read_manifest,
    read_run,
    summarize_runs,
)
from recbias.reports.verdict import build_verdict
from recbias.reports.views import collect_definitions, format_title, select_headline
from recbias.runs.compare import compare_gaps, compare_runs, label_runs, pair_runs, read_frames

if TYPE_CHECKING:
    from recbias.reports.card import Card
    from recbias.reports.gallery import Figure


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run; its tables are read when they are used first.

    In all of them ``group`` and ``target`` are blank text where they do not apply, an undefined
    value is NaN, and a seed or fold is an integer, or ``all``. A notebook shows the summary.

    Args:
        folder: ``results/<name>/<run id>``.

    Example:
        run = recbias.load("quickstart")
        run.summary
    """

    folder: Path

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """The metric values: one row each, with the columns of ``metrics.csv``."""
        return _restore_types(read_run(self.folder).metrics)

    @cached_property
    def significance(self) -> pd.DataFrame:
        """The comparisons: one row each, with the columns of ``significance.csv``."""
        return _restore_types(read_run(self.folder).significance)

    @cached_property
    def per_unit(self) -> pd.DataFrame | None:
        """The values of each unit, as in ``per_unit.parquet``; None if no metric has units."""
        table = read_run(self.folder).per_unit
        return None if table is None else _restore_types(table)

    @cached_property
    def lists(self) -> pd.DataFrame | None:
        """The recommendations, as in ``lists.parquet``; None if no model recommends lists."""
        table = read_run(self.folder).lists
        return None if table is None else _restore_types(table)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The spec, environment, stages, warnings and failures of the run."""
        return dict(read_run(self.folder).manifest)

    @cached_property
    def failures(self) -> pd.DataFrame:
        """The stages that failed, with the reasons; no rows if none did."""
        return FAILURES.build(self.manifest["failures"])

    @cached_property
    def checks(self) -> pd.DataFrame:
        """The verdicts of the spec's checks: one row for each check, model and value."""
        return _restore_types(CHECKS.build(self.manifest.get("checks", [])))

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The values without group and target: a row for each dataset and model, by metric.

        A column has the name of its metric in the reports. Where there are several seeds or folds,
        the values are the means over them.
        """
        run = read_run(self.folder)
        definitions = collect_definitions(run)
        is_overall = (run.metrics[["group", "target"]].fillna("") == "").all(axis=1)
        rows = select_headline(run, run.metrics[is_overall])
        titles = [format_title(*pair) for pair in zip(rows["metric"], rows["k"], strict=True)]
        names = [definitions[title].heading for title in titles]
        table = rows.assign(metric=names).set_index(["dataset", "model", "metric"])["value"]
        order = rows[["dataset", "model"]].drop_duplicates()
        wide = table.unstack("metric").reindex(pd.MultiIndex.from_frame(order))  # noqa: PD010
        return wide[list(dict.fromkeys(names))].rename_axis(columns=None)

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """The figures by the names of their files: ``run.figures["long-tail"].save("x.pdf")``."""
        from recbias.reports.render import Content

        content = Content(name_groups(read_run(self.folder)))
        return {figure.name: figure for figure in content.list_figures()}

    def report(self, formats: Sequence[str] = ("html",)) -> Path:
        """Write the reports again.

        Args:
            formats: Those of ``report: {formats: [...]}`` in a spec.

        Returns:
            The path of the HTML page, or of the run folder if HTML is not among the formats.
        """
        from recbias.reports.write import write_reports

        write_reports(self.folder, formats=formats)
        return self.folder / "report.html" if "html" in formats else self.folder

    def __repr__(self) -> str:
        return f"{build_verdict(read_run(self.folder)).line}\n{self.folder}"

    def _repr_html_(self) -> str:
        """Return the verdict and the summary as a table, for a notebook."""
        verdict = build_verdict(read_run(self.folder))
        failures = "".join(
            f"<p>failed: {html.escape(f'{failure.stage}: {failure.message}')}</p>"
            for failure in summarize_failures(self.manifest["failures"])
        )
        name = html.escape(f"{self.manifest['name']}: {self.folder}")
        more = "".join(f"<li>{html.escape(text)}</li>" for text in verdict.sentences)
        lead = f"<p><strong>{html.escape(verdict.line)}</strong></p><ul>{more}</ul>"
        return f"{lead}<p>{name}</p>{self.summary.to_html(float_format='{:.4f}'.format)}{failures}"


def _restore_types(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the same types in each of its files, so that they can be joined."""
    categories = table.select_dtypes("category").columns
    table = table.astype(dict.fromkeys(categories, "object"))
    for name in table.columns.intersection(["seed", "fold"]):
        table[name] = [
            int(value) if str(value).isdecimal() else value for value in table[name].tolist()
        ]
    counts = METRICS.counts | SIGNIFICANCE.counts
    for name in table.columns.intersection([*counts]):
        if table[name].notna().all():
            table[name] = table[name].astype("int64")
    if "significant" in table:
        table["significant"] = table["significant"].astype(str) == "True"
    return table


def find_run(run: Path | str, out: Path | str = "results") -> Path:
    """Return a run folder: the one given, else the latest run of the experiment of that name.

    Raises:
        MissingRun: There is neither.
    """
    path, out = to_local_path(run), to_local_path(out)
    for folder in (path, follow_link(out / str(run) / "latest"), follow_link(path / "latest")):
        if has_file(folder / "manifest.json"):
            return folder.resolve()
    if has_file(path / "metrics.csv"):
        raise MissingRun("manifest.json does not exist", where=str(path), remedy=REPAIR)
    names = sorted(latest.parent.name for latest in out.glob("*/latest"))
    message = (
        f"{str(run)!r} is neither a run folder nor an experiment with a finished run in {out}"
    )
    remedy = suggest(path.name or str(run), names) if names else f"{out} has no finished run"
    raise MissingRun(message, remedy=remedy)


def load(run: Path | str, out: Path | str = "results") -> Run:
    """Load a finished run.

    Args:
        run: A run folder, or the name of an experiment, for its latest run.
        out: The folder of results in which a name is looked up.

    Raises:
        MissingRun: There is no such run in ``out``.

    Example:
        recbias.load("quickstart").metrics
    """
    folder = find_run(run, out)
    read_run(folder)
    return Run(folder)


def list_runs(out: Path | str = "results") -> pd.DataFrame:
    """Return the finished runs of a results folder, the newest first, with ``RUN_COLUMNS``.

    A run folder whose files are damaged is skipped with a warning.

    Example:
        recbias.list_runs().query("failures == 0")
    """
    rows = [{**row, "models": ", ".join(row["models"])} for row in summarize_runs(out)]
    return pd.DataFrame(rows, columns=list(RUN_COLUMNS))


def compare(
    *runs: Run | Path | str, out: Path | str = "results", correction: str = "bonferroni"
) -> pd.DataFrame:
    """Return the values that runs share side by side, with differences and paired t-tests.

    An entry whose settings are equal in two runs has the name of the earlier one, if only its
    automatic name differs.

    The rows after the metric values are the gaps between groups (``group`` is ``g - h``). The
    tests of the metric values are one family, those of the gaps another.

    Args:
        runs: Two or more runs, run folders, or names of experiments.
        out: The folder in which experiments are looked up by name.
        correction: ``none``, ``bonferroni``, ``holm`` or ``bh``.

    Raises:
        Contradiction: There are fewer than two runs.
        MissingRun: A run does not exist.
        MixedRuns: Two of the runs share no metric value.

    Example:
        recbias.compare("before", "after").query("p_adjusted < 0.05")
    """
    if len(runs) < 2:
        message = f"{len(runs)} run(s) cannot be compared"
        raise Contradiction(message, remedy="name two runs: compare('before', 'after')")
    loaded = [run if isinstance(run, Run) else load(run, out) for run in runs]
    folders = [run.folder for run in loaded]
    frames = [*map(read_frames, label_runs(folders), map(read_run, folders))]
    pairs = pair_runs(frames)
    values = compare_runs(pairs, correction=correction)
    gaps = compare_gaps(pairs, correction=correction)
    return pd.concat([values, gaps], ignore_index=True) if len(gaps) else values


def examples(
    run: Run | Path | str,
    *,
    metric: str | None = None,
    group: str = "",
    worst: int = 10,
    models: Sequence[str] = (),
    out: Path | str = "results",
) -> pd.DataFrame:
    """Return the users, prompts or sentences for which a metric is worst, with their lists.

    Only the first dataset, seed and fold of a run are read. Histories and test items come from the
    stored stages of the run; where these are gone, they are empty, with a warning.

    Args:
        run: A run, a run folder, or the name of an experiment.
        metric: A metric with a value for each unit, such as ``nDCG`` or ``nDCG@5``; by default the
            first of the run. Of one that is best at 0, or has no better and worse, the values that
            are farthest from 0 are the worst.
        group: Only units with these labels: ``gender=F``, ``gender=F&age=25``.
        worst: The number of units.
        models: The models whose lists are shown; the first one selects the units. By default the
            two with the best means.
        out: The folder in which experiments are looked up by name.

    Returns:
        A row for each unit and model, with ``EXAMPLE_COLUMNS``. ``history`` (the latest item
        first), ``list`` and ``missed`` (test items that are not in the list) are tuples of titles,
        or of ids where the items have no titles. A unit of several prompts has a row for each
        prompt; where prompts are compared with a neutral one, it has the effect of its ``group``
        and the ``neutral`` list.

    Raises:
        MissingEvidence: The run has no values of single units, or no labels.
        UnknownName: The run has no such metric, model, label or value of a label.

    Example:
        recbias.examples("quickstart", group="gender=f", worst=3)[["unit_id", "value", "missed"]]
    """
    from recbias.reports.examples import EXAMPLE_COLUMNS, select_examples

    tables = read_run((run if isinstance(run, Run) else load(run, out)).folder)
    rows = select_examples(tables, metric, group, worst, models)
    return pd.DataFrame(rows, columns=list(EXAMPLE_COLUMNS))


# ---- an audit card beside its run ----


class _Difference(NamedTuple):
    """What differs: where it is, what the card or the manifest states, and what the run has."""

    location: str
    stated: str
    found: str


@dataclass(frozen=True)
class Verification:
    """What the verification of a card found.

    Args:
        card: The card.
        differences: What differs: digests, files, figures, definitions.
    """

    card: Card
    differences: tuple[_Difference, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def verify(
    card: Path | str,
    run: Run | Path | str,
    *,
    out: Path | str = "results",
) -> Verification:
    """Compare a card with a run, and return what differs.

    The files of the run are compared with the digests in the card, its tables and reports with
    those in ``manifest.json``, and the content of the card with the spec, manifest and tables of
    the run.

    Args:
        card: The path of ``card.json``.
        run: A run, its folder, or the name of an experiment, for its latest run.
        out: The folder of results in which a name is looked up.

    Raises:
        UserError: The card cannot be read or is none, or the run does not exist.

    Example:
        recbias.verify("results/audit/latest/card.json", "audit").is_same
    """
    from recbias.reports.card import build_card, compute_card_digest, read_card

    read = read_card(Path(card))
    folder = run.folder if isinstance(run, Run) else find_run(run, out)
    digest, differences = compute_card_digest(read), []
    if digest != read.digest:
        differences.append(_Difference("digest of the card", read.digest, digest))
    try:
        differences += _compare_files(read, folder)
        skipped = {"files", "digest"}
        pair = (each.model_dump(exclude=skipped) for each in (read, build_card(read_run(folder))))
        differences += _compare("", *pair)
    except MissingRun as error:
        differences.append(_Difference("the run cannot be read", "", f"{error}; {error.remedy}"))
    return Verification(read, tuple(differences))


def _compare_files(card: Card, folder: Path) -> Iterator[_Difference]:
    """Yield the files of a run that are not those of the card, or not as they were written."""
    from recbias.reports.card import digest_files, digest_inside

    manifest = read_manifest(folder / "manifest.json")
    found = digest_files(folder, manifest.get("files", {}))
    for name in {**card.files, **found}:
        pair = card.files.get(name, "absent"), found.get(name, "absent")
        if pair[0] != pair[1]:
            yield _Difference(f"file {name}", *pair)
    reports = manifest.get("reports", {})
    for name, stated in {**manifest.get("digests", {}), **reports}.items():
        digest = digest_inside(folder, name)
        is_absent = name in reports and digest == "absent"
        is_named = card.files.get(name) != found.get(name)
        if digest != stated and not is_absent and not is_named:
            yield _Difference(f"file {name}: as written", stated, digest)


def _compare(location: str, card: Any, run: Any) -> Iterator[_Difference]:
    """Yield each value of a card that differs from that of the run; numbers up to rounding."""
    if isinstance(card, dict) and isinstance(run, dict):
        for name in {**card, **run}:
            inner = f"{location}: {name}" if location else name
            yield from _compare(inner, card.get(name, "absent"), run.get(name, "absent"))
    elif isinstance(card, list) and isinstance(run, list) and len(card) == len(run):
        for number, pair in enumerate(zip(card, run, strict=True), 1):
            yield from _compare(f"{location}: {_name_row(pair[1]) or number}", *pair)
    elif isinstance(card, float) and isinstance(run, float):
        if not math.isclose(card, run, rel_tol=1e-9, abs_tol=1e-15):
            yield _Difference(location, str(card), str(run))
    elif card != run:
        yield _Difference(location, *map(_format, (card, run)))


def _name_row(row: Any) -> str:
    """Return the texts of a row, which say what it is about."""
    texts = row.values() if isinstance(row, dict) else ()
    return " ".join(text for text in texts if text and isinstance(text, str))[:80]


def _format(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value):,} rows"
    return "undefined" if value is None else str(value)
