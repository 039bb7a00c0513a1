"""The verdict of a run: the answer to what its spec asks, in a line and at most three sentences.

A spec asks, in this order, for checks, a claim, a published table, groups, and models. Every
report begins with the verdict; everything else is below it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
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
    list_losses,
    split_conclusions,
)
from recbias.reports.published import compare_published, list_absent_systems, read_source
from recbias.reports.run import RunTables, to_records
from recbias.reports.views import Question, Row, collect_questions
from recbias.reports.wording import (
    count_decimals,
    describe_limit,
    format_count,
    format_estimate,
    format_p_value,
    format_value,
    get_label_value,
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
    findings = split_conclusions(run)[0]
    verdict = (
        _judge_checks(run, findings)
        or _judge_claim(run, findings)
        or _compare_reference(run, findings)
        or _answer(run, findings)
    )
    verdict = replace(verdict, tiles=verdict.tiles[:_MOST_TILES])
    if limit := run.manifest.get("limit"):
        few = f"Smoke test: the first {format_count(limit, 'query')} only (--limit)."
        return replace(verdict, small=(few, *verdict.small))
    return verdict


def _unite(findings: Sequence[Conclusion]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the first sentences of findings, and their tests: of no difference, what it means.

    What no test compares is among them only where nothing is tested.
    """
    sentences, small = list[str](), list[str]()
    for finding in [each for each in findings if each.kind != "value"] or findings:
        if len(sentences) < _MOST_SENTENCES:
            sentences += [finding.sentence, *finding.more]
            details = finding.detail.rstrip(".").split(". ")
            small += [f"{text}." for text in details[: 1 if finding.n_significant else 2] if text]
    return tuple(sentences[:_MOST_SENTENCES]), tuple(dict.fromkeys(small))


# ---- checks ----


@dataclass(frozen=True)
class _Check:
    """A check in words: its place where the run has several, its subject and its baseline."""

    row: Mapping[str, Any]
    place: str
    subject: str
    than: str

    @property
    def state(self) -> State:
        state: State = "fail" if self.row["failed"] else self.row["verdict"]
        return state

    @property
    def limit(self) -> str:
        return describe_limit(self.row)

    @property
    def value(self) -> str:
        """The value with its interval."""
        return _format_estimate(self.row)

    @property
    def name(self) -> str:
        """What is checked: ``nDCG gap by gender with EASE``."""
        return f"{self.subject}{' with ' * bool(self.place)}{self.place}{self.than}"

    @property
    def sentence(self) -> str:
        """The check with its value, interval and limit."""
        basis, value = self.row["basis"], self.value
        if self.row["value"] is None:
            value = "undefined" + " because a stage failed" * (basis == "failure")
        value += ", with a single unit in a group" * (basis == "single")
        return f"{self.name} is {value}, limit {self.limit}"

    @property
    def tile(self) -> Tile:
        name = f"{self.place}{': ' * bool(self.place)}{self.subject}{self.than}"
        return Tile(name, self.value, self.state, f"limit {self.limit}")


def _format_estimate(row: Mapping[str, Any], value: str = "value") -> str:
    """Return a value of the manifest or of a table with its interval."""
    numbers = (row.get(name) for name in (value, "ci_low", "ci_high"))
    mean, low, high = (math.nan if number is None else float(number) for number in numbers)
    return format_estimate(mean, low, high)


def _collect_checks(run: RunTables) -> list[_Check]:
    """Return the checks of a run, those of baselines last."""
    rows, baselines = run.manifest.get("checks", []), views.list_baselines(run)
    several = [
        name
        for name in ("model", "dataset")
        if len({*run.metrics[name], *(row[name] for row in rows)}) > 1
    ]
    checks = []
    for row in sorted(rows, key=lambda row: row["model"] in baselines):
        metric = views.get_definition(run, views.get_title(row))
        part = to_line(" ".join(filter(None, (row["group"], row["target"]))))
        subject = views.name_metric(run, metric, row["group"]) + (f" of {part}" if part else "")
        than = f" minus {to_line(row['baseline'])}" if row["baseline"] else ""
        place = ", ".join(to_line(row[name]) for name in several)
        checks.append(_Check(row, place, subject, than))
    return checks


def _judge_checks(run: RunTables, findings: Sequence[Conclusion]) -> Verdict | None:
    checks = _collect_checks(run)
    if not checks:
        return None
    failed, undecided, passed = (
        [check for check in checks if check.state == state]
        for state in ("fail", "undecided", "pass")
    )
    state: State = "fail" if failed else "undecided" if undecided else "pass"
    total = format_count(len(checks), "check")
    line = f"{state.upper()}: {len(failed or undecided or checks):,} of {total}"
    others = undecided if failed else []
    line += " failed" * bool(failed) + f", {len(others):,} undecided" * bool(others)
    listed = [check.sentence for check in failed or undecided]
    if len(listed) == 1:
        line, listed = f"{line}: {listed[0]}", []
    elif 0 < len(listed) <= _MOST_NAMES:
        line = f"{line}: {_name_checks(failed or undecided)}"
    if state == "pass":
        line += _describe_scope(run, checks)
    if len(listed) + bool(others) > _MOST_SENTENCES:
        n_more = len(listed) + len(others) - _MOST_SENTENCES + 1
        listed[_MOST_SENTENCES - 1 :] = [
            f"{n_more:,} more failed or undecided checks are in the table"
        ]
    elif others[1:]:
        named = f": {_name_checks(others)}" * (len(others) <= _MOST_NAMES)
        listed.append(f"{len(others):,} checks are undecided{named}")
    elif others:
        listed.append(f"Undecided: {others[0].sentence}")
    losses = list_losses(run)[: _MOST_SENTENCES - 1]
    said = {loss.sentence for loss in losses}
    findings = [*losses, *(finding for finding in findings if finding.sentence not in said)]
    n_left = _MOST_SENTENCES - len(listed)
    sentences, small = _unite(findings[:n_left])
    tiles = tuple(check.tile for check in (*failed, *undecided, *passed))
    sentences = (*(f"{text}." for text in listed), *sentences[:n_left])
    return Verdict("checks", state, line, sentences, small, tiles)


def _name_checks(checks: Sequence[_Check]) -> str:
    """Return the names of checks; the model that all are of is last."""
    places = {check.place for check in checks}
    if len(places) > 1 or "" in places:
        return join_names(list(dict.fromkeys(check.name for check in checks)))
    return f"{join_names([check.subject + check.than for check in checks])} with {places.pop()}"


def _describe_scope(run: RunTables, checks: Sequence[_Check]) -> str:
    """Return the models of checks that pass, their largest gap, and the models without a check."""
    models = [name for name in views.list_models(run) if name != DATASET]
    named = {check.row["model"] for check in checks}
    checked = [name for name in models if name in named]
    others = [name for name in models if name not in named]
    text = f" of {_name_models(checked)}" * bool(checked)
    gaps = [check for check in checks if " gap by " in check.subject and not check.row["group"]]
    gaps = [check for check in gaps if check.row["value"] is not None]
    if gaps:
        largest = max(gaps, key=lambda check: float(check.row["value"]))
        most = "largest " * bool(gaps[1:])
        text += f"; {most}{largest.subject} {largest.value}, limit {largest.limit}"
    baselines = [name for name in others if name in views.list_baselines(run)]
    own = [name for name in others if name not in baselines]
    if checked and own:
        own = own if len(own) <= _MOST_NAMES else [format_count(len(own), "model")]
        own += [format_count(len(baselines), "baseline")] * bool(baselines)
        text += f"; {join_names(own)} not checked"
    elif checked and others:
        text += f"; baseline{'s' * bool(others[1:])} {_name_models(others)} not checked"
    return text


def _name_models(names: Sequence[str]) -> str:
    return join_names(names) if len(names) <= _MOST_NAMES else format_count(len(names), "model")


# ---- a claim ----


def _judge_claim(run: RunTables, findings: Sequence[Conclusion]) -> Verdict | None:
    claim = run.manifest.get("claim")
    if not claim:
        return None
    text, verdict = to_line(claim["claim"]), claim["verdict"]
    state: State = "undecided"
    sentences, small = _unite(findings)
    if verdict == "failed":
        line = f"The claim could not be tested: {text}. {to_line(claim['problem'])}"
    else:
        p = math.nan if claim["p"] is None else claim["p"]
        if p < claim["alpha"]:
            state = "pass" if verdict == "holds" else "fail"
        outcome = {"holds": "holds", "reversed": "is reversed"}.get(verdict)
        if outcome is None or (verdict == "reversed" and state == "undecided"):
            outcome = "is not shown to hold"
        line = f"The claim {outcome}: {text}, by {_format_estimate(claim, 'estimate')}"
        p_value = format_p_value(p, claim["alpha"])
        small = (f"Test of the claim: p {p_value}, n {claim['n']:,}.", *small)
    tiles = (Tile("claim", line.partition(": ")[0], state, text),)
    return Verdict("claim", state, line, sentences, small, tiles)


# ---- a published table ----


def _compare_reference(run: RunTables, findings: Sequence[Conclusion]) -> Verdict | None:
    report = run.spec.get("report") or {}
    names, tolerance = report.get("reference") or [], report.get("tolerance", 0.01)
    names = [names] if isinstance(names, str) else names
    tables = [compare_published(run, name, tolerance=tolerance) for name in names]
    rows = [row for table in tables for row in to_records(table)]
    if not rows:
        return None
    n_within = sum(row["within"] for row in rows)
    sources = [read_source(name) for name in names]
    which = f"{len(tables)} published tables"
    if len(tables) == 1:
        which = f"the published table {sources[0].name}"
        if absent := list_absent_systems(run, sources[0].name):
            n_run = len({row["system"] for row in rows})
            which += f" ({n_run:,} of its {n_run + len(absent):,} models)"
    line = f"{n_within:,} of {len(rows):,} values within {tolerance:g} of {which}"
    sentences, small = _unite(findings)
    small = (*(f"{source.name}: {source.title}. {source.citation}" for source in sources), *small)
    scope = [_describe_source(source.name, rows) for source in sources]
    sentences = (*scope, *sentences)[:_MOST_SENTENCES]
    if n_within < len(rows):
        line = f"{line}; the largest difference is {_state_distance(_find_farthest(rows))}"
    farthest = sorted(rows, key=lambda row: (row["within"], -abs(row["difference"])))
    systems = views.group_rows(farthest, ["system"])
    tiles = tuple(_make_system_tile(name, own) for (name,), own in systems.items())
    state: State = "pass" if n_within == len(rows) else "none"
    return Verdict("reference", state, line, sentences, small, tiles)


def _describe_source(name: str, rows: Sequence[Row]) -> str:
    """Return the paper of a table, and the largest relative difference."""
    source, own = read_source(name), [row for row in rows if row["table"] == name]
    year = re.search(r"\b(?:19|20)\d\d\b", source.citation)
    first, *others = source.citation.partition(". ")[0].split(", ")
    text = f"The table is of {first}{' et al.' * bool(others)}{f' ({year[0]})' if year else ''}"
    relative = [row for row in own if not math.isnan(row["relative"])]
    if relative:
        row = max(relative, key=lambda row: float(abs(row["relative"])))
        text += (
            f"; largest relative difference {row['relative']:+.0%} "
            f"({to_line(row['metric'])} of {to_line(row['system'])})"
        )
    return f"{text}."


def _find_farthest(rows: Sequence[Row]) -> Row:
    return max(rows, key=lambda row: float(abs(row["difference"])))


def _state_distance(row: Row) -> str:
    """Return a difference from a published value: ``-0.0853 (HR of UserKNN)``."""
    places = count_decimals([row["published"], row["measured"]])
    of = "" if row["system"] == DATASET else f" of {to_line(row['system'])}"
    return f"{format_value(row['difference'], places)} ({to_line(row['metric'])}{of})"


def _make_system_tile(name: str, rows: Sequence[Row]) -> Tile:
    n_within, row = sum(row["within"] for row in rows), _find_farthest(rows)
    state: State = "pass" if n_within == len(rows) else "fail"
    difference = _state_distance(row).partition(" of ")[0].removesuffix(")")
    value = f"{n_within:,} of {len(rows):,} within"
    return Tile(to_line(name), value, state, f"largest difference {difference})")


# ---- groups and models ----


def _answer(run: RunTables, findings: Sequence[Conclusion]) -> Verdict:
    if not findings:
        return Verdict("models", "none", "No result: no model has a value.")
    subject: Subject = "groups" if concerns_groups(run, findings[0]) else "models"
    sentences, small = _unite(findings)
    questions = [
        item
        for item in collect_questions(run)
        if (item.metric.title, item.between) == (findings[0].metric, findings[0].between)
    ]
    if subject == "groups" and questions:
        tiles = _make_gap_tiles(run, questions[0], findings[0].dataset)
    else:
        tiles = [tile for finding in findings for tile in _make_value_tile(run, finding)]
    tiles = list(dict.fromkeys(tiles))
    return Verdict(subject, "none", sentences[0], sentences[1:], small, tuple(tiles))


def _make_gap_tiles(run: RunTables, question: Question, dataset: str) -> list[Tile]:
    """Return the tile of each model: of its gap, else of its strongest difference."""
    metric = question.metric
    gaps = {} if metric.is_of_named else views.find_gaps(run, metric, dataset)
    largest = sorted(question.rows, key=lambda row: float(abs(row["difference"])))
    strongest = {row["model"]: row for row in (largest if gaps else reversed(question.rows))}
    name = views.name_metric(run, metric).partition(", gap")[0].replace(" gap by ", " by ")
    return [
        _make_gap_tile(strongest[model], name, question, gaps.get(model))
        for model in question.models
        if model in strongest
    ]


def _make_gap_tile(row: Row, name: str, question: Question, gap: Row | None) -> Tile:
    """Return the tile of a gap, else of an effect beside the control or of a pair of groups.

    A gap has no sign, and neither has its interval; the difference of named groups has one.
    """
    by, is_effect = question.metric.by, row["b"] == CONTROL
    is_named = is_effect or question.metric.is_of_named
    sides = "ab" if is_named or row["difference"] > 0 else "ba"
    names = [to_line(name_group(row[side], by)) for side in sides]
    value, low, high = views.orient(row)
    if is_named:
        full = question.add_interval(row)
        value, low, high = (full[name] for name in ("difference", "ci_low", "ci_high"))
    what, note = f"gap of {name}", " minus ".join(names)
    if is_effect:
        what, note = name, names[0]
    elif gap:
        value, low, high = gap["value"], gap["ci_low"], gap["ci_high"]
        is_largest = math.isclose(value, abs(row["difference"]), rel_tol=1e-6)
        note = f"highest: {names[0]}, lowest: {names[1]}" * is_largest
    elif by and is_named:
        what, note = f"{question.name} {' minus '.join(map(get_label_value, names))}", f"by {by}"
    places = count_decimals([row["difference"], row["mean_a"], row["mean_b"]])
    label = f"{to_line(row['model'])}: {what}"
    return Tile(label, format_estimate(value, low, high, places), note=note)


def _make_value_tile(run: RunTables, finding: Conclusion) -> list[Tile]:
    """Return the tile of the best value that a finding is about, if there is one."""
    metric, baselines = views.get_definition(run, finding.metric), views.list_baselines(run)
    rows = [
        row
        for row in views.list_whole(run, finding.metric, finding.dataset)
        if row["model"] not in baselines and not math.isnan(row["value"])
    ]
    if not rows:
        return []
    flags = views.flag_best([row["value"] for row in rows], metric.direction)
    best = [row for row, flag in zip(rows, flags, strict=True) if flag] or rows
    names = ", ".join(to_line(row["model"]) for row in best)
    note = "; ".join(filter(None, (names, metric.scale)))
    return [Tile(views.name_metric(run, metric), _format_estimate(best[0]), note=note)]


# ---- checks.xml ----


def render_junit(run: RunTables) -> str:
    """Return the JUnit document of the checks of a run; the verdict is the name of its root.

    A check that fails is a failure; one that is undecided is skipped, or a failure if the check
    is strict. One whose value is undefined because a stage failed is an error.

    Source:
        https://github.com/testmoapp/junitxml
    """
    checks = {id(check.row): check for check in _collect_checks(run)}
    rows, name = run.manifest["checks"], str(run.manifest["name"])
    tags, total = Counter(map(_choose_tag, rows)), str(len(rows))
    names = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    texts = {"tests": total, **{key: str(tags[tag]) for key, tag in names.items()}}
    root = Element("testsuites", {"name": _escape(build_verdict(run).line), **texts})
    suite = SubElement(root, "testsuite", {"name": name, **texts})
    for row in rows:
        check = checks[id(row)]
        texts = {
            "classname": _escape(f"{name}.{row['model']}"),
            "name": _escape(f"{check.subject}: {to_line(row['limit'])} [{row['dataset']}]"),
        }
        case = SubElement(suite, "testcase", {**texts, "time": "0"})
        key = {"name": "metric", "value": _escape(views.get_title(row))}
        SubElement(SubElement(case, "properties"), "property", key)
        message = _escape(f"{row['verdict']}: {check.sentence}")
        if tag := _choose_tag(row):
            SubElement(case, tag, {"message": message})
        else:
            SubElement(case, "system-out").text = message
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
