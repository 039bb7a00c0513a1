from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias.reports.write import write_reports
from support.hand_worked_runs import BY_GENDER, state, write_run

pytestmark = pytest.mark.browser


def test_intervals_are_drawn_in_plots_and_hidden_in_cells_until_asked_for(
    browser: Any, tmp_path: Path
) -> None:
    values = [
        state(model, value, BY_GENDER["metric"], group=group, ci_low=value - 0.1, ci_high=0.9)
        for model in ("a", "b")
        for group, value in (("gender=F", 0.4), ("gender=M", 0.6))
    ]
    values += [state(model, 0.5, ci_low=0.4, ci_high=0.6) for model in ("a", "b")]
    write_run(tmp_path, values, metrics=[{**BY_GENDER, "metric": "nDCG"}, BY_GENDER])
    write_reports(tmp_path, formats=["html"])
    context = browser.new_context()
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    lines = page.locator("svg line.interval")
    assert lines.count() == 4
    assert all(lines.nth(at).bounding_box()["width"] > 20 for at in range(4))
    cell = page.locator("td .interval").first
    assert not cell.is_visible()
    page.get_by_label("Show 95% intervals").check()
    assert cell.is_visible()
    context.close()
