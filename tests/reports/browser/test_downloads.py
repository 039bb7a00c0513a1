from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from support.run_folders import RunSpec

pytestmark = pytest.mark.browser

SMALL = RunSpec(models=("x", "y", "z"), metrics=("nDCG", "HR"), users=20)

COUNT_COLOURS = """
async (url) => {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const pixels = new Uint32Array(data.buffer);
  return [image.width, image.height, pixels[0] >>> 0, new Set(pixels).size];
}
"""


def download(page: Any, link: Any) -> tuple[str, bytes]:
    """Return the name and the content of the file that a link or a button saves."""
    with page.expect_download() as saved:
        link.click()
    return saved.value.suggested_filename, Path(saved.value.path()).read_bytes()


def test_a_table_is_saved_as_csv_with_unrounded_values(open_report: Any, tmp_path: Path) -> None:
    page = open_report(SMALL)
    page.get_by_role("link", name="Results", exact=True).click()  # opens the section
    name, content = download(page, page.get_by_role("link", name=re.compile(r"Results .*as CSV")))
    table = pd.read_csv(io.BytesIO(content)).set_index("model")
    rows = pd.read_csv(tmp_path / "metrics.csv")
    assert name == "results-10.csv"
    for model, metric, value in rows[["model", "metric", "value"]].to_numpy().tolist():
        assert table.loc[model, metric] == pytest.approx(value, rel=1e-14)


def test_the_spec_is_saved_and_copied(open_report: Any, tmp_path: Path) -> None:
    page = open_report(SMALL, permissions=["clipboard-read", "clipboard-write"])
    spec = (tmp_path / "spec.yaml").read_text(encoding="utf-8")
    page.get_by_role("button", name="Open all sections").click()
    page.get_by_text("Spec of the run").click()
    name, content = download(page, page.get_by_role("link", name="Spec as YAML"))
    assert (name, content.decode()) == ("spec.yaml", spec)
    button = page.get_by_role("button", name="Copy: Spec")
    button.click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == spec


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_plot_is_saved_as_png_on_white(open_report: Any, scheme: str) -> None:
    page = open_report(SMALL, color_scheme=scheme)
    figure = page.locator("figure").first
    box = figure.locator("svg:visible").get_attribute("viewBox").split()
    name, content = download(page, figure.get_by_role("button"))
    assert name == f"{figure.get_attribute('data-name')}.png"
    url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    width, height, corner, n_colours = page.evaluate(COUNT_COLOURS, url)
    assert [width, height] == [2 * round(float(size)) for size in box[2:]]
    assert corner == 0xFFFFFFFF
    assert n_colours > 20
