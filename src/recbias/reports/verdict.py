"""The verdict of a run: the answer to what its spec asks, in a line and at most three sentences.

A spec asks, in this order, for checks, a claim, a published table, groups, and models. Every
report begins with the verdict; everything else is below it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from recbias.core.measures import CONTROL, DATASET
from recbias.core.text import make_printable
from recbias.reports import views
from recbias.reports.conclusions import (
    Conclusion,
    concerns_groups,
    split_conclusions,
)
from recbias.reports.published import compare_published, read_source
from recbias.reports.questions import collect_questions
from recbias.reports.run import RunTables, to_records
from recbias.reports.views import Row
from recbias.reports.wording import (
    count_decimals,
    format_count,
    format_estimate,
    format_p_value,
    format_value,
    join_names,
    name_group,
    to_line,
)

Subject: TypeAlias = Literal["checks", "claim", "reference", "groups", "models"]
"""What a spec asks for, the first of these that it has."""

State: TypeAlias = Literal["pass", "fail", "undecided", "none"]
"""The outcome; ``none`` where nothing is required."""

_MOST_SENTENCES, _MOST_TILES, _MOST_NAMES = 3, 8, 3


@dataclass(frozen=True)
class Tile:
    """One figure of the verdict: a check, a published system, a model or a metric."""

    label: str
    value: str
    state: State = "none"
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """The answer of a run to what its spec asks.

    Args:
        line: The answer in one line.
        sentences: At most three more, of at most 25 words each.
        small: How it was found: the tests and what they could have detected.
        tiles: The figures behind the line, those that matter most first.
    """

    subject: Subject
    state: State
    line: str
    sentences: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    tiles: tuple[Tile, ...] = ()


@lru_cache(maxsize=2)
def build_verdict(run: RunTables) -> Verdict:
    """Return the verdict on the first thing that the spec of a run asks for."""
    verdict = _judge_checks(run) or _judge_claim(run) or _compare_reference(run) or _answer(run)
    if not (limit := run.manifest.get("limit")):
        return verdict
    few = f"Smoke test: the first {format_count(limit, 'query')} only (--limit)."
    return replace(verdict, small=(few, *verdict.small))


# ---- checks ----


def _judge_checks(run: RunTables) -> Verdict | None:
    baselines = views.list_baselines(run)
    checks = sorted(run.manifest.get("checks", []), key=lambda each: each["model"] in baselines)
    if not checks:
        return None
    failed = [check for check in checks if check["failed"]]
    undecided = [check for check in checks if not check["failed"] and check["verdict"] != "pass"]
    ranked = [*failed, *undecided, *(check for check in checks if check["verdict"] == "pass")]
    total = format_count(len(checks), "check")
    state: State = "fail" if failed else "undecided" if undecided else "pass"
    line = f"{state.upper()}: {len(failed or undecided or checks):,} of {total}"
    if failed:
        line += " failed" + f", {len(undecided):,} undecided" * bool(undecided and failed[1:])
    listed = [_state_check(run, check) for check in failed or undecided]
    if len(listed) == 1:
        line, listed = f"{line}: {listed[0]}", []
    if state == "pass":
        line += _describe_scope(run, checks)
    if failed:
        listed += [f"Undecided: {_state_check(run, check)}" for check in undecided]
    if len(listed) > _MOST_SENTENCES:
        n_more = len(listed) - _MOST_SENTENCES + 1
        listed[_MOST_SENTENCES - 1 :] = [
            f"{n_more:,} more failed or undecided checks are in the table"
        ]
    n_left = _MOST_SENTENCES - len(listed)
    sentences, small = _unite(split_conclusions(run)[0][:n_left])
    return Verdict(
        "checks",
        state,
        line,
        (*(f"{text}." for text in listed), *sentences[:n_left]),
        small,
        tuple(_make_check_tile(run, check) for check in ranked[:_MOST_TILES]),
    )


def _describe_scope(run: RunTables, checks: Sequence[Mapping[str, Any]]) -> str:
    """Return the models of checks that pass, their largest gap, and the models without a check."""
    models = [name for name in views.list_models(run) if name != DATASET]
    named = {check["model"] for check in checks}
    checked = [name for name in models if name in named]
    others = [name for name in models if name not in named]
    text = f" of {_name_models(checked)}" * bool(checked)
    gaps = [check for check in checks if " gap by " in _name_parts(run, check)[1]]
    gaps = [check for check in gaps if check["value"] is not None and not check["group"]]
    if gaps:
        largest = max(gaps, key=lambda check: float(check["value"]))
        value = _format_check(largest).partition(" ")[0]
        name, limit = _name_parts(run, largest)[1], to_line(largest["limit"])
        text += f"; {'largest ' * bool(gaps[1:])}{name} {value}, limit {limit}"
    if checked and others:
        baselines = f"baseline{'s' * bool(others[1:])} " * ({*others} <= views.list_baselines(run))
        text += f"; {baselines}{_name_models(others)} not checked"
    return text


def _name_models(names: Sequence[str]) -> str:
    return join_names(names) if len(names) <= _MOST_NAMES else format_count(len(names), "model")


def _name_parts(run: RunTables, check: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the place of a check where the run has several, its subject and its baseline."""
    title = views.format_title(check["metric"], check["k"])
    metric = views.collect_definitions(run).get(title) or views.Definition(title, title)
    places = [
        to_line(check[name])
        for name in ("model", "dataset")
        if len({*run.metrics[name], *(each[name] for each in run.manifest["checks"])}) > 1
    ]
    part = to_line(" ".join(filter(None, (check["group"], check["target"]))))
    subject = views.name_metric(run, metric, check["group"]) + (f" of {part}" if part else "")
    than = f" minus {to_line(check['baseline'])}" if check["baseline"] else ""
    return ", ".join(places), subject, than


def _name_check(run: RunTables, check: Mapping[str, Any]) -> str:
    """Return what is checked, such as ``EASE: nDCG of gender=F``."""
    place, subject, than = _name_parts(run, check)
    return f"{place}{': ' if place else ''}{subject}{than}"


def _state_check(run: RunTables, check: Mapping[str, Any]) -> str:
    """Return a check with its value, interval and limit."""
    value, because = _format_check(check), ""
    if check["value"] is None:
        value, because = "undefined", " because a stage failed" * (check["basis"] == "failure")
    if check["basis"] == "single":
        because = ", with a single unit in a group"
    place, subject, than = _name_parts(run, check)
    name = f"{subject}{' with ' if place else ''}{place}{than}"
    return f"{name} is {value}{because}, limit {to_line(check['limit'])}"


def _make_check_tile(run: RunTables, check: Mapping[str, Any]) -> Tile:
    state: State = "fail" if check["failed"] else check["verdict"]
    return Tile(
        _name_check(run, check), _format_check(check), state, f"limit {to_line(check['limit'])}"
    )


def _format_check(check: Mapping[str, Any]) -> str:
    value, low, high = (_read(check, name) for name in _BOUNDS)
    return format_estimate(value, low, high)


_BOUNDS = ("value", "ci_low", "ci_high")


# ---- a claim ----


def _judge_claim(run: RunTables) -> Verdict | None:
    claim = run.manifest.get("claim")
    if not claim:
        return None
    text, p = to_line(claim["claim"]), _read(claim, "p")
    if claim["verdict"] == "failed":
        line, small = f"The claim could not be tested: {text}. {to_line(claim['problem'])}", ""
    else:
        is_decided = p < claim["alpha"]
        outcome = "holds" if claim["verdict"] == "holds" else "is not shown to hold"
        outcome = "is reversed" if claim["verdict"] == "reversed" and is_decided else outcome
        value, low, high = (_read(claim, name) for name in ("estimate", "ci_low", "ci_high"))
        line = f"The claim {outcome}: {text}, by {format_estimate(value, low, high)}"
        small = f"Test of the claim: p {format_p_value(p, claim['alpha'])}, n {claim['n']:,}."
    state: State = "undecided"
    if claim["verdict"] != "failed" and p < claim["alpha"]:
        state = "pass" if claim["verdict"] == "holds" else "fail"
    sentences, details = _unite(split_conclusions(run)[0])
    tiles = (Tile("claim", line.partition(": ")[0], state, text),)
    return Verdict("claim", state, line, sentences, tuple(filter(None, (small, *details))), tiles)


def _read(row: Mapping[str, Any], name: str) -> float:
    """Return a number of the manifest, NaN if it has none."""
    return math.nan if row.get(name) is None else float(row[name])


# ---- a published table ----


def _compare_reference(run: RunTables) -> Verdict | None:
    report = run.spec.get("report") or {}
    names, tolerance = report.get("reference") or [], report.get("tolerance", 0.01)
    names = [names] if isinstance(names, str) else names
    tables = [compare_published(run, name, tolerance=tolerance) for name in names]
    rows = [row for table in tables for row in to_records(table)]
    if not rows:
        return None
    n_within = sum(row["within"] for row in rows)
    which = "published table" if len(tables) == 1 else f"{len(tables)} published tables"
    line = f"{n_within:,} of {len(rows):,} values within {tolerance:g} of the {which}"
    sentences, small = _unite(split_conclusions(run)[0])
    sources = [read_source(name) for name in names]
    small = (*(f"{source.name}: {source.title}. {source.citation}" for source in sources), *small)
    farthest = max(rows, key=lambda row: float(abs(row["difference"])))
    if n_within < len(rows):
        line = f"{line}; the largest difference is {_state_distance(farthest)}"
    farther = sorted(rows, key=lambda row: (row["within"], -abs(row["difference"])))
    systems = dict.fromkeys(row["system"] for row in farther)
    tiles = [_make_system_tile([row for row in rows if row["system"] == name]) for name in systems]
    state: State = "pass" if n_within == len(rows) else "none"
    return Verdict("reference", state, line, sentences, small, tuple(tiles[:_MOST_TILES]))


def _state_distance(row: Row) -> str:
    """Return a difference from a published value: ``-0.0853, HR of UserKNN``."""
    places = count_decimals([row["published"], row["measured"]])
    size = format_value(row["difference"], places)
    of = "" if row["system"] == DATASET else f" of {to_line(row['system'])}"
    return f"{size} ({to_line(row['metric'])}{of})"


def _make_system_tile(rows: Sequence[Row]) -> Tile:
    n_within, farthest = (
        sum(row["within"] for row in rows),
        max(rows, key=lambda row: float(abs(row["difference"]))),
    )
    state: State = "pass" if n_within == len(rows) else "fail"
    note = f"largest difference {_state_distance(farthest).partition(' of ')[0]})"
    value = f"{n_within:,} of {len(rows):,} within"
    return Tile(to_line(rows[0]["system"]), value, state, note)


# ---- groups and models ----


def _answer(run: RunTables) -> Verdict:
    findings = split_conclusions(run)[0]
    if not findings:
        return Verdict("models", "none", "No result: no model has a value.")
    subject: Subject = "groups" if concerns_groups(run, findings[0]) else "models"
    sentences, small = _unite(findings)
    tiles = _make_tiles(run, subject, findings)
    return Verdict(subject, "none", sentences[0], sentences[1:], small, tuple(tiles[:_MOST_TILES]))


def _unite(findings: Iterable[Conclusion]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the first sentences of findings, and their tests: of no difference, what it means."""
    sentences, small = list[str](), list[str]()
    for finding in findings:
        if len(sentences) < _MOST_SENTENCES:
            sentences += [finding.sentence, *finding.more]
            details = finding.detail.rstrip(".").split(". ")
            small += [f"{text}." for text in details[: 1 if finding.n_significant else 2] if text]
    return tuple(sentences[:_MOST_SENTENCES]), tuple(dict.fromkeys(small))


def _make_tiles(run: RunTables, subject: Subject, findings: Sequence[Conclusion]) -> list[Tile]:
    questions = {
        (item.metric.title, item.between): item for item in reversed(collect_questions(run))
    }
    first = questions.get((findings[0].metric, findings[0].between))
    if subject == "groups" and first is not None:
        strongest = {row["model"]: row for row in reversed(first.rows)}
        rows = [strongest[name] for name in first.models if name in strongest]
        name, by = views.name_metric(run, first.metric), str(first.metric.parameters.get("by", ""))
        return [_make_gap_tile(row, name.partition(", gap")[0], by) for row in rows]
    tiles = []
    for finding in findings:
        rows = [row for row in _list_values(run, finding) if not math.isnan(row["value"])]
        metric = views.collect_definitions(run).get(finding.metric)
        if metric is None or not rows:
            continue
        flags = views.flag_best([row["value"] for row in rows], metric.direction)
        best = [row for row, flag in zip(rows, flags, strict=True) if flag] or rows
        names = ", ".join(to_line(row["model"]) for row in best)
        value = format_estimate(*(best[0][name] for name in _BOUNDS))
        note = "; ".join(filter(None, (names, metric.scale)))
        tiles.append(Tile(views.name_metric(run, metric), value, note=note))
    return tiles


def _make_gap_tile(row: Row, name: str, by: str) -> Tile:
    """Return the tile of a gap without its sign, or of an effect beside the control with it."""
    is_effect = row["b"] == CONTROL
    sign, sides = (-1, "ba") if row["difference"] < 0 and not is_effect else (1, "ab")
    places = count_decimals([row["difference"], row["mean_a"], row["mean_b"]])
    low, high = sorted((sign * row["ci_low"], sign * row["ci_high"]))
    value = format_estimate(sign * row["difference"], low, high, places)
    names = [to_line(name_group(row[side], by)) for side in sides]
    what, note = (name, names[0]) if is_effect else (f"gap of {name}", " minus ".join(names))
    return Tile(f"{to_line(row['model'])}: {what}", value, note=note)


def _list_values(run: RunTables, finding: Conclusion) -> list[Row]:
    baselines = views.list_baselines(run)
    rows = views.list_headline(run).get((finding.metric, finding.dataset), ())
    return [
        row for row in rows if not (row["group"] or row["target"] or row["model"] in baselines)
    ]


# ---- checks.xml ----


def render_junit(run: RunTables) -> str:
    """Return the JUnit document of the checks of a run; the verdict is the name of its root.

    A check that fails is a failure; one that is undecided is skipped, or a failure if the check
    is strict. One whose value is undefined because a stage failed is an error.

    Source:
        https://github.com/testmoapp/junitxml
    """
    checks, name = run.manifest["checks"], str(run.manifest["name"])
    tags = Counter(map(_choose_tag, checks))
    counts = {"tests": len(checks), "failures": tags["failure"], "errors": tags["error"]}
    texts = {key: str(count) for key, count in {**counts, "skipped": tags["skipped"]}.items()}
    root = Element("testsuites", {"name": _escape(build_verdict(run).line), **texts})
    suite = SubElement(root, "testsuite", {"name": name, **texts})
    for check in checks:
        place = [str(check[key]) for key in ("dataset", "group", "target") if check[key]]
        title = views.format_title(check["metric"], check["k"])
        texts = {
            "classname": _escape(f"{name}.{check['model']}"),
            "name": _escape(f"{title} {check['limit']} [{', '.join(place)}]"),
        }
        case = SubElement(suite, "testcase", {**texts, "time": "0"})
        if tag := _choose_tag(check):
            message = f"{check['verdict']}: {_state_check(run, check)}"
            SubElement(case, tag, {"message": _escape(message)})
    indent(root)
    declaration = '<?xml version="1.0" encoding="utf-8"?>'
    return f"{declaration}\n{tostring(root, encoding='unicode')}\n"


def _choose_tag(check: Mapping[str, Any]) -> str:
    """Return the element of a verdict, blank if the check passes."""
    if check["basis"] == "failure":
        return "error"
    if check["failed"]:
        return "failure"
    return "skipped" if check["verdict"] == "undecided" else ""


def _escape(text: str) -> str:
    """Return a text without the control characters that XML cannot hold."""
    return make_printable(text, None).translate({0xFFFE: "?", 0xFFFF: "?"})
