"""Since when runs or exports of a system have had a gap, however often that is looked at."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from recbias.core.dataset import FloatArray
from recbias.core.errors import (
    MalformedLine,
    MissingEvidence,
    MissingRun,
    NothingLeft,
    OutOfRange,
)
from recbias.core.files import to_local_path
from recbias.core.text import suggest
from recbias.formats.delimited import Table
from recbias.formats.tables import read_text_table
from recbias.formats.text_files import get_suffix
from recbias.reports.run import RunTables, read_run
from recbias.statistics.confidence_sequences import find_since

_RUN_ID = re.compile(r"(\d{4})(\d\d)(\d\d)T\d{6}Z-[0-9a-f]{8}")
_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")
_CELL = re.compile(r"(\d{4})(?:-(\d{1,2})-(\d{1,2})|(\d\d)(\d\d))([T ]\S.*)?")
_CHANGED, _Z = 3.0, 1.96
"""The standard errors of a change, and of an interval."""

_NEW = 1e-6
"""A run whose estimate has a smaller share of its variance that earlier runs do not have is a
repetition."""

_COLUMNS = ("date", "value", "std_error")
_SUFFIXES = frozenset({".csv", ".tsv", ".jsonl", ".parquet"})


@dataclass(frozen=True, eq=False)
class Monitor:
    """The gaps of a series of runs.

    Args:
        sentences: The verdict, then what it rests on.
        looks: A row for each run, model and pair of groups: ``date``, ``model``, ``a``, ``b``,
            ``difference`` (of ``a`` less ``b``), ``std_error``, ``e`` (the largest e-value of
            "there never was a gap" until then) and ``since``, blank before it is decided.
    """

    sentences: Sequence[str]
    looks: pd.DataFrame

    @property
    def verdict(self) -> str:
        """The first line."""
        return self.sentences[0]

    def __str__(self) -> str:
        """Return the verdict."""
        return self.verdict

    def report(self, folder: Path | str) -> Path:
        """Write ``report.html`` and ``report.md`` into a folder; return the page."""
        from recbias.reports.pages import render_monitor

        render_monitor(to_local_path(folder), self.sentences, self.looks)
        return to_local_path(folder) / "report.html"


@dataclass(frozen=True, eq=False)
class _Series:
    """The estimates of a gap in time, and their covariance."""

    model: str
    a: str
    b: str
    dates: Sequence[str]
    estimates: FloatArray
    covariance: FloatArray
    n_units: int = 0
    lacking: Sequence[str] = ()  # the dates of runs with less than two users of a group


def monitor(
    name: Path | str,
    *,
    metric: str = "",
    by: str = "",
    alpha: float = 0.05,
    out: Path | str = "results",
) -> Monitor:
    """Say since when a gap between two groups exists in a series of runs.

    Of each run the difference of the groups' means is one estimate. Runs that share users are
    correlated: the covariance of their estimates is that of the values of the users, summed over
    users, so a user who is in every run counts as one, not as many. The e-value of "there never
    was a gap" adds up all dates since which there may be one; it reaches ``1 / alpha`` at any time
    with a probability of at most ``alpha`` if there is none. Models and pairs of groups are one
    family (Bonferroni); baselines are none of them. Estimates are taken as normal, so groups need
    some dozens of users. A run with the values of earlier ones is left out.

    Args:
        name: The name of an experiment; a folder of its runs; a folder of tables with a date in
            their names and the columns ``user``, ``value`` and ``group``, without which the gap is
            that of the mean to 0; or a table with the columns ``date``, ``value`` and
            ``std_error``, of estimates from different users. A user's values in a table are
            averaged.
        metric: The metric that the runs have by group; by default the first.
        by: The label of the users; by default the first.
        alpha: The probability of any false alarm.
        out: The folder in which a name is looked up.

    Raises:
        MissingRun: There is no such experiment.
        MissingEvidence: No run has a metric by group.
        NothingLeft: Fewer than two runs have it, or its values do not differ between users.
        OutOfRange: ``alpha`` is not between 0 and 1.
        MalformedLine: A value of a table is infinite, or a date is not written as 2026-01-05.

    Example:
        recbias.monitor("shop", metric="nDCG", by="gender").looks
    """
    if not 1e-12 <= alpha < 1:
        message = f"must be a number above 0 and below 1, not {alpha:g}"
        raise OutOfRange(message, where="--alpha", remedy="give --alpha 0.05")
    path, lacking, limited = to_local_path(name), set[str](), list[str]()
    is_table = path.is_file()
    if is_table:
        series, title = [_read_export(path)], path.name
    else:
        folder = _find_folder(name, out)
        runs = _list_runs(folder)
        if runs or not (exports := _list_exports(folder)):
            limited = [date for date, run in runs if run.manifest.get("limit")]
            runs = [(date, run) for date, run in runs if not run.manifest.get("limit")]
            if limited and not runs:
                message = "all runs were made with --limit"
                raise NothingLeft(message, where=str(name), remedy="run without it")
            values, title = _collect(runs, metric, by)
        else:
            values, title = _read_users(exports), folder.name
            lacking = {date for date, _ in exports} - {*values["date"]}
        series = [*_list_series(values)]
    if not series:
        raise NothingLeft("no pair of groups is in two runs or files", where=str(name))
    followed = [_follow(each, alpha / len(series), alpha) for each in series]
    tables = [table for table, _ in followed]
    keys = [f"{each.model}|{each.a}|{each.b}" for each in series]
    findings = dict(zip(keys, (finding for _, finding in followed), strict=True))
    looks = pd.concat(tables, ignore_index=True)
    if looks.empty:
        message = f"the values of {title} do not differ between users: a gap has no standard error"
        raise NothingLeft(message, where=str(name))
    left_out = [*_describe_left_out(series, tables, lacking)]
    if limited:
        left_out.append(f"Left out, as they were made with --limit: {', '.join(limited)}.")
    said = _describe(looks, findings, title, alpha, left_out, is_table=is_table)
    return Monitor([*said], looks)


def _find_folder(name: Path | str, out: Path | str) -> Path:
    out = to_local_path(out)
    folder = next((each for each in (to_local_path(name), out / str(name)) if each.is_dir()), None)
    if folder is None:
        names = sorted(path.parent.name for path in out.glob("*/latest"))
        message = f"{str(name)!r} is neither an experiment in {out} nor a folder nor a table"
        raise MissingRun(message, remedy=suggest(str(name), names))
    return folder


def _list_runs(folder: Path) -> list[tuple[str, RunTables]]:
    """Return the runs of an experiment with their dates, in time."""
    found = [(each, _RUN_ID.fullmatch(each.name)) for each in sorted(folder.iterdir())]
    return [("-".join(match.groups()), read_run(each)) for each, match in found if match]


def _list_exports(folder: Path) -> list[tuple[str, Path]]:
    """Return the tables of a folder with the dates in their names, in time."""
    paths = [path for path in folder.iterdir() if get_suffix(path) in _SUFFIXES]
    found = [(_DATE.search(path.name), path) for path in paths]
    remedy = "name the file 2026-01-05.csv, or move it out of the folder"
    for match, path in found:
        if match is None:
            raise MissingEvidence("has no date in its name", where=str(path), remedy=remedy)
        try:
            dt.date(*map(int, match.groups()))
        except ValueError as error:
            message = f"{match.group()} in its name is no date"
            raise MissingEvidence(message, where=str(path), remedy=remedy) from error
    exports = sorted(("-".join(match.groups()), path) for match, path in found if match)
    for (date, path), (next_date, other) in pairwise(exports):
        if date == next_date:  # two looks at one day would be two chances of a false alarm
            message = f"has the date {date} of {path.name}, too"
            raise MissingEvidence(message, where=str(other), remedy="join the tables of a date")
    return exports


def _read_users(exports: Sequence[tuple[str, Path]]) -> pd.DataFrame:
    """Return the mean value of each user in each table."""
    rows = []
    for at, (date, path) in enumerate(exports):
        table = read_text_table(path)
        table.need("user", "value")
        groups = [group or "" for group in table.optional("group")]
        columns = {
            "unit_id": table.ids("user"),
            "value": _read_finite(table, "value"),
            "group": groups,
        }
        rows.append(pd.DataFrame(columns).assign(run=at, date=date, model="", dataset=""))
    values = pd.concat(rows).dropna(subset=["value"])
    if values["group"].any():  # a user without a group is in none
        values = values[values["group"] != ""]
    keys = ["run", "date", "model", "group", "dataset", "unit_id"]
    return values.groupby(keys)["value"].mean().reset_index()


def _read_finite(table: Table, name: str) -> FloatArray:
    """Return a column of numbers; raises MalformedLine if one is infinite."""
    numbers = table.numbers(name)
    if (rows := np.flatnonzero(np.isinf(numbers))).size:
        message = f"the {name} {numbers[rows[0]]:g} is not finite"
        raise MalformedLine(
            message, where=table.place(int(rows[0])), remedy="leave the cell empty"
        )
    return numbers


def _collect(
    runs: Sequence[tuple[str, RunTables]], metric: str, by: str
) -> tuple[pd.DataFrame, str]:
    """Return the mean value of each unit in each run, and the metric with its label."""
    rows = []
    for at, (date, run) in enumerate(runs):
        if run.per_unit is None:
            continue
        table = run.per_unit.dropna(subset=["value"]).astype({"group": str, "metric": str})
        is_grouped = table["group"].str.startswith(f"{by}=" if by else "")
        is_grouped &= table["group"].str.contains("=", regex=False)
        is_wanted = table["metric"].str.split(r"[(@]", regex=True).str[0].str.lower()
        table = table[is_grouped & (is_wanted == metric.lower() if metric else True)]
        baselines = [each["label"] for each in run.manifest["models"] if each.get("is_baseline")]
        table = table[~table["model"].isin(baselines)]
        rows.append(table.assign(run=at, date=date))
    values = pd.concat(rows) if rows else pd.DataFrame()
    if values.empty:
        message = f"no run has {metric or 'a metric'} by {by or 'groups of users'}, by unit"
        remedy = "add metrics: [{name: nDCG, by: gender}] to the spec, and run it"
        raise MissingEvidence(message, remedy=remedy)
    first = values.iloc[0]
    label = by or first["group"].partition("=")[0]
    values = values[(values["metric"] == first["metric"]) & (values["k"].isin([first["k"]]))]
    values = values[values["group"].str.startswith(f"{label}=")]
    keys = ["run", "date", "model", "group", "dataset", "unit_id"]
    means = values.astype({"dataset": str, "unit_id": str, "model": str}).groupby(keys)["value"]
    return means.mean().reset_index(), f"{first['metric'].partition('(')[0]} by {label}"


def _list_series(values: pd.DataFrame) -> Iterator[_Series]:
    for model, own in values.groupby("model", sort=False):
        names = sorted(own["group"].unique())
        for pair in [("",)] if names == [""] else combinations(names, 2):
            dates, estimates, influences, lacking = [], [], [], []
            for _, run in own.groupby("run"):
                groups = [run[run["group"] == group] for group in pair]
                if min(map(len, groups)) < 2:
                    lacking.append(str(run["date"].iloc[0]))
                    continue
                means = [_average(group["value"]) for group in groups]
                dates.append(str(run["date"].iloc[0]))
                estimates.append(means[0] - sum(means[1:]))
                parts = [
                    sign
                    * (group.set_index(["dataset", "unit_id"])["value"] - mean)
                    / (len(group) - 1)
                    for sign, group, mean in zip((1, -1), groups, means, strict=False)
                ]
                influences.append(pd.concat(parts).groupby(level=[0, 1]).sum())
            if len(dates) > 1:
                matrix = pd.concat(influences, axis=1).fillna(0.0).to_numpy(dtype=np.float64)
                covariance = matrix.T @ matrix
                ends = (pair[0], pair[-1] if pair[1:] else "")
                yield _Series(
                    *(str(model), *ends, dates, np.array(estimates), covariance, len(matrix)),
                    lacking=lacking,
                )


def _average(values: pd.Series[float]) -> float:
    """Return the mean, which is exact where all values are equal, so that they have no spread."""
    return float(values.iloc[0] if values.min() == values.max() else values.mean())


def _read_export(path: Path) -> _Series:
    table = read_text_table(path)
    table.need(*_COLUMNS)
    read = np.array([_read_date(table, row) for row in range(len(table.texts("date")))])
    order = np.argsort(read, kind="stable")
    value, error = (_read_finite(table, name)[order] for name in _COLUMNS[1:])
    return _Series("", "", "", read[order].tolist(), value, np.diag(error**2))


def _read_date(table: Table, row: int) -> str:
    """Return a date as ``2026-01-05``, with the time that follows it."""
    text = str(table.texts("date")[row]).strip()
    match = _CELL.fullmatch(text)
    parts = [int(part) for part in match.groups()[:-1] if part] if match else []
    try:
        return dt.date(*parts).isoformat() + (match[6] or "" if match else "")
    except (TypeError, ValueError) as error:
        remedy = "write dates as 2026-01-05: year, month, day"
        message = f"{text!r} is no date"
        raise MalformedLine(message, where=table.place(row), remedy=remedy) from error


def _select_new(covariance: FloatArray) -> list[int]:
    """Return the estimates that are not determined by those before them."""
    kept: list[int] = []
    for t, variance in enumerate(np.diag(covariance)):
        cross, own = covariance[t, kept], covariance[np.ix_(kept, kept)]
        rest = variance - (cross @ np.linalg.solve(own, cross) if kept else 0.0)
        if rest > _NEW * variance:
            kept.append(t)
    return kept


class _Ended(NamedTuple):
    """A gap that the latest looks do not show: since when, and the means before and after."""

    date: str
    before: float
    after: float


class _Finding(NamedTuple):
    """Since when there was a gap, whether its end is seen, and whether it is decided by now."""

    since: str
    end: _Ended | None
    is_decided: bool


def _find_end(
    dates: Sequence[str], estimates: FloatArray, covariance: FloatArray
) -> _Ended | None:
    """Return since when estimates show a gap no longer; None if no end is seen.

    They are divided where the means before and after differ most, in standard errors. The gap has
    ended if these are more than 3, and the interval of the mean after it holds 0.
    """
    found, most, precision = None, _CHANGED, np.linalg.inv(covariance)
    for at in range(1, len(estimates)):
        is_after = np.arange(len(estimates)) >= at
        sides = np.stack([~is_after, is_after]).astype(np.float64)
        errors = np.linalg.inv(sides @ precision @ sides.T)
        before, after = (errors @ sides @ precision @ estimates).tolist()
        z = abs(before - after) / np.sqrt(errors[0, 0] + errors[1, 1] - 2 * errors[0, 1])
        if z > most:
            most, is_gone = z, abs(after) <= _Z * np.sqrt(errors[1, 1])
            found = _Ended(dates[at], before, after) if is_gone else None
    return found


def _follow(series: _Series, level: float, alpha: float) -> tuple[pd.DataFrame, _Finding | None]:
    kept = _select_new(series.covariance)
    if not kept:
        return pd.DataFrame(), None
    covariance = series.covariance[np.ix_(kept, kept)]
    found = find_since(series.estimates[kept], covariance, alpha, series.n_units)
    e = np.exp(np.minimum(np.maximum.accumulate(found.log_e), 700.0))
    dates = np.array(series.dates, dtype=object)[kept]
    since = np.where(e * level >= 1, dates[found.start], "")
    is_decided = math.exp(min(found.log_e[-1], 700.0)) * level >= 1
    start = int(found.start[-1 if is_decided else np.argmax(found.log_e)])
    estimates, later = series.estimates[kept], slice(start, None)
    table = pd.DataFrame(
        {
            "date": dates,
            "model": series.model,
            "a": series.a,
            "b": series.b,
            "difference": estimates,
            "std_error": np.sqrt(np.diag(covariance)),
            "e": e,
            "since": since,
        }
    )
    end = _find_end(dates[later].tolist(), estimates[later], covariance[later, later])
    return table, _Finding(str(dates[start]), end, is_decided)


def _describe_left_out(
    series: Sequence[_Series], tables: Sequence[pd.DataFrame], lacking: set[str]
) -> Iterator[str]:
    if dates := sorted(lacking.union(*(each.lacking for each in series))):
        yield f"Left out, as a group has fewer than two users: {', '.join(dates)}."
    pairs = [*zip(series, tables, strict=True)]
    if n := min(len(each.dates) - len(table) for each, table in pairs):
        yield f"{n} runs have the values of earlier ones, or equal values, and are left out."
    for each, table in pairs:
        if table.empty:
            what = " of ".join(filter(None, (f"{each.a} less {each.b}".strip(), each.model)))
            yield f"The values of {what} do not differ between users: no standard error."


def _describe(
    looks: pd.DataFrame,
    findings: Mapping[str, _Finding | None],
    title: str,
    alpha: float,
    left_out: Sequence[str],
    *,
    is_table: bool,
) -> Iterator[str]:
    said, open_rows, family = [], [], len(findings)
    for (model, a, b), rows in looks.groupby(["model", "a", "b"], sort=False):
        last, decided = rows.iloc[-1], rows[rows["since"] != ""]
        pair = f", {a} less {b}" if a else ""
        what = f"{title}{pair}{f' of {model}' if model else ''}"
        finding = findings[f"{model}|{a}|{b}"]
        if decided.empty or finding is None:
            open_rows.append(
                f"{what}: {last['difference']:+.4f} in the last run, e = {last['e']:.3g}"
            )
            continue
        (since, end, is_decided), first = finding, decided["date"].iloc[0]
        mean = rows.loc[rows["date"] >= since, "difference"].mean()
        text = f"since {since} a gap exists: {what}, by {mean:+.4f} on average"
        if end is not None:
            text = (
                f"a gap existed from {since} on, which is not seen since {end.date}: {what}, by "
                f"{end.before:+.4f} on average, then by {end.after:+.4f}"
            )
        elif not is_decided:
            text = (
                f"a gap existed at some time since {since}, and it is open whether it still does: "
                f"{what}, by {mean:+.4f} on average"
            )
        if first < since:
            by = f"after one since {decided['since'].iloc[0]} that the run of {first} decided"
        else:
            by = f"decided by the run of {first}"
        said.append(f"{text}, e = {last['e']:.3g}, {by}")
    n_new = looks["date"].groupby(looks["model"] + looks["a"] + looks["b"]).size().max()
    yield "; ".join(said) + "." if said else f"no gap is seen in {n_new} runs of {title}."
    if open_rows and said:
        yield f"No gap is seen elsewhere: {'; '.join(open_rows)}."
    yield from left_out
    yield (
        f"A gap is decided at e = {family / alpha:.3g} ({family} in the family); where there is "
        f"none, with a probability of at most {100 * alpha:g} % at any time. "
        + (
            "Estimates are taken as normal and of different users."
            if is_table
            else "Users in several runs count once: the covariance of runs is estimated by user."
        )
    )
