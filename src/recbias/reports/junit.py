"""``checks.xml``: the verdicts of the checks in the JUnit format, for continuous integration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from recbias.core.text import make_printable
from recbias.reports.run import RunTables
from recbias.reports.verdict import build_verdict, state_check
from recbias.reports.views import format_title


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
        title = format_title(check["metric"], check["k"])
        texts = {
            "classname": _escape(f"{name}.{check['model']}"),
            "name": _escape(f"{title} {check['limit']} [{', '.join(place)}]"),
        }
        case = SubElement(suite, "testcase", {**texts, "time": "0"})
        if tag := _choose_tag(check):
            message = f"{check['verdict']}: {state_check(run, check)}"
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
