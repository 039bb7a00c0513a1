from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree as ET

from recbias.runner.gates import render_junit

KEYS = {"dataset": "d", "group": "", "target": "", "model": "EASE", "metric": "nDCG", "k": 10}
VALUES = {"baseline": "", "value": 0.3, "ci_low": 0.2, "ci_high": 0.4, "line": "at least 0.5"}
ROW: dict[str, Any] = {**KEYS, **VALUES, "verdict": "fail", "failed": True, "basis": "interval"}


def test_verdicts_become_failures_and_skipped_cases() -> None:
    undecided = ROW | {"value": math.nan, "verdict": "undecided", "failed": False}
    stopped = undecided | {"basis": "failure", "failed": True}
    undecided |= {"basis": "undefined"}
    rows = [ROW, ROW | {"verdict": "pass", "failed": False}, undecided, undecided | {"failed": 1}]
    rows.append(stopped)
    root = ET.fromstring(render_junit("release", rows))
    (suite,) = root.findall("testsuite")
    expected = {"tests": "5", "failures": "2", "skipped": "1", "errors": "1"}
    for element in (root, suite):
        assert {name: element.get(name) for name in expected} == expected
    cases = suite.findall("testcase")
    assert [[child.tag for child in case] for case in cases] == [
        ["failure"],
        [],
        ["skipped"],
        ["failure"],
        ["error"],
    ]
    assert "is undefined because a stage failed" in str(cases[4][0].get("message"))
    assert cases[0].get("classname") == "release.EASE"
    assert cases[0].get("name") == "nDCG@10 at least 0.5 [d]"
    message = cases[0][0].get("message")
    assert message == "fail: nDCG@10 of EASE is 0.3 [0.2, 0.4], must be at least 0.5"
