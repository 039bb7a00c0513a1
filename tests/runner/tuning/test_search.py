from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest

import recbias
from recbias import api
from recbias.core.errors import StageError, UserError
from recbias.core.records import Failure
from recbias.runner.execution.executor import Executor, Silent
from recbias.runner.planning.plan import ModelPlan
from recbias.runner.planning.preview import preview
from recbias.runner.tuning.run_trial import RunTrial
from recbias.runner.tuning.search import ChooseBest, Found, importance_rows
from recbias.runner.tuning.trial import Trial
from support.specs import make_small_spec

PLUGIN = '''
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from recbias.core.outputs.ranked_lists import RankedLists



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
        deadly = (folder / "deadly").exists()
        if deadly and len((folder / "log").read_text().splitlines()) == 6:
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


def spec(folder: Path, trials: int = 12, **changes: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / "own.py").write_text(PLUGIN)
    tune = {"metric": "nDCG", "trials": trials, "space": {"place": {"float": [0, 1]}}}
    own = {"name": f"{folder}/own.py:Planted", "label": "Planted", "tune": tune}
    return make_small_spec(models=["MostPop", own], split=SPLIT, **changes)


def trials_of(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "trials.csv").drop(columns="seconds")


@pytest.fixture(autouse=True)
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", str(tmp_path))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    folder = tmp_path_factory.mktemp("ran")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PLANTED", str(folder))
        return recbias.run(spec(folder, 25), out=folder / "out")


def test_a_search_finds_what_was_planted(ran: recbias.Run) -> None:
    (found,) = ran.manifest["searches"]
    assert abs(found["settings"]["place"] - 0.3) < 0.1
    assert found["value"] == max(each["value"] or 0 for each in found["trials"])
    values = ran.metrics.set_index(["model", "metric"])["value"]
    # little noise is left, so the planted model is about as good as what it is made of
    assert values["Planted", "nDCG"] > 0.8 * values["MostPop", "nDCG"]


def test_the_trials_table_has_a_row_a_trial(ran: recbias.Run) -> None:
    table = pd.read_csv(ran.folder / "trials.csv")
    assert [*table.columns] == [
        *("dataset", "model", "seed", "fold", "trial", "value", "state", "seconds", "epochs"),
        "settings",
    ]
    assert table["trial"].tolist() == list(range(1, 26))
    assert set(table[["dataset", "model", "seed", "fold"]].itertuples(index=False, name=None)) == {
        ("demo", "Planted", 42, 1)
    }
    places = [json.loads(each)["place"] for each in table["settings"]]
    # where the place is above 0.7 the model fails, and the search goes on
    assert (table["state"] == "failed").tolist() == [each > 0.7 for each in places]
    assert 0 < sum(each > 0.7 for each in places) == table["value"].isna().sum()


def test_a_failed_trial_is_a_warning_and_not_a_failure(ran: recbias.Run) -> None:
    assert ran.failures == []
    assert any("the loss is NaN" in each for each in ran.manifest["warnings"])


def test_no_model_of_the_search_saw_a_test_row(ran: recbias.Run) -> None:
    folder = ran.folder.parents[2]
    plan, store = api.plan(spec(folder, 25), out=folder / "out")
    test = store.load(plan.data_contexts[0].split.digest).test
    tested = set(zip(test.users.tolist(), test.items.tolist(), strict=True))
    assert len(tested) > 100
    for line in (folder / "log").read_text().splitlines():
        seen = json.loads(line.partition(" ")[2].replace("(", "[").replace(")", "]"))
        assert not tested & {(user, item) for user, item in seen}


def test_the_manifest_names_what_was_searched_without_a_value(ran: recbias.Run) -> None:
    planted = ran.manifest["models"][1]
    assert (planted["parameters"], planted["searched"]) == ({"most": 0.7}, ["place"])


def test_the_resolved_spec_searches_again_and_says_what_was_chosen(
    ran: recbias.Run, tmp_path: Path
) -> None:
    folder = ran.folder.parents[2]
    text = (ran.folder / "spec.yaml").read_text()
    chosen = ran.manifest["searches"][0]["settings"]
    assert f"# chosen for Planted on demo, seed 42, fold 1: {json.dumps(chosen)}" in text
    assert "trials: 25" in text
    again = recbias.run(ran.folder / "spec.yaml", out=folder / "out")
    assert (again.folder / "trials.csv").read_bytes() == (ran.folder / "trials.csv").read_bytes()
    assert (again.folder / "metrics.csv").read_bytes() == (ran.folder / "metrics.csv").read_bytes()
    assert (again.folder / "spec.yaml").read_text() == text
    assert not (tmp_path / "log").exists()
    assert all(each["reused"] for each in again.manifest["stages"])


def test_more_trials_go_on_from_those_that_are_stored(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = recbias.run(spec(tmp_path, 4), out=out)
    plan, store = api.plan(spec(tmp_path, 6), out=out)
    seen = {step.stage.title: step for step in preview(plan, store).steps}
    assert [seen[f"trial {n} of Planted"].stored for n in range(1, 7)] == [True] * 4 + [False] * 2
    assert (seen["search Planted"].stored, seen["search Planted"].trials) == (False, 4)
    longer = recbias.run(spec(tmp_path, 6), out=out)
    assert trials_of(longer.folder).head(4).equals(trials_of(first.folder))


def test_what_is_stored_of_a_search_is_enough_without_its_trials(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = recbias.run(spec(tmp_path, 3), out=out)
    plan, store = api.plan(spec(tmp_path, 3), out=out)
    for stage in plan.model_plans[1].trials:
        store.remove(stage.digest)
    again = recbias.run(spec(tmp_path, 3), out=out)
    assert trials_of(again.folder).equals(trials_of(first.folder))
    assert all(each["reused"] for each in again.manifest["stages"])


def test_seeds_and_folds_are_searched_each_by_itself_also_in_processes(tmp_path: Path) -> None:
    many = {"seed": None, "seeds": [1, 2]}
    one = recbias.run(spec(tmp_path, 3, **many), out=tmp_path / "one")
    two = recbias.run(spec(tmp_path, 3, **many), out=tmp_path / "two", workers=2)
    first, second = trials_of(one.folder), trials_of(two.folder)
    assert first.equals(second)
    assert first["seed"].tolist() == [1, 1, 1, 2, 2, 2]
    assert len(set(first["settings"])) == 6
    assert (one.folder / "metrics.csv").read_bytes() == (two.folder / "metrics.csv").read_bytes()


def test_a_search_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = recbias.run(spec(tmp_path, 9), out=tmp_path / "whole")
    path, deadly, log = (tmp_path / each for each in ("spec.json", "deadly", "log"))
    path.write_text(json.dumps(spec(tmp_path, 9)))
    log.unlink()
    deadly.touch()
    command = [sys.executable, "-m", "recbias", "run", "spec.json", "--out", "killed", "-q"]
    inherited = {name: each for name, each in os.environ.items() if name != "RECBIAS_DATA"}
    assert subprocess.run(command, cwd=tmp_path, env=inherited, timeout=60).returncode == -9
    assert len(log.read_text().splitlines()) == 6
    deadly.unlink()
    resumed = recbias.run(path, out=tmp_path / "killed")
    assert trials_of(resumed.folder).equals(trials_of(whole.folder))
    for name in ("metrics.csv", "significance.csv"):
        assert (resumed.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    # five trials were done and the sixth was killed, tried again, and followed by three more
    # trials and the fit of the best; what failed at once is logged too
    assert len(log.read_text().splitlines()) == 6 + 4 + 1


def test_the_best_is_the_first_of_the_best_by_the_direction_of_the_metric() -> None:
    figures = [0.2, -0.1, 0.1, 0.5, math.nan]
    trials = [Trial(n, {"x": n}, each) for n, each in enumerate(figures, 1)]
    trials[-1] = Trial(5, {"x": 5}, math.nan, failure=Failure("no"))
    assert ChooseBest("higher")(*trials).best.number == 4
    assert ChooseBest("lower")(*trials).best.number == 2
    assert ChooseBest("zero")(*trials).best.number == 2
    assert ChooseBest("zero")(*trials).trials == tuple(trials)


def test_a_search_in_which_all_fails_fails() -> None:
    fault = Failure("alpha is too large", "lower it", user=True)
    trials = [Trial(n, {}, math.nan, failure=fault) for n in (1, 2)]
    with pytest.raises(UserError, match="all 2 trials failed, the first with: alpha") as caught:
        ChooseBest("higher")(*trials)
    assert caught.value.remedy == "search other ranges"
    crash = Trial(3, {}, math.nan, failure=Failure("ValueError: no"))
    with pytest.raises(StageError, match="all 3 trials failed"):
        ChooseBest("higher")(*trials, crash)


def test_after_a_search_that_failed_the_other_models_are_there(tmp_path: Path) -> None:
    failing = spec(tmp_path, 2)
    failing["models"][1]["most"] = -1.0
    run = recbias.run(failing, out=tmp_path / "out")
    assert [each["stage"] for each in run.failures] == ["search Planted"]
    assert set(run.metrics["model"]) == {"MostPop"}
    assert not (run.folder / "trials.csv").exists()


def test_a_pruned_trial_is_never_the_best() -> None:
    pruned = Trial(1, {"x": 1}, 0.9, curve=(0.9,), pruned=True)
    done = Trial(2, {"x": 2}, 0.1)
    assert ChooseBest("higher")(pruned, done).best is done


def test_rows_of_importances_say_where_they_belong() -> None:
    trial = Trial(1, {"a": 1, "b": 2}, 0.5)
    place = {"dataset": "d", "model": "m", "seed": 1, "fold": 2}
    found = Found(trial, (trial,), {"a": 0.75, "b": 0.25})
    assert importance_rows(found, place) == [
        {**place, "setting": "a", "importance": 0.75},
        {**place, "setting": "b", "importance": 0.25},
    ]


def test_the_importances_stand_in_a_table_of_their_own(ran: recbias.Run) -> None:
    table = pd.read_csv(ran.folder / "importances.csv")
    # of one setting all of the variation is its own
    assert table.to_dict("records") == [
        {
            "dataset": "demo",
            "model": "Planted",
            "seed": 42,
            "fold": 1,
            "setting": "place",
            "importance": 1.0,
        }
    ]


def test_the_address_of_a_trial_is_made_of_what_could_change_it(tmp_path: Path) -> None:
    def addresses(**changes: Any) -> list[str]:
        made = spec(tmp_path, 3)
        made["models"][1]["tune"] |= changes
        chain = api.plan(made, out=tmp_path)[0].model_plans[1]
        return [each.digest for each in chain.stages]

    base = addresses()
    assert addresses(trials=3) == base
    assert not {*base} & {*addresses(metric="nDCG@3")}
    assert not {*base} & {*addresses(space={"place": {"float": [0, 2]}})}
    assert addresses(trials=2)[:2] == base[:2]
    assert not {*base[3:]} & {*addresses(trials=2)[2:]}
    # nor can how many run at once change the trials that were drawn from nothing
    two = addresses(parallel=2)
    assert two[0] == base[0]
    assert not {*two[1:]} & {*base[1:]}
    # nDCG is judged by the median rule unless the spec says otherwise
    assert not {*base} & {*addresses(pruning="none")}
    assert addresses(pruning="median") == base


def planned(folder: Path, trials: int, **tune: Any) -> ModelPlan:
    made = spec(folder, trials)
    made["models"][1]["tune"] |= tune
    return api.plan(made, out=folder)[0].model_plans[1]


def test_a_trial_waits_for_the_batches_before_its_own_only(tmp_path: Path) -> None:
    chain = planned(tmp_path, 7, parallel=3)
    trials, search = chain.trials, chain.search
    known = [
        [one.title.split()[1] for one in each.inputs if one.kind == "trial"] for each in trials
    ]
    first, second = ["1", "2", "3"], ["1", "2", "3", "4", "5", "6"]
    assert known == [[], [], [], first, first, first, second]
    assert [cast("RunTrial", each.work).number for each in trials] == [1, 2, 3, 4, 5, 6, 7]
    assert search is not None
    assert [each.title for each in search.inputs] == [
        f"trial {number} of Planted" for number in range(1, 8)
    ]


def test_trials_in_batches_come_out_the_same_in_any_order(tmp_path: Path) -> None:
    plan, store = api.plan(with_parallel(spec(tmp_path, 6)), out=tmp_path / "other")
    walk = Executor(store, Silent())
    for stage in reversed(plan.model_plans[1].trials):
        walk.ensure(stage)
    backwards = recbias.run(with_parallel(spec(tmp_path, 6)), out=tmp_path / "other")
    forwards = recbias.run(with_parallel(spec(tmp_path, 6)), out=tmp_path / "out")
    assert trials_of(backwards.folder).equals(trials_of(forwards.folder))
    assert trials_of(forwards.folder)["settings"].nunique() == 6


def with_parallel(made: dict[str, Any]) -> dict[str, Any]:
    made["models"][1]["tune"] |= {"parallel": 3}
    return made


def test_more_trials_in_batches_go_on_from_those_that_are_stored(tmp_path: Path) -> None:
    # the second batch of two is half done after three trials, and is made whole by the fourth
    three, five = planned(tmp_path, 3, parallel=2), planned(tmp_path, 5, parallel=2)
    assert [each.digest for each in three.trials] == [each.digest for each in five.trials[:3]]


def test_a_try_has_two_trials_which_the_search_itself_begins_with(tmp_path: Path) -> None:
    tried = api.plan(spec(tmp_path, 9), out=tmp_path, limit=5)[0].model_plans[1]
    whole = planned(tmp_path, 9)
    assert [each.digest for each in tried.trials] == [each.digest for each in whole.trials[:2]]
    assert len(api.plan(spec(tmp_path, 1), out=tmp_path, limit=5)[0].model_plans[1].trials) == 1


def test_a_search_by_labels_of_a_detector(tmp_path: Path) -> None:
    made = make_small_spec(
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
    run = recbias.run(made, out=tmp_path)
    assert run.failures == []
    assert trials_of(run.folder)["value"].notna().all()


GRADIENT = {
    "name": "MF",
    "epochs": 15,
    "embedding_size": 4,
    "device": "cpu",
    "tune": {
        "metric": "nDCG@10",
        "trials": 7,
        "space": {"learning_rate": {"log": [1.0e-6, 0.1]}, "reg": {"log": [1.0e-4, 1]}},
    },
}


def test_a_gradient_model_is_pruned_and_ends_in_the_same_figures(
    tmp_path: Path,
) -> None:
    made = make_small_spec(models=[GRADIENT], split=SPLIT, k=10)
    whole = recbias.run(made, out=tmp_path / "whole")
    table = trials_of(whole.folder)
    assert (table["state"] == "pruned").any()
    pruned = table[table["state"] == "pruned"]
    assert (table["trial"][pruned.index] > 5).all()
    assert pruned["epochs"].between(10, 15).all()
    assert table.loc[table["state"] == "done", "value"].max() == pytest.approx(
        whole.manifest["searches"][0]["value"]
    )
    assert whole.manifest["searches"][0]["pruned"] == len(pruned)
    again = recbias.run(made, out=tmp_path / "again")
    assert trials_of(again.folder).equals(table)
    weights = pd.read_csv(whole.folder / "importances.csv")
    assert weights["setting"].tolist() == ["learning_rate", "reg"]


GRID = {"place": {"choice": [0.1, 0.3, 0.5, 0.6]}, "most": {"choice": [0.55, 0.7, 0.9]}}
"""Twelve combinations, one of which fails: a place of 0.6 where the most is 0.55."""


def over_grid(folder: Path, trials: int, **tune: Any) -> dict[str, Any]:
    made = spec(folder, trials)
    made["models"][1]["tune"] |= {"space": GRID, **tune}
    return made


def fitted(folder: Path) -> int:
    return len((folder / "log").read_text().splitlines())


def test_a_search_with_room_for_every_combination_tries_each_once(tmp_path: Path) -> None:
    run = recbias.run(over_grid(tmp_path, 40), out=tmp_path / "out")
    table = trials_of(run.folder)
    tried = [tuple(json.loads(each).values()) for each in table["settings"]]
    every = {(a, b) for a in GRID["place"]["choice"] for b in GRID["most"]["choice"]}
    assert (len(tried), {*tried}) == (12, every)
    assert table["trial"].tolist() == list(range(1, 13))
    assert table["state"].value_counts().to_dict() == {"done": 11, "failed": 1}
    assert fitted(tmp_path) == 12 + 1  # and the best


def test_the_order_of_combinations_is_of_the_seed_and_of_no_batch(tmp_path: Path) -> None:
    alone = recbias.run(over_grid(tmp_path, 12), out=tmp_path / "alone")
    many = recbias.run(over_grid(tmp_path, 12, parallel=5), out=tmp_path / "many", workers=2)
    other = recbias.run(over_grid(tmp_path, 12) | {"seed": 7}, out=tmp_path / "other")
    assert trials_of(many.folder).equals(trials_of(alone.folder))
    first, second = (trials_of(each.folder)["settings"].tolist() for each in (alone, other))
    assert first != second
    assert sorted(first) == sorted(second)


def test_a_search_over_combinations_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = recbias.run(over_grid(tmp_path, 12, parallel=2), out=tmp_path / "whole")
    (tmp_path / "log").unlink()
    path, deadly = tmp_path / "spec.json", tmp_path / "deadly"
    path.write_text(json.dumps(over_grid(tmp_path, 12, parallel=2)))
    deadly.touch()
    command = [sys.executable, "-m", "recbias", "run", "spec.json", "--out", "killed", "-q"]
    inherited = {name: each for name, each in os.environ.items() if name != "RECBIAS_DATA"}
    assert subprocess.run(command, cwd=tmp_path, env=inherited, timeout=60).returncode == -9
    assert fitted(tmp_path) == 6
    deadly.unlink()
    resumed = recbias.run(path, out=tmp_path / "killed")
    assert trials_of(resumed.folder).equals(trials_of(whole.folder))
    assert fitted(tmp_path) == 6 + 7 + 1  # the sixth was killed and is tried again


def test_trials_of_a_search_over_combinations_are_addressed_as_such(tmp_path: Path) -> None:
    def addresses(trials: int, limit: int | None = None) -> list[str]:
        made = api.plan(over_grid(tmp_path, trials), out=tmp_path, limit=limit)[0]
        return [each.digest for each in made.model_plans[1].trials]

    every, fewer = addresses(12), addresses(11)
    assert (len(every), len(fewer)) == (12, 11)
    assert addresses(40) == every
    assert not {*every} & {*fewer}
    # a try begins as the whole search does, though its two trials have no room for all
    works = [
        api.plan(over_grid(tmp_path, 12), out=tmp_path, limit=each)[0].model_plans[1].trials
        for each in (None, 5)
    ]
    assert len(works[1]) == 2
    assert all(cast("RunTrial", each.work).covering for trials in works for each in trials)


def test_a_pruned_combination_is_not_tried_again(tmp_path: Path) -> None:
    choices = {
        "learning_rate": {"choice": [1.0e-9, 1.0e-8, 1.0e-3, 1.0e-2, 5.0e-2]},
        "reg": {"choice": [0.0, 0.01, 0.1]},
    }
    tune = {"metric": "nDCG", "trials": 15, "space": choices}
    model = {"name": "MF", "epochs": 15, "patience": 0, "embedding_size": 4, "tune": tune}
    made = make_small_spec(models=[model], split=SPLIT)
    table = trials_of(recbias.run(made, out=tmp_path / "out").folder)
    assert table["settings"].nunique() == len(table) == 15
    assert {"done", "pruned"} == {*table["state"]}
