from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias
from recbias import api
from recbias.core.context import Failure
from recbias.core.errors import StageError, UserError
from recbias.runner.estimate import preview
from recbias.runner.plan import ModelPlan
from recbias.runner.tuning import SelectBestTrial, Trial
from support.specs import make_small_spec

PLUGIN = '''
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from recbias.core.evidence import RankedLists



@dataclass(frozen=True, kw_only=True)
class Planted:
    """Popular items, with the more noise the farther ``place`` is from 0.3; above 0.7 it fails."""

    provides: ClassVar[frozenset] = frozenset({"lists"})
    needs: ClassVar[frozenset] = frozenset({"train"})
    libraries: ClassVar[tuple] = ()
    place: float = 0.5
    most: float = 0.7

    def fit(self, data, rng):
        assert not hasattr(data, "test")
        seen = {(int(u), int(i)) for u, i in zip(data.train.users, data.train.items)}
        seen |= {(int(u), int(i)) for u, i in zip(data.validation.users, data.validation.items)}
        folder = Path(os.environ["PLANTED"])
        with (folder / "log").open("a") as log:
            log.write(f"{self.place} {sorted(seen)}\\n")
        kill_switch = (folder / "deadly").exists()
        if kill_switch and len((folder / "log").read_text().splitlines()) == 6:
            os.kill(os.getpid(), 9)
        if self.place > self.most:
            raise FloatingPointError("the loss is NaN")
        counts = data.train.item_counts().astype(np.float32)
        noise = np.random.default_rng(0).random(counts.size, dtype=np.float32)
        return Fitted(counts + 300 * abs(self.place - 0.3) * noise)

    def restore(self, state):
        return Fitted(state["scores"])


@dataclass(frozen=True, eq=False)
class Fitted:
    """What it learned."""

    scores: np.ndarray

    def state(self):
        return {"scores": self.scores}

    def recommend(self, queries, k, data):
        scores = np.tile(self.scores, (len(queries), 1))
        scores[data.train.binary.toarray()[queries.users] > 0] = -np.inf
        items = np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)
        return RankedLists(items, np.take_along_axis(scores, items, 1).astype(np.float32))
'''

SPLIT = {"name": "random", "test": 0.2, "validation": 0.2}


def make_spec(folder: Path, trials: int = 12, **changes: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / "own.py").write_text(PLUGIN)
    tune = {"metric": "nDCG", "trials": trials, "space": {"place": {"float": [0, 1]}}}
    planted = {"name": f"{folder}/own.py:Planted", "label": "Planted", "tune": tune}
    return make_small_spec(models=["MostPop", planted], split=SPLIT, **changes)


def read_trials(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "trials.csv").drop(columns="seconds")


@pytest.fixture(autouse=True)
def set_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", str(tmp_path))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PLANTED", str(folder))
        return recbias.run(make_spec(folder, 25), out=folder / "out")


def test_a_search_finds_the_planted_optimum(run: recbias.Run) -> None:
    (search,) = run.manifest["searches"]
    assert abs(search["settings"]["place"] - 0.3) < 0.1
    assert search["value"] == max(trial["value"] or 0 for trial in search["trials"])
    values = run.metrics.set_index(["model", "metric"])["value"]
    # with little noise, the planted model is about as good as MostPop
    assert values["Planted", "nDCG"] > 0.8 * values["MostPop", "nDCG"]


def test_the_trials_table_has_one_row_per_trial(run: recbias.Run) -> None:
    table = pd.read_csv(run.folder / "trials.csv")
    assert [*table.columns] == [
        *("dataset", "model", "seed", "fold", "trial", "value", "state", "seconds", "epochs"),
        "settings",
    ]
    assert table["trial"].tolist() == list(range(1, 26))
    assert set(table[["dataset", "model", "seed", "fold"]].itertuples(index=False, name=None)) == {
        ("demo", "Planted", 42, 1)
    }
    places = [json.loads(settings)["place"] for settings in table["settings"]]
    # above 0.7 the model fails, and the search continues
    assert (table["state"] == "failed").tolist() == [place > 0.7 for place in places]
    assert 0 < sum(place > 0.7 for place in places) == table["value"].isna().sum()


def test_the_resolved_spec_searches_again_and_comments_the_best_settings(
    run: recbias.Run, tmp_path: Path
) -> None:
    folder = run.folder.parents[2]
    text = (run.folder / "spec.yaml").read_text()
    best = run.manifest["searches"][0]["settings"]
    assert f"# chosen for Planted on demo, seed 42, fold 1: {json.dumps(best)}" in text
    assert "trials: 25" in text
    again = recbias.run(run.folder / "spec.yaml", out=folder / "out")
    assert again.folder == run.folder
    assert not (tmp_path / "log").exists()


def test_a_longer_search_reuses_the_stored_trials(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = recbias.run(make_spec(tmp_path, 4), out=out)
    plan, store = api.plan(make_spec(tmp_path, 6), out=out)
    seen = {step.stage.title: step for step in preview(plan, store).steps}
    assert [seen[f"trial {n} of Planted"].stored for n in range(1, 7)] == [True] * 4 + [False] * 2
    assert (seen["search Planted"].stored, seen["search Planted"].trials) == (False, 4)
    longer = recbias.run(make_spec(tmp_path, 6), out=out)
    assert read_trials(longer.folder).head(4).equals(read_trials(first.folder))


def test_a_killed_search_resumes_with_the_same_result(tmp_path: Path) -> None:
    whole = recbias.run(make_spec(tmp_path, 9), out=tmp_path / "whole")
    path, kill_switch, log = (tmp_path / name for name in ("spec.json", "deadly", "log"))
    path.write_text(json.dumps(make_spec(tmp_path, 9)))
    log.unlink()
    kill_switch.touch()
    command = [sys.executable, "-m", "recbias", "run", "spec.json", "--out", "killed", "-q"]
    environment = {name: value for name, value in os.environ.items() if name != "RECBIAS_DATA"}
    assert subprocess.run(command, cwd=tmp_path, env=environment, timeout=60).returncode == -9
    assert len(log.read_text().splitlines()) == 6
    kill_switch.unlink()
    resumed = recbias.run(path, out=tmp_path / "killed")
    assert read_trials(resumed.folder).equals(read_trials(whole.folder))
    for name in ("metrics.csv", "significance.csv"):
        assert (resumed.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    # five trials, the killed sixth, which is repeated, three more trials and the fit of the best;
    # failed trials are logged too
    assert len(log.read_text().splitlines()) == 6 + 4 + 1


def test_a_search_fails_if_all_trials_fail() -> None:
    fault = Failure("alpha is too large", "lower it", user=True)
    trials = [Trial(n, {}, math.nan, failure=fault) for n in (1, 2)]
    with pytest.raises(UserError, match="all 2 trials failed, the first with: alpha") as caught:
        SelectBestTrial("higher")(*trials)
    assert caught.value.remedy == "change the search space"
    crash = Trial(3, {}, math.nan, failure=Failure("ValueError: no"))
    with pytest.raises(StageError, match="all 3 trials failed"):
        SelectBestTrial("higher")(*trials, crash)


def plan_model(folder: Path, trials: int, **tune: Any) -> ModelPlan:
    spec = make_spec(folder, trials)
    spec["models"][1]["tune"] |= tune
    return api.plan(spec, out=folder)[0].model_plans[1]


def test_a_smoke_test_has_the_first_two_trials_of_the_search(tmp_path: Path) -> None:
    smoke_test = api.plan(make_spec(tmp_path, 9), out=tmp_path, limit=5)[0].model_plans[1]
    whole = plan_model(tmp_path, 9)
    assert [stage.digest for stage in smoke_test.trials] == [
        stage.digest for stage in whole.trials[:2]
    ]
    assert (
        len(api.plan(make_spec(tmp_path, 1), out=tmp_path, limit=5)[0].model_plans[1].trials) == 1
    )


def test_a_search_may_optimize_a_metric_of_detector_labels(tmp_path: Path) -> None:
    spec = make_small_spec(
        labels=[{"name": "own", "detector": "column", "from": "stereotype"}],
        models=[
            {
                "name": "ItemKNN",
                "tune": {
                    "metric": {"name": "HIT_BAD", "label": "own.stereotype"},
                    "trials": 3,
                    "space": {"neighbors": {"int": [1, 40]}},
                },
            }
        ],
        split=SPLIT,
    )
    run = recbias.run(spec, out=tmp_path)
    assert run.failures.empty
    assert read_trials(run.folder)["value"].notna().all()


GRID = {"place": {"choice": [0.1, 0.3, 0.5, 0.6]}, "most": {"choice": [0.55, 0.7, 0.9]}}
"""Twelve combinations, one of which fails: place 0.6 with most 0.55."""


def make_grid_spec(folder: Path, trials: int, **tune: Any) -> dict[str, Any]:
    spec = make_spec(folder, trials)
    spec["models"][1]["tune"] |= {"space": GRID, **tune}
    return spec


def count_fits(folder: Path) -> int:
    return len((folder / "log").read_text().splitlines())


def test_an_exhaustive_search_tries_every_combination_once(tmp_path: Path) -> None:
    run = recbias.run(make_grid_spec(tmp_path, 40), out=tmp_path / "out")
    table = read_trials(run.folder)
    combinations = [tuple(json.loads(settings).values()) for settings in table["settings"]]
    grid = {(a, b) for a in GRID["place"]["choice"] for b in GRID["most"]["choice"]}
    assert (len(combinations), {*combinations}) == (12, grid)
    assert table["trial"].tolist() == list(range(1, 13))
    assert table["state"].value_counts().to_dict() == {"done": 11, "failed": 1}
    assert count_fits(tmp_path) == 12 + 1  # and the best
