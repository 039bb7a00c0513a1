from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.config.specs import FeedbackSpec
from recbias.core.dataset import Attributes, BoolArray, Dataset, Interactions, Odds, Split
from recbias.core.errors import BrokenContract, Contradiction
from recbias.core.measures import ROUNDS
from recbias.core.queries import Queries
from recbias.runner.feedback import AcceptItems, sample_choices
from recbias.runner.stages import ModelOutputs
from support.commands import invoke_recbias
from support.specs import make_small_spec
from support.worlds.evidence_worlds import make_lists, make_user_queries, make_vocabulary

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


EQUAL = Odds(np.zeros((1, 5)), np.zeros(3, dtype=int))
CERTAIN = FeedbackSpec(rounds=2, acceptance=1.0, picks=3)


@dataclass(frozen=True)
class World:
    """Three users to whom all five items are equally likely."""

    returned: Any = EQUAL

    def compute_odds(self, users: Attributes, items: Attributes) -> Any:
        assert len(users.ids) == 3
        assert len(items.ids) == 5
        return self.returned


def make_rows(pairs: list[tuple[int, int]], *, timed: bool = True) -> Interactions:
    users, items = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    values = np.arange(1, users.size + 1, dtype=np.float32)
    times = np.arange(100, 100 + users.size) if timed else None
    ids = make_vocabulary("u", 3), make_vocabulary("i", 5)
    return Interactions(users.copy(), items.copy(), values, times, *ids)


def accept(
    items: list[list[int]],
    split: Split,
    queries: Queries | None = None,
    returned: Any = EQUAL,
    choice: FeedbackSpec = CERTAIN,
) -> Split:
    users, ids = split.train.user_ids, split.train.item_ids
    tables = (
        Attributes(users, pd.DataFrame(index=range(3))),
        Attributes(ids, pd.DataFrame(index=range(5))),
    )
    dataset = Dataset(split.train, *tables)
    outputs = ModelOutputs(make_lists(items), None)
    step = AcceptItems(World(returned), choice, 42, 1, 2)
    return step(dataset, split, queries or make_user_queries(3), outputs)


def list_pairs(rows: Interactions) -> list[tuple[int, int]]:
    return list(zip(rows.users.tolist(), rows.items.tolist(), strict=True))


def test_hand_worked_round() -> None:
    # Users accept all that they can. User 0 has had item 0, holds item 1 out for the test and item
    # 2 for the validation: only item 3 of the list is new. User 1 accepts all three; user 2 has an
    # empty list. The new rows have the median value 2 of the values 1 2 3 and the time 103.
    train = make_rows([(0, 0), (1, 4), (2, 0)])
    split = Split(train, make_rows([(0, 1)]), make_rows([(0, 2)]))
    later = accept([[0, 1, 2, 3], [2, 1, 0], []], split)
    assert list_pairs(later.train) == [*list_pairs(train), (0, 3), (1, 2), (1, 1), (1, 0)]
    assert later.train.values.tolist() == [1.0, 2.0, 3.0, 2.0, 2.0, 2.0, 2.0]
    assert later.train.times is not None
    assert later.train.times.tolist() == [100, 101, 102, 103, 103, 103, 103]
    assert later.test is split.test
    assert later.validation is split.validation
    assert split.train is train  # the split before is as it was


def test_no_pair_of_the_test_set_becomes_training_data() -> None:
    # every user is recommended everything: what is held out stays held out
    rng = np.random.default_rng(1)
    for _ in range(20):
        parts = rng.integers(0, 3, (3, 5))
        pairs = [[(u, i) for u in range(3) for i in range(5) if parts[u, i] == n] for n in (0, 1)]
        if not all(pairs):
            continue
        split = Split(make_rows(pairs[0]), make_rows(pairs[1]))
        later = accept([[0, 1, 2, 3, 4]] * 3, split)
        assert not set(list_pairs(later.train)) & set(pairs[1])
        assert len(set(list_pairs(later.train))) == len(later.train)


def test_bad_input_is_an_error() -> None:
    split = Split(make_rows([(0, 0)]), None)
    with pytest.raises(Contradiction, match="no query is a user"):
        accept([[1]] * 3, split, make_user_queries(3, users=[-1, -1, -1]))
    with pytest.raises(BrokenContract, match="returns NoneType, not Odds"):
        accept([[1]] * 3, split, returned=None)
    without = replace(ModelOutputs(make_lists([[1]]), None), lists=None)
    step = AcceptItems(World(), CERTAIN, 42, 1, 2)
    with pytest.raises(BrokenContract, match="no lists"):
        step(Dataset(split.train), split, make_user_queries(3), without)


N = 40_000
"""Users with the same list."""


def sample_many(weights: list[float], ideal: list[float], **settings: Any) -> BoolArray:
    choice = FeedbackSpec(**{"rounds": 2, **settings})
    lists, ideals = (np.tile(row, (N, 1)) for row in (weights, ideal))
    return sample_choices(lists, ideals, choice, np.random.default_rng(1))


def assert_shares(accepted: BoolArray, expected: list[float]) -> None:
    errors = np.sqrt(np.array(expected) * (1 - np.array(expected)) / N)
    assert (np.abs(accepted.mean(axis=0) - expected) <= 4 * errors).all()


def test_hand_worked_probabilities_of_one_choice() -> None:
    # w = 2, 1, 1 of an ideal list of 4, 2, 2, position 0: W = 8, the sum 4, a = 1/2, so
    # P = (2, 1, 1) / 2 / (8 / 2 + 4 / 2) = 1/6, 1/12, 1/12
    accepted = sample_many([2.0, 1.0, 1.0], [4.0, 2.0, 2.0], acceptance=0.5, position=0.0)
    assert_shares(accepted, [1 / 6, 1 / 12, 1 / 12])
    assert accepted.sum(axis=1).max() == 1


def test_hand_worked_probabilities_with_positions() -> None:
    # with position 1 the odds of the ranks are 2, 1/2 and 1/3 of ideal odds 2, 1/2, 1/3: the list
    # is ideal, so one is accepted with probability a = 0.6, divided 12 : 3 : 2
    accepted = sample_many([2.0, 1.0, 1.0], [2.0, 1.0, 1.0], acceptance=0.6, position=1.0)
    assert_shares(accepted, [0.6 * 12 / 17, 0.6 * 3 / 17, 0.6 * 2 / 17])


def test_several_choices_are_those_of_a_plackett_luce_model_that_ends_with_nothing() -> None:
    # second opinion: P of a set of accepted items, by enumerating the orders of three items and
    # "nothing" (3) by their odds, cut at nothing and at two picks
    odds = [3.0, 2.0, 1.0, 4.0]  # nothing: (1 - a) / a * 6 with a = 0.6
    expected = np.zeros(3)
    for order in itertools.permutations(range(4)):
        left, probability = sum(odds), 1.0
        for item in order:
            probability *= odds[item] / left
            left -= odds[item]
        for item in order[: min(order.index(3), 2)]:
            expected[item] += probability
    accepted = sample_many(odds[:3], odds[:3], acceptance=0.6, picks=2, position=0.0)
    assert_shares(accepted, expected.tolist())
    assert accepted.sum(axis=1).max() == 2


def test_compare_says_whether_later_rounds_differ(folder: Path, run: recbias.Run) -> None:
    same = run_loop(folder, name="same")
    other = run_loop(folder, name="other", feedback=LOOP | {"acceptance": 0.1})
    for second, verdict in ((same, "are the same"), (other, "differ")):
        result = invoke_recbias("compare", str(run.folder), str(second.folder), folder=folder)
        assert result.code == 0
        assert "nothing changed in the first round" in result.out
        assert f"The rounds of feedback after the first {verdict}" in result.out
