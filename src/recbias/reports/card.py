"""The audit card of a run, its forms after two rules on audits, and the card of a hub.

``card.json``, which ``recbias verify`` reads, has what was audited, on whom, by which definitions,
what was found and what limits it: the rows of ``report.json`` for the means, with the digests of
the run's files, and a digest of its own.

The forms have the order that NYC Local Law 144 of 2021 (6 RCNY 5-300 to 5-304) and the Commission
Delegated Regulation (EU) 2024/436, on audits under Article 37 of the Digital Services Act, ask
for, and say what a run cannot fill in. A form holds what the definitions of the rule allow to
compute; it is neither an audit by an independent auditor nor legal advice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from recbias.core.errors import DataError, MalformedLine, MissingFile
from recbias.core.files import compute_digest, digest_file, has_file
from recbias.core.grouping import JOIN, parse_uncertain_label
from recbias.core.measures import SERVED, VALUE_COLUMNS, compute_wilson_interval
from recbias.formats.json_files import parse_json
from recbias.formats.manifest import Manifest
from recbias.formats.text_files import read_text
from recbias.reports import views, wording
from recbias.reports.render import (
    Content,
    Fact,
    read_resource,
    render,
    render_value,
    replace_undefined,
)
from recbias.reports.run import RunTables, to_records
from recbias.reports.tables import build_check_table, describe_missing_outputs
from recbias.statistics.intervals import compare_share_ratio, detect_difference

_POWER = 0.8  # the power of the smallest detectable differences
_MOST_ROWS = 5_000  # with more estimates or comparisons, those of a target are left out
_MOST_LINES = 40  # estimates and comparisons on the pages; all are in ``card.json``
_TIMED = "trials.csv"  # a table that holds durations, which differ between runs of equal results
_REMEDY = "give a card.json that `recbias report RUN --format card` wrote"

_PLACE = ("dataset", "model", "seed", "fold", "group", "target")
_COMPARISON = (
    *("test", "between", "a", "b", "n", "difference", "ci_low", "ci_high", "p", "p_adjusted"),
    *("correction", "family", "family_size", "alpha", "effect_size", "significant", "detectable"),
)
_CHECK = ("baseline", "value", "ci_low", "ci_high", "limit", "verdict", "failed")
_DEFINITION = ("name", "direction", "summary", "formula", "unit", "source")
_SUBJECT = (
    *("name", "spec_digest", "recbias", "commit", "python", "libraries", "seeds", "limit"),
    *("datasets", "split", "models", "tests"),
)

_COVERED = (
    "Intervals and tests cover the sampling of units such as users, not the choice of the "
    "dataset, the split, the settings and the measures."
)
_N = "n: the units, such as users, that have a value; undefined: those that have none."


# ---- the card ----


class Card(BaseModel):
    """The content of ``card.json``.

    Args:
        files: The SHA-256 digests of the files of the run.
        digest: The SHA-256 digest of the canonical JSON of all other fields.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    kind: Literal["recbias audit card"] = "recbias audit card"
    schema_version: Literal[1] = 1
    audited: dict[str, Any]
    queries: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    definitions: list[dict[str, Any]]
    estimates: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    limits: dict[str, Any]
    files: dict[str, str]
    digest: str = ""


def build_card(run: RunTables) -> Card:
    """Return the audit card of a run with its digest.

    The digest shows that the card was not changed by accident: whoever changes it can compute it
    again. The card has no time, duration or path, so that equal results give equal cards. The
    estimates are the means over seeds and folds where there are several.
    """
    manifest = Manifest.model_validate(run.manifest)
    estimates, left_out = _limit(views.select_headline(run, views.collect_estimates(run)))
    comparisons, omitted = _limit(views.select_headline(run, run.significance))
    rows = [
        row
        | {"significant": views.is_significant(row), "detectable": detect_difference(row, _POWER)}
        for row in to_records(comparisons)
    ]
    content = {
        "audited": manifest.model_dump(
            include={*_SUBJECT},
            exclude={"models": {"__all__": {"baseline", "is_baseline"}}},
        ),
        "queries": [
            queries.model_dump(include={"dataset", "asked", "unit", "parameters"})
            for queries in manifest.queries
        ],
        "groups": _list_groups(estimates),
        "definitions": [
            {"metric": title, "range": metric.values, "parameters": dict(metric.parameters)}
            | {name: getattr(metric, name) for name in _DEFINITION}
            for title, metric in views.collect_definitions(run).items()
        ],
        "estimates": _select(to_records(estimates), VALUE_COLUMNS),
        "comparisons": _select(rows, _COMPARISON),
        "checks": _select(run.manifest.get("checks", []), _CHECK, ("seed", "fold")),
        "limits": {
            "undefined": _count_undefined(run),
            "missing_outputs": describe_missing_outputs(run),
            "warnings": wording.list_warnings(run),
            "failures": wording.list_failures(run),
            "omitted_estimates": left_out,
            "omitted_comparisons": omitted,
        },
        "files": digest_files(run.folder, manifest.files),
    }
    card = Card.model_validate(replace_undefined(wording.strip_folders(content)))
    return card.model_copy(update={"digest": compute_card_digest(card)})


def _limit(rows: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the rows, and how many are left out: if they are many, those of a target."""
    limited = rows[rows["target"].fillna("") == ""] if len(rows) > _MOST_ROWS else rows
    return limited, len(rows) - len(limited)


def _select(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], without: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return some fields of the rows of a table, with the title of the metric."""
    keys = [name for name in (*_PLACE, *names) if name not in without]
    return [
        {"metric": views.format_title(row["metric"], row["k"])}
        | {name: row[name] for name in keys}
        for row in rows
    ]


def _list_groups(estimates: pd.DataFrame) -> list[dict[str, Any]]:
    """Return each group of queries with the largest number of its units, undefined ones too."""
    rows = estimates[estimates["group"] != ""]
    units = (rows["n"].fillna(0) + rows["undefined"].fillna(0)).astype(int)
    sizes = rows.assign(n=units).groupby(["dataset", "group"], sort=False)["n"].max()
    return to_records(sizes.reset_index())


def _count_undefined(run: RunTables) -> dict[str, float]:
    """Return the number of undefined values of each metric that has some, over seeds and folds."""
    counts = {
        title: sum(
            float(row["undefined"])
            for row in views.list_single(run)[title]
            # which the values over all queries and those of the groups hold
            if row["group"] != SERVED and (row["group"] or not metric.gap)
        )
        for title, metric in views.collect_definitions(run).items()
    }
    return {title: count for title, count in counts.items() if count > 0}


def digest_files(folder: Path, tables: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 digests of the spec and of the tables of a run that are in its folder."""
    names = sorted({"spec.yaml", "groups.csv", *tables} - {_TIMED})
    digests = {name: digest_inside(folder, name) for name in names}
    return {name: digest for name, digest in digests.items() if digest != "absent"}


def digest_inside(folder: Path, name: str) -> str:
    """Return the SHA-256 digest of a file of a folder, ``absent`` if there is none."""
    path = folder / name
    is_inside = has_file(path) and path.resolve().is_relative_to(folder.resolve())
    return digest_file(path) if is_inside else "absent"


def compute_card_digest(card: Card) -> str:
    """Return the digest that a card must have."""
    return compute_digest(card.model_dump(exclude={"digest"}))


def read_card(path: Path) -> Card:
    """Read a card, which may come from anybody.

    Raises:
        MissingFile: The file cannot be read.
        MalformedLine: It is not JSON.
        DataError: Its content is not that of a card; the place is that of the first fault.
    """
    try:
        return Card.model_validate(parse_json(read_text(path), path))
    except (MissingFile, MalformedLine) as error:
        error.remedy = _REMEDY
        raise
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, fault["loc"])) or "the file"
        message = f"is not that of a card: {fault['msg']}"
        raise DataError(message, where=f"{path}: {place}", remedy=_REMEDY) from error


# ---- pages ----


@dataclass(frozen=True)
class Form:
    """A form of the card: its title, its tables, and what the run cannot fill in."""

    title: str
    tables: Sequence[wording.Table]
    missing: Sequence[str]


def render_card_files(card: Card, content: Content) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each file of the card of a run."""
    parts = [f"{json.dumps(name)}: {_render_part(part)}" for name, part in card]
    yield "card.json", "{\n" + ",\n".join(parts) + "\n}\n"
    pairs = replace(content.pairs, notes=(*content.pairs.notes, *content.methods))
    estimates = _tabulate_estimates(card)
    results = [content.models, content.checks, _shorten(estimates), _shorten(pairs)]
    yield from _render_pages("card", card, content, results)


def render_form(name: str, form: Form, card: Card, content: Content) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each page of a form of the card."""
    yield from _render_pages(name, card, content, form.tables, form)


def _render_pages(
    name: str,
    card: Card,
    content: Content,
    tables: Sequence[wording.Table | None],
    form: Form | None = None,
) -> Iterator[tuple[str, str]]:
    for kind in ("md", "html"):
        text = render(
            f"card.{kind}.jinja",
            title=form.title if form else "Audit card",
            limits_title="What the run cannot fill in, and limits" if form else "Limits",
            card=card,
            style=wording.Safe(read_resource("page.css")),
            facts=[*content.data, *_list_provenance(card)],
            conclusions=[entry for entries in content.conclusions for entry in entries],
            tables=[
                table
                for table in (*tables, _tabulate_definitions(content))
                if table is not None and table.rows
            ],
            limits=[*(form.missing if form else ()), *_list_limits(card)],
        )
        yield f"{name}.{kind}", re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def render_hub_card(card: Card, content: Content) -> str:
    """Return the ``README.md`` of the card for the Hugging Face hub.

    Its front matter is a ``model-index``: for each model and dataset the defined values, with the
    interval and the number of units in ``args``. The text is that of ``card.md``.

    Source:
        https://huggingface.co/docs/hub/model-cards (the metadata ``model-index``).
    """
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in card.estimates:
        if row["value"] is None:
            continue
        parts = [str(row[name]) for name in ("group", "target") if row[name]]
        title = ", ".join([row["metric"], *parts])
        names = ("ci_low", "ci_high", "n", "seed", "fold")
        kept = {name: row[name] for name in names if row.get(name) is not None}
        metric = {
            "type": re.split(r"[(@]", row["metric"])[0],
            "name": title,
            "value": row["value"],
        }
        of_model = results.setdefault(str(row["model"]), {})
        of_model.setdefault(str(row["dataset"]), []).append(metric | {"args": kept})
    task = {"type": "recommendation", "name": "Recommendation"}
    index = [
        {
            "name": model,
            "results": [
                {"task": task, "dataset": {"type": name, "name": name}, "metrics": metrics}
                for name, metrics in datasets.items()
            ],
        }
        for model, datasets in results.items()
    ]
    front = {"tags": ["recommender-systems", "recbias"], "model-index": index}
    text = json.dumps(front, indent=1).replace("<", "\\u003c")  # JSON is YAML
    return f"---\n{text}\n---\n\n{dict(render_card_files(card, content))['card.md']}"


def _render_part(part: Any) -> str:
    """Return a part as JSON, with one line for each row."""
    is_table = isinstance(part, list) and part
    return "[\n" + ",\n".join(map(render_value, part)) + "\n]" if is_table else render_value(part)


def _list_provenance(card: Card) -> list[Fact]:
    """Return the versions, and the digests of the spec and of the data."""
    audited = card.audited
    versions = [f"{name} {text}" for name, text in (audited["libraries"] or {}).items() if text]
    files = [
        f"{name} {sha}" for data in audited["datasets"] for name, sha in data["files"].items()
    ]
    facts = {
        "recbias": f"{audited['recbias']}, commit {audited['commit'] or 'not known'}",
        "Versions": ", ".join([f"Python {audited['python']}", *versions]),
        "Digest of the spec": str(audited["spec_digest"]),
        "SHA-256 of the data": ", ".join(files),
    }
    return [Fact(name, text) for name, text in facts.items() if text]


def _list_limits(card: Card) -> list[str]:
    """Return what restricts the conclusions, one sentence each; always what intervals cover."""
    limits = card.limits
    undefined = ", ".join(f"{title} {n:,.0f}" for title, n in limits["undefined"].items())
    lines = [*limits["failures"], *limits["missing_outputs"], *limits["warnings"]]
    if undefined:
        lines.append(f"Undefined values, excluded from the means: {undefined}.")
    for noun, name in (("estimate", "metrics.csv"), ("comparison", "significance.csv")):
        if n := limits[f"omitted_{noun}s"]:
            lines.append(f"{wording.format_count(n, noun)} of a target: only in {name}.")
    return [*lines, _COVERED]


def _tabulate_estimates(card: Card) -> wording.Table:
    """Return the estimates, those over all queries before those of groups and targets."""
    rows = []
    for row in sorted(card.estimates, key=lambda row: (bool(row["target"]), bool(row["group"]))):
        numbers = {name: math.nan if row[name] is None else row[name] for name in VALUE_COLUMNS}
        rows.append({**row, **numbers})
    return wording.tabulate(
        "Estimates",
        wording.add_places(rows, ("value", "ci_low", "ci_high")),
        {
            "metric": lambda row: wording.make_heading(row["metric"]),
            **wording.pick(*(name for name in _PLACE if len({row[name] for row in rows}) > 1)),
            **wording.VALUE_COLUMNS,
            "n": lambda row: wording.number_cell(row["n"], 0),
            "undefined": lambda row: wording.number_cell(row["undefined"], 0),
        },
        [_N],
    )


def _tabulate_definitions(content: Content) -> wording.Table:
    """Return one row for each definition, with the metrics that share it."""
    return wording.tabulate(
        "Definitions",
        content.definitions,
        {
            "metric": lambda metrics: ", ".join(metric.heading for metric in metrics),
            "definition": lambda metrics: metrics[0].summary,
            "formula": lambda metrics: metrics[0].formula,
            "direction": lambda metrics: ", ".join(
                dict.fromkeys(views.DIRECTION_LABELS[metric.direction] for metric in metrics)
            ),
            "range": lambda metrics: metrics[0].values,
            "source": lambda metrics: metrics[0].source,
        },
    )


def _shorten(table: wording.Table) -> wording.Table:
    """Return a table of the first rows, and a note on the others."""
    if len(table.rows) <= _MOST_LINES:
        return table
    more = f"{wording.format_count(len(table.rows) - _MOST_LINES, 'more row')} in card.json."
    return replace(table, rows=table.rows[:_MOST_LINES], notes=(more, *table.notes))


# ---- forms ----

_LEAST_SHARE = 0.02
"""The share of the data below which a category may be left out of impact ratios (5-301(d))."""

_NOTE = (
    "A category below 2 % of the individuals has no impact ratio (5-301(d)), because its rate is "
    "that of few. The intervals are no part of the rule."
)

_SEX, _RACE = frozenset({"sex", "gender"}), frozenset({"race", "ethnicity", "race_ethnicity"})
_REQUIRED: Mapping[str, Callable[[set[str]], bool]] = {
    "sex": lambda parts: parts <= _SEX,
    "race or ethnicity": lambda parts: parts <= _RACE,
    "sex with race or ethnicity": lambda parts: bool(parts & _SEX) and bool(parts & _RACE),
}

_MISSING_OF_LL144 = """\
5-300: whether the auditor is independent.
5-301: the individuals are the users or prompts that are asked. Where items are the candidates, \
there is no rate: a run has no label of a single item.
5-302: whether the data are historical data of the tool or test data, and why.
5-303: the source and explanation of the data, the date of the audit, and the date on which the \
tool was first used.
""".splitlines()

_MISSING_OF_EU = """\
the obligation of Regulation (EU) 2022/2065 that a benchmark stands for, whether a conclusion is \
positive with comments, recommendations, and the opinion on all obligations together.
inherent and control risk. Of the detection risk there is the sampling of units, as intervals.
materiality thresholds, other than the limits of the checks.
evidence from the provider: its systems, controls, staff and documents.
how the data were sampled before they came into the run.
independence and expertise of the auditor (Article 37(3) of Regulation (EU) 2022/2065).
the audit implementation report, which is the provider's.
""".splitlines()


def fill_ll144(run: RunTables) -> Form:
    """Return the bias audit of NYC Local Law 144, of the people who are asked, by their labels.

        selection rate = selected / individuals          of values that are 0 or 1
        scoring rate = above the median / individuals    the median of the whole sample
        impact ratio = rate / the largest rate of a category

    A category with less than 2 % of the individuals has a rate, but no impact ratio, and is not
    the category that others are divided by. Individuals in an unknown category count in the 2 %,
    and in the median where the spec has the metric without ``by:`` too. With several seeds or
    folds an individual has the share of them in which it is selected, or above their median.

    Source:
        6 RCNY 5-300 (definitions), 5-301 (bias audit).
    """
    metrics = [each for each in views.collect_definitions(run).values() if "by" in each.parameters]
    scored = {metric.title: [*_list_tables(run, metric)] for metric in metrics}
    labels = [
        {part.strip() for part in str(metric.parameters["by"]).lower().split(JOIN)}
        for metric in metrics
        if scored[metric.title]
    ]
    missing = [
        f"6 RCNY 5-301: no table is by {name}: to have one, add to the spec a metric "
        "with by:, without gap:, in which higher is better."
        for name, is_met in _REQUIRED.items()
        if not any(map(is_met, labels))
    ]
    groups = {metric.groups_heading for metric in metrics if not metric.gap}
    for metric in metrics:  # a gap whose groups are a metric of the run too needs no line
        if not (scored[metric.title] or (metric.gap and metric.groups_heading in groups)):
            why = _find_obstacle(metric) or "no compared model has values of single individuals"
            missing.append(f"6 RCNY 5-301: {metric.heading} is left out: {why}.")
    tables = [table for own in scored.values() for table in own]
    title = "Bias audit in the form of NYC Local Law 144"
    return Form(title, tables, [*missing, *_MISSING_OF_LL144])


def _find_obstacle(metric: views.Definition) -> str:
    """Return why a metric by group has no rate of a category, blank if nothing is known."""
    if metric.gap:
        return f"gap: {metric.gap} is one number, without the values of the categories"
    if metric.group_direction not in {"higher", "none"}:
        better = views.DIRECTION_LABELS[metric.group_direction]
        return f"{better}, so that a value above the median is no selection"
    if parse_uncertain_label(str(metric.parameters["by"])) is not None:
        return "its categories are known as probabilities"
    return ""


def _list_tables(run: RunTables, metric: views.Definition) -> Iterator[wording.Table]:
    """Yield the table of each dataset of a metric by group, where individuals have values."""
    if run.per_unit is None or _find_obstacle(metric):
        return
    rows = run.per_unit.astype(dict.fromkeys(("group", "metric", "target", "dataset"), str))
    rows = rows[~rows["model"].isin(views.list_baselines(run)) & (rows["target"] == "")]
    titles = [views.format_title(*pair) for pair in zip(rows["metric"], rows["k"], strict=True)]
    rows, plain = rows.assign(title=titles), wording.ungroup(metric.title)
    values = rows[(rows["title"] == metric.title) & ~rows["group"].isin({"", SERVED})]
    sample = rows[(rows["title"] == plain) & (rows["group"] == "")]
    asked = {each["dataset"]: each.get("asked", 0) for each in run.manifest.get("queries", [])}
    for dataset, own in values.groupby("dataset", sort=False):
        title = f"{wording.make_heading(plain)} by {metric.parameters['by']}, {dataset}"
        everybody = sample[sample["dataset"] == dataset]
        yield _tabulate_rates(own, everybody, title, int(asked.get(str(dataset), 0)))


def _tabulate_rates(
    values: pd.DataFrame, sample: pd.DataFrame, title: str, asked: int
) -> wording.Table:
    """Return one row for each model and category; the sample are all individuals, if known."""
    context = ["model", "seed", "fold"]
    scored, n_known = values.dropna(subset=["value"]), values["unit_id"].nunique()
    everybody = scored.drop_duplicates([*context, "unit_id"]) if sample.empty else sample
    median = everybody.groupby(context, sort=False, observed=True)["value"].median()
    scored = scored.join(median.rename("median"), on=context)
    is_selection = bool(scored["value"].isin((0.0, 1.0)).all())
    chosen = scored["value"] == 1 if is_selection else scored["value"] > scored["median"]
    units = [scored["model"], scored["group"], scored["unit_id"]]
    shares = chosen.groupby(units, sort=False, observed=True).mean()
    medians = median.groupby(level="model", sort=False, observed=True)
    several = len(median) > len(medians)
    is_whole = not sample.empty or asked == n_known
    of = "sample" if is_whole else "individuals in a known category"
    texts = [
        f"{' to '.join(dict.fromkeys(f'{end:.4g}' for end in (own.min(), own.max())))} ({model})"
        for model, own in medians
    ]
    notes = [
        "Selection rate: the share of values of 1."
        if is_selection
        else f"Scoring rate: the share above the median of the {of}: {', '.join(texts)}.",
        *["Selected or above the median: the mean over seeds and folds."] * several,
        f"Individuals in an unknown category: {asked - n_known:,} of {asked:,}."
        if asked >= n_known
        else "The number of individuals in an unknown category is not known.",
        _NOTE,
    ]
    kind = "selected" if is_selection else "above the median"
    columns: dict[str, Callable[[Any], wording.Cell | str]] = {
        **wording.pick("model", "category"),
        "individuals": lambda row: wording.number_cell(row["size"], 0),
        kind: lambda row: wording.number_cell(row["sum"], int(several)),
        "rate": lambda row: wording.number_cell(row["rate"], 3),
        "95% interval": lambda row: wording.interval_cell(row["low"], row["high"], 3),
        "impact ratio": lambda row: wording.number_cell(row["ratio"], 3),
        "its 95% interval": lambda row: wording.interval_cell(
            row["ratio_low"], row["ratio_high"], 3, "none"
        ),
    }
    rows = _list_rates(shares, max(asked, n_known))
    return wording.tabulate(title, rows, columns, notes)


def _list_rates(shares: pd.Series, total: int) -> Iterator[dict[str, Any]]:
    """Yield the rates of each category of each model, from how often individuals are chosen."""
    for model, own in shares.groupby(level=0, sort=False, observed=True):
        rates = own.groupby(level=1, sort=False, observed=True).agg(["size", "sum"])
        rates["rate"] = rates["sum"] / rates["size"]
        rates["low"], rates["high"] = compute_wilson_interval(rates["rate"], rates["size"])
        large = rates[rates["size"] >= _LEAST_SHARE * total]
        best = large.sort_values("rate", kind="stable", ascending=False).head(1)
        for category, row in zip(rates.index, to_records(rates), strict=True):
            ratio, ends = math.nan, (math.nan, math.nan)
            if category in large.index and best["rate"].item() > 0:
                ratio = row["rate"] / best["rate"].item()
                if category not in best.index:
                    pair = best["rate"].item(), best["size"].item()
                    ends = compare_share_ratio(row["rate"], row["size"], *pair)
            place = {"model": str(model), "category": category, "ratio": ratio}
            yield {**row, **place, "ratio_low": ends[0], "ratio_high": ends[1]}


_CONCLUSIONS = {"pass": "positive", "fail": "negative"}


def fill_eu(run: RunTables) -> Form:
    """Return the findings for an audit report under Delegated Regulation (EU) 2024/436.

    Each check is a benchmark. A check that passes supports the conclusion positive, one that fails
    negative; an undecided one supports none. ``positive with comments`` is up to the auditor.

    Source:
        Delegated Regulation (EU) 2024/436; Regulation (EU) 2022/2065, Article 37.
    """
    checks, tables, missing = build_check_table(run), list[wording.Table](), list[str]()
    if checks is None:
        missing.append("the run has no benchmark: add checks: to the spec.")
    else:
        columns = (wording.Column("obligation"), *checks.columns, wording.Column("supports"))
        rows = []
        for row in checks.rows:
            conclusion = _CONCLUSIONS.get(row[-1].text.partition(" ")[0], "no conclusion")
            rows.append((wording.Cell("to be named"), *row, wording.Cell(conclusion)))
        tables.append(wording.Table("Benchmarks and findings", columns, tuple(rows)))
    title = "Findings for an audit report under Delegated Regulation (EU) 2024/436"
    return Form(title, tables, [*missing, *_MISSING_OF_EU])


FORMS = {"card_ll144": fill_ll144, "card_eu": fill_eu}
"""The forms by their names among the formats of reports."""
