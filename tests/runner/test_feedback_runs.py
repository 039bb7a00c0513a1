"""``feedback:`` in specs: rounds from the spec to the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.measures import ROUNDS
from support.specs import make_small_spec

MODELS = ["MostPop", {"name": "EASE", "rerank": {"name": "xQuAD", "candidates": 20}}]
NAMES = ["MostPop", "EASE", "EASE + xQuAD"]
LOOP = {"rounds": 3, "acceptance": 0.9, "picks": 2}
METRICS = [
    "nDCG",
    "Gini",
    "ItemCoverage",
    "homogenization",
    {"name": "relative_utility", "by": "gender"},
]


def run_loop(folder: Path, **changes: Any) -> recbias.Run:
    spec = make_small_spec(
        **{
            "models": MODELS,
            "metrics": METRICS,
            "tests": None,
            "dataset": {"name": "demo", "n_users": 60, "n_items": 60, "per_user": 10},
            "feedback": LOOP,
            **changes,
        }
    )
    return recbias.run(spec, out=folder, progress=False)


def read_rounds(run: recbias.Run) -> pd.DataFrame:
    assert run.rounds is not None
    return run.rounds


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def run(folder: Path) -> recbias.Run:
    return run_loop(folder, report={"formats": ["csv", "md"]})


def test_the_file_has_a_row_for_each_value_of_each_round(run: recbias.Run) -> None:
    rounds = read_rounds(run)
    assert tuple(rounds.columns) == ROUNDS.names
    assert rounds["model"].unique().tolist() == NAMES
    counts = rounds.groupby("model")["round"].value_counts()
    assert len(set(counts)) == 1
    assert sorted(rounds["round"].unique()) == [1, 2, 3]
    keys = ["model", "round", "metric", "k", "group", "target"]
    assert not rounds.duplicated(keys).any()


def test_the_first_round_has_the_values_of_the_run(run: recbias.Run) -> None:
    keys = ["model", "metric", "group", "target"]
    first = read_rounds(run).query("round == 1").set_index(keys)["value"]
    values = run.metrics.set_index(keys)["value"]
    pd.testing.assert_series_equal(first.sort_index(), values.sort_index())


def test_the_training_data_grows_by_what_is_accepted(run: recbias.Run) -> None:
    sizes = read_rounds(run).pivot_table(
        index="model", columns="round", values="interactions", aggfunc="first"
    )
    assert (sizes[1] == sizes.loc["EASE", 1]).all()  # all models begin with the same data
    assert (np.diff(sizes.to_numpy(), axis=1) > 0).all()
    assert (np.diff(sizes.to_numpy(), axis=1) <= 60 * 2).all()  # 60 users accept 2 at most


def test_a_re_ranked_model_has_a_history_of_its_own(run: recbias.Run) -> None:
    rounds = (
        read_rounds(run)
        .query("metric == 'Gini'")
        .pivot_table(index="model", columns="round", values="value")
    )
    assert (rounds.loc["EASE"] != rounds.loc["EASE + xQuAD"]).all()


def test_a_second_run_computes_nothing_and_a_lost_round_again(
    run: recbias.Run, folder: Path
) -> None:
    again = run_loop(folder)
    assert all(stage["reused"] for stage in again.manifest["stages"])
    pd.testing.assert_frame_equal(read_rounds(again), read_rounds(run))
    lost = [stage["digest"] for stage in again.manifest["stages"] if "round 3" in stage["stage"]]
    for digest in lost:
        for path in (folder / "store").rglob(f"*{digest}*"):
            if path.is_dir():
                path.rename(folder / f"lost-{digest}")
    resumed = run_loop(folder)
    computed = {stage["stage"] for stage in resumed.manifest["stages"] if not stage["reused"]}
    assert computed
    assert all("round 3" in title for title in computed)
    pd.testing.assert_frame_equal(read_rounds(resumed), read_rounds(run))


FRAGILE = '''
from dataclasses import dataclass

from recbias.models.baselines import MostPop


@dataclass(frozen=True, kw_only=True)
class Fragile(MostPop):
    """A model that cannot be trained on more than so many interactions."""

    most: int

    def fit(self, data, rng):
        if len(data.train) > self.most:
            raise ValueError("too many interactions")
        return MostPop.fit(self, data, rng)
'''


def test_a_round_that_fails_ends_the_history_of_its_model_only(
    run: recbias.Run, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "fragile.py").write_text(FRAGILE)
    first = int(read_rounds(run).query("round == 1")["interactions"].iloc[0])
    fragile = {"name": f"{tmp_path}/fragile.py:Fragile", "label": "fragile", "most": first}
    broken = run_loop(folder, models=["MostPop", fragile], metrics=["Gini"])
    rounds = read_rounds(broken).groupby("model")["round"].unique()
    assert rounds["MostPop"].tolist() == [1, 2, 3]
    assert rounds["fragile"].tolist() == [1]
    (failure,) = broken.failures
    assert failure["stage"] == "fit fragile, round 2"
    assert "too many interactions" in failure["message"]
