from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias.reports.write import write_reports
from support.run_folders import RunSpec
from support.swept_runs import Settings, read_swept_run

pytestmark = pytest.mark.browser

VALUES = (0.001, 10.0, 1e-05, 200.0, 0.05, 9.5)
MODELS: Settings = {
    f"{name} {reg}": ("EASE", {"reg": reg, "shrink": shrink})
    for name, shrink in (("a", 2), ("b", None))
    for reg in VALUES
}


def test_settings_are_sorted_by_their_value(browser: Any, tmp_path: Path) -> None:
    read_swept_run(tmp_path, MODELS)
    write_reports(tmp_path, formats=["html"])
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    table = page.get_by_role("table", name="Results by the settings of EASE")
    rows = table.locator("tbody tr")

    def sort(column: int) -> list[str]:
        table.locator("thead button").nth(column).click()
        return [row.locator("th").nth(column).inner_text() for row in rows.all()]

    ascending = ["1e-05", "0.001", "0.05", "9.5", "10", "200"]
    expected = [text for text in ascending for _ in range(2)]
    assert sort(0) == expected
    assert sort(0) == expected[::-1]
    assert sort(1) == ["2"] * len(VALUES) + ["null"] * len(VALUES)  # no number comes last
    page.close()


def test_comparisons_are_sorted_by_the_number_in_their_text(open_report: Any) -> None:
    page = open_report(RunSpec(metrics=("nDCG",), users=20, lists=False))
    header = page.locator(".pairs thead th.n").first
    column = header.evaluate("(header) => header.cellIndex")
    header.locator("button").click()
    texts = page.locator(f".pairs tbody td:nth-child({column + 1})").all_text_contents()
    values = [float(text.replace("\N{MINUS SIGN}", "-")) for text in texts]
    assert min(values) < 0 < max(values)
    assert values == sorted(values)
