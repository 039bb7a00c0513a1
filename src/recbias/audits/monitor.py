"""Since when runs or exports of a system have had a gap, however often that is looked at."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.errors import (
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

_RUN_ID = re.compile(r"(\d{8})T\d{6}Z-[0-9a-f]{8}")
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})-(\d{1,2})|(\d\d)(\d\d))([T ]\S.*)?")
_Z = 1.96
_NEW = 1e-6
"""A run whose estimate has a smaller share of its variance that earlier runs do not have is a
repetition."""

_FEW = "a group has fewer than two users"
_COLUMNS = ("date", "value", "std_error")
_SUFFIXES = frozenset({".csv", ".tsv", ".jsonl", ".parquet"})
_KEYS = ["run", "date", "model", "group", "dataset", "unit_id"]
"""The columns that identify a value of a user."""


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
    """The estimates of a gap in time, and their covariance.

    Args:
        n_units: The number of users of which the covariance is estimated; 0 if it is given.
        lacking: The dates of runs with fewer than two users of a group.
    """

    model: str
    a: str
    b: str
    dates: AnyArray
    estimates: FloatArray
    covariance: FloatArray
    n_units: int = 0
    lacking: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class _Followed:
    """The looks at a series; since when it has a gap, or the last estimate where none is seen."""

    looks: pd.DataFrame
    gap: str = ""
    other: str = ""


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
    with a probability of at most ``alpha`` if there is none. A gap exists if the latest run
    supports it: its 95% interval lies on the side of the gap, or the e-value of the runs since it
    began has grown; else the last run that did is named. Models and pairs of groups are one family
    (Bonferroni); baselines are none of them. Estimates are taken as normal, so groups need some
    dozens of users. A run with the values of earlier ones is left out.

    Args:
        name: The name of an experiment; else a folder of its runs, or of tables with a date in
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
    path, lost = to_local_path(name), defaultdict[str, set[str]](set)
    if path.is_file():
        series, title = [_read_estimates(path)], path.name
        basis = "Estimates are taken as normal and of different users."
    else:
        values, title = _read_folder(name, metric, by, out, lost)
        series = [*_list_series(values)]
        basis = "Users in several runs count once: the covariance of runs is estimated by user."
    if not series:
        raise NothingLeft("no pair of groups is in two runs or files", where=str(name))
    level = alpha / len(series)
    followed = [_follow(each, level, alpha, title) for each in series]
    looks = pd.concat([each.looks for each in followed], ignore_index=True)
    if looks.empty:
        message = f"the values of {title} do not differ between users: a gap has no standard error"
        raise NothingLeft(message, where=str(name))
    gaps = [each.gap for each in followed if each.gap]
    others = [each.other for each in followed if each.other]
    n_looks = max(len(each.looks) for each in followed)
    verdict = "; ".join(gaps) or f"no gap is seen in {n_looks} runs of {title}"
    sentences = [f"{verdict}."]
    if gaps and others:
        sentences.append(f"No gap is seen elsewhere: {'; '.join(others)}.")
    lost[_FEW].update(*(each.lacking for each in series))
    lost["they repeat earlier runs, or all values are equal"].update(
        date for each in series for date in each.dates if date not in {*looks["date"]}
    )
    for reason, dates in lost.items():
        if dates:
            sentences.append(f"Left out, as {reason}: {', '.join(sorted(dates))}.")
    sentences.append(
        f"A gap is decided at e = {1 / level:.3g} ({len(series)} in the family); where there is "
        f"none, with a probability of at most {100 * alpha:g} % at any time. {basis}"
    )
    return Monitor(sentences, looks)


# ---- what is read ----


def _read_folder(
    name: Path | str, metric: str, by: str, out: Path | str, lost: Mapping[str, set[str]]
) -> tuple[pd.DataFrame, str]:
    """Return the values of the runs or tables of a folder, and what they are of.

    The dates of those that are left out are added to ``lost``.
    """
    out = to_local_path(out)
    folder = out / str(name) if (out / str(name) / "latest").exists() else to_local_path(name)
    if not folder.is_dir():
        names = sorted(path.parent.name for path in out.glob("*/latest"))
        message = f"{str(name)!r} is neither an experiment in {out} nor a folder nor a table"
        raise MissingRun(message, remedy=suggest(str(name), names))
    runs = _list_runs(folder)
    if not runs and (exports := _list_exports(folder)):
        values = _read_users(exports)
        lost[_FEW].update({date for date, _ in exports} - {*values["date"]})
        return values, folder.name
    is_limited = [bool(run.manifest.get("limit")) for _, run in runs]
    if runs and all(is_limited):
        message = "all runs were made with --limit"
        raise NothingLeft(message, where=str(name), remedy="run without it")
    lost["they were made with --limit"].update(
        date for (date, _), is_out in zip(runs, is_limited, strict=True) if is_out
    )
    return _collect(
        [run for run, is_out in zip(runs, is_limited, strict=True) if not is_out], metric, by
    )


def _parse_date(text: str) -> str:
    """Return a date as ``2026-01-05``, with the time that follows it; blank if it is none."""
    if (match := _DATE.search(text)) is None:
        return ""
    try:
        date = dt.date(*(int(part) for part in match.groups()[:-1] if part))
    except ValueError:
        return ""
    return f"{date.isoformat()}{match[6] or ''}"


def _list_runs(folder: Path) -> list[tuple[str, RunTables]]:
    """Return the runs of an experiment with their dates, in time."""
    found = [(each, _RUN_ID.fullmatch(each.name)) for each in sorted(folder.iterdir())]
    return [(_parse_date(match[1]), read_run(each)) for each, match in found if match]


def _list_exports(folder: Path) -> list[tuple[str, Path]]:
    """Return the tables of a folder with the dates in their names, in time."""
    paths = [path for path in folder.iterdir() if get_suffix(path) in _SUFFIXES]
    exports = sorted((_parse_date(path.name.partition(".")[0]), path) for path in paths)
    for date, path in exports:
        if not date:
            remedy = "name the file 2026-01-05.csv, or move it out of the folder"
            raise MissingEvidence("has no date in its name", where=str(path), remedy=remedy)
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
        columns = {
            "unit_id": table.ids("user"),
            "value": _read_finite(table, "value"),
            "group": [group or "" for group in table.optional("group")],
        }
        rows.append(pd.DataFrame(columns).assign(run=at, date=date, model="", dataset=""))
    values = pd.concat(rows).dropna(subset=["value"])
    if values["group"].any():  # a user without a group is in none
        values = values[values["group"] != ""]
    return values.groupby(_KEYS)["value"].mean().reset_index()


def _read_finite(table: Table, name: str) -> FloatArray:
    """Return a column of numbers; raises MalformedLine if one is infinite."""
    numbers = table.numbers(name)
    table.refuse(
        np.isinf(numbers),
        lambda row: f"the {name} {numbers[row]:g} is not finite",
        "leave it empty",
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
        is_used = table["group"].str.startswith(f"{by}=" if by else "")
        is_used &= table["group"].str.contains("=", regex=False)
        if metric:
            names = table["metric"].str.split(r"[(@]", regex=True).str[0].str.lower()
            is_used &= names == metric.lower()
        baselines = [each["label"] for each in run.manifest["models"] if each.get("is_baseline")]
        is_used &= ~table["model"].isin(baselines)
        rows.append(table[is_used].assign(run=at, date=date))
    values = pd.concat(rows) if rows else pd.DataFrame()
    if values.empty:
        message = f"no run has {metric or 'a metric'} by {by or 'groups of users'}, by unit"
        remedy = "add metrics: [{name: nDCG, by: gender}] to the spec, and run it"
        raise MissingEvidence(message, remedy=remedy)
    first = values.iloc[0]
    label = by or first["group"].partition("=")[0]
    values = values[(values["metric"] == first["metric"]) & (values["k"].isin([first["k"]]))]
    values = values[values["group"].str.startswith(f"{label}=")]
    means = values.astype({"dataset": str, "unit_id": str, "model": str}).groupby(_KEYS)["value"]
    return means.mean().reset_index(), f"{first['metric'].partition('(')[0]} by {label}"


def _list_series(values: pd.DataFrame) -> Iterator[_Series]:
    """Yield the series of each model and pair of groups; without groups, of the mean."""
    for model, of_model in values.groupby("model", sort=False):
        names = sorted(of_model["group"].unique())
        for pair in [("",)] if names == [""] else combinations(names, 2):
            dates, estimates, influences, lacking = [], [], [], list[str]()
            for (_, date), run in of_model.groupby(["run", "date"]):
                users = run.set_index(["dataset", "unit_id"])["value"]
                groups = [users[(run["group"] == group).to_numpy()] for group in pair]
                if min(map(len, groups)) < 2:
                    lacking.append(str(date))
                    continue
                # exact where all values are equal, so that they have no spread
                means = [own.iloc[0] if own.min() == own.max() else own.mean() for own in groups]
                parts = [
                    (own - mean) / (len(own) - 1) for own, mean in zip(groups, means, strict=True)
                ]
                parts[1:] = [-part for part in parts[1:]]
                dates.append(date)
                estimates.append(means[0] - sum(means[1:]))
                influences.append(pd.concat(parts).groupby(level=[0, 1]).sum())
            if len(dates) > 1:
                matrix = pd.concat(influences, axis=1).fillna(0.0).to_numpy(dtype=np.float64)
                yield _Series(
                    str(model),
                    pair[0],
                    pair[-1] if pair[1:] else "",
                    np.array(dates, dtype=object),
                    np.array(estimates),
                    matrix.T @ matrix,
                    len(matrix),
                    lacking,
                )


def _read_estimates(path: Path) -> _Series:
    table = read_text_table(path)
    table.need(*_COLUMNS)
    texts = [str(text) for text in table.texts("date")]
    dates = np.array([_parse_date(text) if _DATE.fullmatch(text) else "" for text in texts])
    table.refuse(
        dates == "",
        lambda row: f"{texts[row]!r} is no date",
        "write dates as 2026-01-05: year, month, day",
    )
    order = np.argsort(dates, kind="stable")
    value, error = (_read_finite(table, name)[order] for name in _COLUMNS[1:])
    return _Series("", "", "", dates[order], value, np.diag(error**2))


# ---- what it says ----


def _select_new(covariance: FloatArray) -> list[int]:
    """Return the estimates that are not determined by those before them."""
    kept: list[int] = []
    for t, variance in enumerate(np.diag(covariance)):
        cross, own = covariance[t, kept], covariance[np.ix_(kept, kept)]
        rest = variance - (cross @ np.linalg.solve(own, cross) if kept else 0.0)
        if rest > _NEW * variance:
            kept.append(t)
    return kept


def _follow(series: _Series, level: float, alpha: float, title: str) -> _Followed:
    """Return the looks at a series, and since when it has a gap."""
    pair = f", {series.a} less {series.b}" if series.a else ""
    what = f"{title}{pair}{f' of {series.model}' if series.model else ''}"
    kept = _select_new(series.covariance)
    if not kept:
        return _Followed(pd.DataFrame(), other=f"{what}, which does not differ between users")
    dates, estimates = series.dates[kept], series.estimates[kept]
    covariance = series.covariance[np.ix_(kept, kept)]
    found = find_since(estimates, covariance, alpha, series.n_units)
    e = np.exp(np.minimum(np.maximum.accumulate(found.log_e), 700.0))
    is_decided = e * level >= 1
    looks = pd.DataFrame(
        {
            "date": dates,
            "model": series.model,
            "a": series.a,
            "b": series.b,
            "difference": estimates,
            "std_error": np.sqrt(np.diag(covariance)),
            "e": e,
            "since": np.where(is_decided, dates[found.start], ""),
        }
    )
    if not is_decided.any():
        last_one = f"{what}: {estimates[-1]:+.4f} in the last run, e = {e[-1]:.3g}"
        return _Followed(looks, other=last_one)
    n = len(dates)
    if found.log_e[-1] + math.log(level) < 0:  # no longer: since when it was clearest
        n = int(np.argmax(found.log_e)) + 1
    start = int(found.start[n - 1])
    own = find_since(estimates[start:n], covariance[start:n, start:n], alpha, series.n_units)
    is_apart = looks["difference"].abs() > _Z * looks["std_error"]
    is_apart &= looks["difference"] * estimates[start] > 0
    supports = (np.diff(own.log_e, prepend=0.0) > 0) | is_apart.to_numpy()[start:n]
    end = start + int(np.flatnonzero(supports)[-1]) + 1
    mean, since = estimates[start:end].mean(), dates[start]
    text = f"since {since} a gap exists: {what}, by {mean:+.4f} on average"
    if end < len(dates):
        text = (
            f"there was a gap from {since} on, last supported by the run of {dates[end - 1]}: "
            f"{what}, by {mean:+.4f} on average, then by {estimates[end:].mean():+.4f}"
        )
    first = dates[int(np.argmax(is_decided))]
    return _Followed(looks, f"{text}, e = {e[-1]:.3g}, first decided by the run of {first}")
