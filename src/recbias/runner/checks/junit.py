"""``checks.xml``: the verdicts in the JUnit format, which continuous integration reads."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from recbias.core.printable import make_printable


def render_junit(name: str, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the JUnit document of the checks of a run.

    A check that fails is a failure; one that is undecided is skipped, or a failure if the check
    is strict. One whose value is undefined because a stage failed is an error.

    Source:
        https://github.com/testmoapp/junitxml
    """
    tags = Counter(_choose_tag(row) for row in rows)
    counts = {"tests": len(rows), "failures": tags["failure"], "errors": tags["error"]}
    counts |= {"skipped": tags["skipped"]}
    texts = {key: str(count) for key, count in counts.items()}
    root = Element("testsuites", {"name": "recbias checks", **texts})
    suite = SubElement(root, "testsuite", {"name": name, **texts})
    for row in rows:
        _add_case(suite, name, row)
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add_case(suite: Element, name: str, row: Mapping[str, Any]) -> None:
    place = [str(row[key]) for key in ("dataset", "group", "target") if row[key]]
    title = f"{describe_value(row)} {row['line']} [{', '.join(place)}]"
    case = SubElement(
        suite,
        "testcase",
        {"classname": _escape(f"{name}.{row['model']}"), "name": _escape(title), "time": "0"},
    )
    if tag := _choose_tag(row):
        SubElement(case, tag, {"message": _escape(explain_verdict(row))})


def _choose_tag(row: Mapping[str, Any]) -> str:
    """Return the element of a verdict, blank if the check passes."""
    if row["basis"] == "failure":
        return "error"
    if row["failed"]:
        return "failure"
    return "skipped" if row["verdict"] == "undecided" else ""


def describe_value(row: Mapping[str, Any]) -> str:
    """Return the metric with its cutoff.

    >>> describe_value({"metric": "nDCG", "k": 10})
    'nDCG@10'
    """
    return str(row["metric"]) if row["k"] is None else f"{row['metric']}@{row['k']}"


def explain_verdict(row: Mapping[str, Any]) -> str:
    """Return a verdict with the value and the interval it is based on.

    >>> row = {"metric": "nDCG", "k": 10, "model": "EASE", "baseline": "", "line": "at least 0.5"}
    >>> explain_verdict(row | {"value": 0.4, "ci_low": 0.3, "ci_high": 0.45, "verdict": "fail"})
    'fail: nDCG@10 of EASE is 0.4 [0.3, 0.45], must be at least 0.5'
    """
    subject = f"{describe_value(row)} of {row['model']}"
    if math.isnan(row["value"]):
        because = " because a stage failed" if row["basis"] == "failure" else ""
        return f"{row['verdict']}: {subject} is undefined{because}, must be {row['line']}"
    low, high = row["ci_low"], row["ci_high"]
    interval = "no interval" if math.isnan(low) else f"{low:.4g}, {high:.4g}"
    than = f" minus {row['baseline']}" if row["baseline"] else ""
    value = f"{row['value']:.4g} [{interval}]"
    return f"{row['verdict']}: {subject}{than} is {value}, must be {row['line']}"


def _escape(text: str) -> str:
    """Return a text without the control characters that XML cannot hold."""
    return make_printable(text, None).translate({0xFFFE: "?", 0xFFFF: "?"})
