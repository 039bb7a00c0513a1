"""The spec of Beattie et al. 2023 with and without gender, on given vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import recbias
from recbias.config.source import read_spec

SPEC = Path(__file__).parents[2] / "configs" / "papers" / "aab" / "with-and-without-gender.yaml"
N_USERS, N_ITEMS, SIZE = 1000, 60, 4
SIZES = {"u": N_USERS, "i": N_ITEMS}
TABLES = {"aab/1", "aab/2", "aab/3", "aab/4", "aab/5", "aab/text"}


def write_world(folder: Path) -> dict[str, Any]:
    """Write users of two genders, films of two genres and vectors; return dataset and models."""
    rng = np.random.default_rng(3)
    is_woman, is_romance = np.arange(N_USERS) % 2 == 0, np.arange(N_ITEMS) % 2 == 0
    users, items = (np.array([f"{kind}{row}" for row in range(n)]) for kind, n in SIZES.items())
    genders, genres = np.where(is_woman, "F", "M"), np.where(is_romance, "Romance", "Action")
    tables = {
        "users": pd.DataFrame({"user_id": users, "gender": genders}),
        "items": pd.DataFrame({"item_id": items, "genres": genres}),
        "interactions": pd.DataFrame(
            {
                "user_id": np.repeat(users, 6),
                "item_id": np.concatenate(
                    [rng.choice(items, 6, replace=False) for _ in range(N_USERS)]
                ),
            }
        ),
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    for label, strength in (("WG", 2.0), ("NG", 0.5)):
        for name, has_side in (("users", is_woman), ("items", is_romance)):
            vectors = rng.normal(size=(has_side.size, SIZE))
            vectors[:, 0] += np.where(has_side, strength, -strength)
            np.save(folder / f"{label}-{name}.npy", vectors)
    for name, ids in (("users", users), ("items", items)):
        (folder / f"{name}.txt").write_text("\n".join(ids), encoding="utf-8")
    id_files = {f"{name[:-1]}_ids": str(folder / f"{name}.txt") for name in ("users", "items")}
    return {
        "dataset": {"name": "tables", **{name: str(folder / f"{name}.csv") for name in tables}},
        "models": [
            {"name": "vectors", "label": label, **id_files}
            | {name: str(folder / f"{label}-{name}.npy") for name in ("users", "items")}
            for label in ("WG", "NG")
        ],
    }


def test_every_table_is_compared(tmp_path: Path) -> None:
    spec = {**read_spec(SPEC).data, **write_world(tmp_path), "seeds": [1, 2]}
    spec["report"] = {**spec["report"], "formats": ["csv"]}
    for metric in spec["metrics"]:
        metric.update({"sample": 200} if "sample" in metric else {})
        metric.update({"permutations": 99} if metric["name"] in {"DEAA", "R-RIPA"} else {})
    run = recbias.run(spec, out=tmp_path / "results")
    assert run.manifest["failures"] == []
    reference = pd.read_csv(run.folder / "reference.csv").set_index(["system", "metric"])
    assert set(reference["table"]) == TABLES
    measured = reference["measured"]
    assert measured["WG", "accuracy (SVC, WG, test)"] > measured["NG", "accuracy (SVC, NG, test)"]
    similarity = measured["WG", "SVC vs CD (WG)"]
    assert similarity > 0.8
    share = measured["WG", "share of podcasts predicted female (SVC, WG, 50% female)"]
    rest = measured["WG", "share of podcasts predicted male (SVC, WG, 50% female)"]
    assert share + rest == 1
