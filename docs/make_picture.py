"""Take docs/report.png, the first screen of the quickstart's report: ``make picture``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import recbias

PICTURE = Path(__file__).parent / "report.png"


def take_picture(page: Path, picture: Path) -> None:
    """Write what a browser shows of a page before anybody scrolls."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        window = browser.new_page(viewport={"width": 1280, "height": 860})
        window.goto(page.as_uri())
        window.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        run = recbias.run("quickstart", out=folder)
        take_picture(run.report().resolve(), PICTURE)
