"""A page of a report in Chromium; tests that need it are skipped where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recbias.reports.write import write_reports
from support.run_folders import RunSpec, make_run

OpenReport = Callable[..., Any]


@pytest.fixture
def open_report(browser: Any, tmp_path: Path) -> Iterator[OpenReport]:
    """Return a function that opens the report of a run; no message may be logged by the page."""
    contexts, messages = [], []

    def open_page(world: RunSpec | None = None, **options: Any) -> Any:
        make_run(tmp_path, world)
        write_reports(tmp_path, formats=["html"])
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto((tmp_path / "report.html").as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert messages == []
