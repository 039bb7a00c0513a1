"""Intervals end at the range of the metric with its settings."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

import recbias

GENRES = {"h": "x", "a": "x", "b": "x", "c": "y", "d": "z"}
LISTS = {"1": "ab", "2": "cd", "3": "cd"}
HISTORIES = {**dict.fromkeys("123", "h"), **dict.fromkeys("4567", "ab"), "8": "cd"}


def write_pairs(path: Path, rows: dict[str, str], key: str) -> None:
    pairs = [(user, item, rank) for user in rows for rank, item in enumerate(rows[user], start=1)]
    pd.DataFrame(pairs, columns=[key, "item_id", "rank"]).to_csv(path, index=False)


@pytest.mark.parametrize(
    ("metric", "highest"),
    [
        ({"name": "intra_list_distance", "attribute": "genre"}, 1.0),
        # the lists of users 2 and 3 have no genre of the history
        ({"name": "calibration_kl", "attribute": "genre"}, -math.log(0.01)),
        # a and b are the head, with 8 of 13 interactions: c and d are 2 of 2 ranks
        ({"name": "ACLT", "head": 0.6}, 2.0),
    ],
)
def test_the_interval_of_few_users_ends_at_the_range(
    metric: dict[str, object], highest: float, tmp_path: Path
) -> None:
    write_pairs(tmp_path / "lists.csv", LISTS, "query_id")
    write_pairs(tmp_path / "train.csv", HISTORIES, "user_id")
    items = pd.DataFrame({"item_id": GENRES.keys(), "genre": GENRES.values()})
    items.to_csv(tmp_path / "items.csv", index=False)
    pd.DataFrame({"query_id": LISTS.keys()}).to_csv(tmp_path / "asked.csv", index=False)
    spec = {
        "name": "ranges",
        "dataset": {"name": "tables", "interactions": "train.csv", "items": "items.csv"},
        "queries": {"name": "table", "path": "asked.csv"},
        "k": 2,
        "models": [{"name": "lists", "path": "lists.csv"}],
        "metrics": [metric],
        "report": {"formats": ["csv"]},
    }
    (tmp_path / "spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    (row,) = recbias.run(tmp_path / "spec.yaml", out=tmp_path).metrics.to_dict("records")
    # 0, the highest and the highest: the t interval is wider than the range
    assert row["value"] == pytest.approx(2 / 3 * highest)
    assert row["ci_low"] == 0
    assert row["ci_high"] == pytest.approx(highest, rel=1e-12)
