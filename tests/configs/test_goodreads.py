"""The spec of children's books, on generated files in the published layout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.data.books_yelp import Goodreads
from recbias.data.describe import describe
from support.commands import invoke_recbias

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "configs" / "papers" / "children" / "goodreads.yaml"
FEW = """\
extends: {spec}
dataset: {{filters: [{{name: threshold, at_least: 4}}, {{name: k_core, k: 5}}]}}
models: [Random, MostPop, {{name: ItemKNN, neighbors: 8}}]
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("goodreads")
    script = ROOT / "benchmarks" / "goodreads_files.py"
    command = [sys.executable, str(script), str(folder), "--scale", "0.004"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_generated_files_have_the_requested_counts(data: Path) -> None:
    with collect_warnings():
        dataset = Goodreads(side=("authors",), unrated="keep").load(data, None)  # type: ignore[arg-type]
    counts = describe(dataset)["counts"]
    # 0.004 of 542,145 readers, 124,082 books and 10,059,349 shelved books
    assert (counts["users"], counts["items"], counts["interactions"]) == (2169, 496, 40_237)
    assert counts["duplicates"] == 0


def test_books_are_labelled_and_recommended(data: Path, tmp_path: Path) -> None:
    spec = tmp_path / "few.yaml"
    spec.write_text(FEW.format(spec=SPEC.resolve()), encoding="utf-8")
    result = invoke_recbias("run", spec, "--data", data, folder=tmp_path)
    assert result.code == 0, result.err
    run = tmp_path / "results" / "children-goodreads" / "latest"
    metrics: Any = pd.read_csv(run / "metrics.csv").set_index(["model", "metric"])["value"]
    n_items = json.loads((run / "manifest.json").read_text())["datasets"][0]["counts"]["items"]
    labelled = metrics["(dataset)", "labelled_items(label=ngim.gender)"]
    assert 0.1 < labelled / n_items < 0.5
    # the expected exposure of random lists is the share of labelled books
    exposure = metrics["Random", "REC-ST(label=ngim.gender)"]
    assert exposure == pytest.approx(labelled / n_items, abs=0.02)
    assert metrics["ItemKNN", "nDCG"] > 2 * metrics["Random", "nDCG"]
    significance = pd.read_csv(run / "significance.csv")
    assert set(significance["family_size"]) == {15}
    reference = pd.read_csv(run / "reference.csv")
    assert set(reference["system"]) == {"Random", "MostPop", "ItemKNN", "(dataset)"}
    assert set(reference["table"]) == {"children/5.2", "children/5.3", "children/a6"}
    assert {"nDCG", "MRR", "MAP", "HR", "REC-ST_Gender"} < set(reference["metric"])
    counts = reference[reference["table"] == "children/5.3"]
    assert counts["published"].tolist() == [3438]
    assert counts["measured"].tolist() == [labelled]
