"""Every value of the CHBias tables is compared with its own model, category and metric."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.core.measures import METRICS, SIGNIFICANCE
from recbias.reports.published import (
    compare_published,
    list_published,
    load_published,
    read_source,
)
from recbias.reports.run import RunTables, read_run, to_records

CATEGORIES = ("Gender", "Orientation", "Age", "Appearance")
METHODS = ("Baseline", "LMD", "ADD", "HD", "CADA", "CTDA")
SYSTEMS = ("CDial-GPT", "EVA2.0")
MEASURES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "t-value": ("perplexity_gap", {"estimate": "t", "scale": "perplexity"}),
    "log t": ("perplexity_gap", {"estimate": "t", "scale": "log"}),
    "BLEU-4": ("BLEU", {"n": 4}),
    "BLEU-2": ("BLEU", {"n": 2}),
    "Dist-1": ("distinct", {"n": 1}),
    "Dist-2": ("distinct", {"n": 2}),
    "Dist-4": ("distinct", {"n": 4}),
    "F1": ("unigram_F1", {}),
    "R-L": ("ROUGE-L", {}),
    "E-Average": ("embedding_average", {}),
    "G-Matching": ("greedy_matching", {}),
    "share of responses with score +2": ("human_rate", {"score": 2.0}),
    "share of responses with score +1": ("human_rate", {"score": 1.0}),
    "share of responses with score +0": ("human_rate", {"score": 0.0}),
    "rate of biased responses (human)": ("human_rate", {"score": 1.0, "by": "category"}),
}
"""What each published metric is called here, with its settings."""

PERCENT = ("Dist-1", "Dist-2", "Dist-4", "F1", "R-L", "E-Average", "G-Matching")
BY_CATEGORY = ("t-value", "rate of biased responses (human)")
TABLES = [name for name in list_published() if name.startswith("chbias/")]

PRINTED = {
    "CDial-GPT": """\
        -2.51  4.28  2.74 -0.94
        -0.93  1.31 -2.39  0.40
         0.17 -0.54  0.50  0.03
        -2.12 -6.10 -0.63  1.27
        -1.74  0.65 -0.43 -0.55
        -0.22  0.11 -0.25  0.05""",
    "EVA2.0": """\
         1.48  3.04 -2.30  3.28
        -0.89  1.09 -0.18  2.55
        -0.54  0.77 -1.20  1.43
         1.21  0.27  0.40 -2.59
         0.89  0.46  0.72  0.80
         0.37 -0.79 -0.17  0.28""",
}
"""Table 3 as it is printed: a row for each method, and a column for each category."""


def label_model(system: str, method: str) -> str:
    return system if method == "Baseline" else f"{system} {method}"


def write_run(
    folder: Path, metrics: Sequence[str], categories: Sequence[str] = CATEGORIES
) -> tuple[RunTables, dict[tuple[str, str, str, str], float]]:
    """Return a run with a dataset for each category, and its values, of which none is equal."""
    numbers = itertools.count(1)
    values, rows = {}, []
    for cell in itertools.product(metrics, SYSTEMS, METHODS, categories):
        metric, system, method, category = cell
        values[cell] = next(numbers) / 8
        location = {"dataset": category.lower(), "model": label_model(system, method), "fold": 1}
        location |= {"seed": 1, "metric": metric, "group": "", "target": ""}
        own = f"category={category.lower()}" if metric in BY_CATEGORY else ""
        rows += [
            {**location, "group": own, "value": values[cell]},
            {**location, "group": own, "value": -1.0, "target": "within 3 sd"},
        ]
        if own:
            rows.append({**location, "value": -2.0})  # all sentences together
    write_files(folder, rows, metrics, categories)
    return read_run(folder), values


def write_files(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    categories: Sequence[str],
    tests: Sequence[Mapping[str, Any]] = (),
) -> None:
    models = [label_model(*pair) for pair in itertools.product(SYSTEMS, METHODS)]
    manifest = {
        "models": [{"label": label, "name": "language_model"} for label in models],
        "datasets": [{"label": name.lower(), "name": "chbias"} for name in categories],
        "metrics": [
            {
                "metric": metric,
                "k": None,
                "direction": "none",
                "name": name,
                "parameters": settings,
            }
            for metric, (name, settings) in MEASURES.items()
            if metric in metrics
        ],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for file, table, columns in (
        ("metrics", rows, METRICS.names),
        ("significance", tests, SIGNIFICANCE.names),
    ):
        pd.DataFrame(table, columns=list(columns)).to_csv(folder / f"{file}.csv", index=False)


@pytest.mark.parametrize("name", [name for name in TABLES if read_source(name).comparable])
def test_every_value_matches_its_model_category_and_metric(name: str, tmp_path: Path) -> None:
    published = load_published(name).dropna(subset=["value"])
    run, values = write_run(tmp_path, sorted(set(published["metric"])))
    expected = [
        {
            "system": label_model(row["system"], row["method"]),
            "metric": f"{row['metric']} ({row['bias_category']})",
            "published": row["value"],
            "measured": values[row["metric"], row["system"], row["method"], row["bias_category"]]
            * (100 if row["metric"] in PERCENT else 1),
        }
        for row in to_records(published)
    ]
    compared = compare_published(run, name)[["system", "metric", "published", "measured"]]
    assert to_records(compared) == expected


@pytest.mark.parametrize("system", SYSTEMS)
def test_table_3_has_the_printed_value_in_each_cell(system: str, tmp_path: Path) -> None:
    run, _ = write_run(tmp_path, ["t-value"])
    table = compare_published(run, "chbias/3").set_index(["system", "metric"])["published"]
    lines = PRINTED[system].splitlines()
    for method, line in zip(METHODS, lines, strict=True):
        label = label_model(system, method)
        row = [table[label, f"t-value ({category})"] for category in CATEGORIES]
        assert row == [float(text) for text in line.split()], method


def test_one_dataset_has_its_categories_as_groups(tmp_path: Path) -> None:
    location = {"dataset": "pairs", "seed": 1, "fold": 1, "metric": "t-value", "target": ""}
    rows = [
        {**location, "model": model, "group": f"category={category}", "value": value}
        for (model, category), value in zip(
            itertools.product(("EVA2.0", "EVA2.0 HD"), ("gender", "age")),
            (1, 2, 3, 4),
            strict=True,
        )
    ]
    tests = [
        {**row, "between": "groups", "test": "paired_t", "statistic": 9.0} for row in rows[:1]
    ]
    write_files(tmp_path, rows, ["t-value"], ["pairs"], tests)
    table = compare_published(read_run(tmp_path), "chbias/3")
    columns = table[["system", "metric", "published", "measured"]].itertuples(index=False)
    assert [tuple(row) for row in columns] == [
        ("EVA2.0", "t-value (Gender)", 1.48, 9.0),
        ("EVA2.0", "t-value (Age)", -2.30, 2.0),
        ("EVA2.0 HD", "t-value (Gender)", 1.21, 3.0),
        ("EVA2.0 HD", "t-value (Age)", 0.40, 4.0),
    ]
