from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias.reports.write import write_reports
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
    page.goto((tmp_path / "report.html").as_uri() + "#results")
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
