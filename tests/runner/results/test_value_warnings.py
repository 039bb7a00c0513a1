"""Lists that were made for another split are noticed, and values without an interval."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import recbias

AUDIT = Path(__file__).parents[3] / "configs" / "audit"
SPEC = """\
name: mine
dataset: {name: tables, interactions: train.csv, items: items.csv}
split: {name: %s}
queries: {name: table, path: queries.csv}
k: 5
models:
  - MostPop
  - {name: lists, label: ours, path: ours.csv, seen: keep}
metrics: [%s, ItemCoverage]
"""


@pytest.mark.parametrize("metrics", ["nDCG, HR", "nDCG, {name: nDCG, by: gender}"])
@pytest.mark.parametrize(
    ("split", "is_warned"),
    [("given, train: train.csv, test: test.csv", False), ("random, test: 0.5", True)],
)
def test_given_lists_without_any_hit_ask_for_their_split(
    split: str, is_warned: bool, metrics: str, tmp_path: Path
) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(AUDIT, folder)
    text = SPEC % (split, metrics)
    if not is_warned:
        text = text.replace("interactions: train.csv, ", "")
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    run = recbias.run(folder / "mine.yaml", out=tmp_path / "results")
    text = " ".join(str(warning) for warning in run.manifest["warnings"])
    assert ("ours: every accuracy metric is exactly 0" in text) == is_warned
    assert "MostPop: every" not in text
    ours = run.metrics[
        (run.metrics["model"] == "ours") & (run.metrics["metric"] != "ItemCoverage")
    ]
    assert (ours["value"].dropna() == 0).all() == is_warned
    scores = ours[ours["metric"] == "nDCG"].dropna(subset="value")
    if is_warned:  # equal values: 1 - 0.025^(1/n)
        assert scores["ci_high"].tolist() == pytest.approx(1 - 0.025 ** (1 / scores["n"]))
