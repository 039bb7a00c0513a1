"""The exposure of fixed lists equals that which FairRankTune and expeval compute.

The values were computed outside the project: by ``EXP``, ``EXPU``, ``EXPRU`` and ``AWRF`` of
FairRankTune 0.0.7 with the combination ``MinMaxRatio``, and from ``target_exposures`` and
``treatment_exposures`` of expeval (``individual.py`` of commit d943b3e, without the bounds of the
metrics), with complete judgements. The click rate of ``EXPRU`` is relevance times exposure.
FairRankTune reads relevance in the lists only, so every relevant item is in its list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias

STEPS = (1, 7, 11, 13, 17, 19, 23, 29)
GROUPS = "aaaaabbbcc"
LISTS = [[(7 * q + STEPS[q % 8] * rank) % 30 for rank in range(10)] for q in range(25)]
RELEVANT = [
    sorted({LISTS[q][rank] for rank in (q % 10, (3 * q + 5) % 10, q * q % 10)}) for q in range(25)
]

FAIR_RANK_TUNE = {
    "EXP": 0.9619130633,
    "EXPU": 0.6989932995,
    "EXPRU": 0.8042426622,
    "AWRF-min-max": 0.9358834502,
}
EXPEVAL = {"EE-D": 2.7457521804, "EE-R": 1.2984636909, "EE-L": 2.2781973014}


def write_lists(folder: Path) -> dict[str, Any]:
    """Write the lists and their items; return a spec that evaluates them."""
    groups = {"item_id": range(30), "maker": [GROUPS[item % 10] for item in range(30)]}
    pd.DataFrame(groups).to_csv(folder / "items.csv", index=False)
    train = {"user_id": ["other"] * 30, "item_id": range(30)}
    pd.DataFrame(train).to_csv(folder / "train.csv", index=False)
    users = {"user_id": ["other", *(f"q{query}" for query in range(len(LISTS)))]}
    pd.DataFrame(users).to_csv(folder / "users.csv", index=False)
    test = [(f"q{q}", item) for q, items in enumerate(RELEVANT) for item in items]
    pd.DataFrame(test, columns=["user_id", "item_id"]).to_csv(folder / "test.csv", index=False)
    rows = [(f"q{q}", item, r) for q, items in enumerate(LISTS) for r, item in enumerate(items, 1)]
    lists = pd.DataFrame(rows, columns=["query_id", "item_id", "rank"])
    lists.to_csv(folder / "lists.csv", index=False)
    names = ("users", "items", "train", "test", "lists")
    files = {name: str(folder / f"{name}.csv") for name in names}
    return {
        "name": "others",
        "dataset": {"name": "tables", "items": files["items"], "users": files["users"]},
        "split": {"name": "given", "train": files["train"], "test": files["test"]},
        "k": 10,
        "models": [{"name": "lists", "path": files["lists"]}],
        "metrics": [
            *({"name": name, "attribute": "maker"} for name in FAIR_RANK_TUNE),
            *({"name": name, "gamma": 0.8} for name in EXPEVAL),
        ],
    }


def test_values_equal_those_of_fair_rank_tune_and_expeval(tmp_path: Path) -> None:
    run = recbias.run(write_lists(tmp_path), out=tmp_path / "results")
    names = run.metrics["metric"].str.partition("(")[0]
    measured = dict(zip(names, run.metrics["value"], strict=True))
    assert measured == pytest.approx({**FAIR_RANK_TUNE, **EXPEVAL}, rel=1e-9)
