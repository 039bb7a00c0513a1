"""The adapter with a process that learns popularity in place of RecBole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias import api
from recbias.core.context import collect_facts
from recbias.core.dataset import TrainingData
from recbias.core.errors import BrokenContract, Contradiction, OutOfRange
from recbias.models.recbole import SEED, VARIABLE, RecBole, order_rows
from support.commands import invoke_recbias
from support.models.fake_recbole import write_fake
from support.models.sequence_worlds import set_times
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

PAIRS = [(0, 3), (0, 1), (1, 3), (1, 1), (2, 3), (2, 4)]
"""Item 3 has three users, item 1 two, item 4 one; items 0, 2 and 5 none."""


@pytest.fixture
def data() -> TrainingData:
    return TrainingData(make_interactions(PAIRS, n_users=4, n_items=6))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = write_fake(tmp_path / "python")
    monkeypatch.setenv(VARIABLE, str(program))
    return program


@pytest.mark.usefixtures("fake", "stage_warnings")
def test_lists_are_those_of_the_process(data: TrainingData) -> None:
    with collect_facts() as facts:
        fitted = RecBole(model="Pop", epochs=1).fit(data, np.random.default_rng(0))
    assert facts == {"recbole": "9.9"}
    assert fitted.state()[SEED] == np.random.default_rng(0).integers(2**31)
    queries = make_queries(["u2", "u0", "u3", "u2"], [2, 0, 3, 2])
    lists = RecBole(model="Pop").restore(fitted.state()).recommend(queries, 3, data)
    # user 2 lacks item 1, user 0 lacks item 4, user 3 has no history; items 0, 2, 5 no rows
    assert lists.items.tolist() == [[1, -1, -1], [4, -1, -1], [-1, -1, -1], [1, -1, -1]]
    assert lists.scores[:2, 0].tolist() == [2, 1]


def test_rows_are_in_the_order_of_time_and_ties_in_that_of_the_file() -> None:
    pairs = [(1, 0), (0, 1), (0, 2), (0, 3), (1, 3)]
    rows = set_times(make_interactions(pairs), np.array([5, 9, 1, 9, 2]))
    ordered = {name: array.tolist() for name, array in order_rows(rows).items()}
    # user 0: item 2 at 1, items 1 and 3 at 9 in the order of the file; user 1: 3 at 2, 0 at 5
    assert ordered == {
        "users": [0, 0, 0, 1, 1],
        "items": [2, 1, 3, 3, 0],
        "ranks": [0, 1, 2, 0, 1],
    }


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize(
    "lists",
    [
        "items=np.zeros((1, 3), int), scores=np.zeros((1, 3))",
        "items=np.zeros((2, 3)), scores=np.zeros((2, 3))",
        "items=np.zeros((2, 3), int), scores=np.full((2, 3), 'x')",
        "items=np.zeros((2, 3), int)",
    ],
)
def test_lists_of_another_form_are_refused(
    lists: str, fake: Path, data: TrainingData, tmp_path: Path
) -> None:
    write_fake(
        fake, f"import numpy as np; np.savez('lists.npz', {lists}); write('facts.json', {{}})"
    )
    fitted = RecBole(model="Pop").restore({SEED: np.array(1)})
    with pytest.raises(BrokenContract, match="returned no lists of 3 for 2 users"):
        fitted.recommend(make_queries(["u0", "u1"]), 3, data)


@pytest.mark.parametrize(
    ("settings", "error", "where"),
    [
        ({"model": "BPR()"}, OutOfRange, "model"),
        ({"model": "BPR", "config": {"learner": "exec('x')"}}, OutOfRange, "config"),
        ({"model": "BPR", "config": {"epochs": 3}}, Contradiction, "config"),
        (
            {"model": "BPR", "embedding_size": 8, "config": {"embedding_size": 9}},
            Contradiction,
            "config",
        ),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], error: type, where: str) -> None:
    with pytest.raises(error) as raised:
        RecBole(**settings)
    assert raised.value.where == where  # type: ignore[attr-defined]


SPEC = {
    "name": "fake",
    "dataset": {"name": "demo", "n_users": 40, "n_items": 30},
    "split": {"name": "random", "test": 0.2},
    "models": ["MostPop", {"name": "RecBole/Pop", "epochs": 2}],
    "metrics": ["nDCG"],
}


@pytest.mark.usefixtures("fake")
def test_a_run_equals_our_own_model(tmp_path: Path) -> None:
    run = api.run(SPEC, out=tmp_path / "results")
    scores = dict(zip(run.metrics["model"], run.metrics["value"], strict=True))
    assert scores["recbole/Pop"] == scores["MostPop"] > 0


def test_the_name_after_the_slash_is_the_model(tmp_path: Path) -> None:
    models = "[{name: recbole/BPR}, {name: recbole, model: SASRec}, {name: recbole/X, model: Y}]"
    text = f"name: names\ndataset: demo\nsplit: {{name: random, test: 0.2}}\nmodels: {models}\n"
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    refused = invoke_recbias("plan", "spec.yaml", folder=tmp_path)
    assert refused.code == 2
    assert "model is given both in the name and as a setting" in refused.err
    path = tmp_path / "spec.yaml"
    path.write_text(text.replace(", {name: recbole/X, model: Y}", ""), encoding="utf-8")
    specs = api.read_experiment(path).models
    assert [(spec.label, spec.plugin.model) for spec in specs] == [
        ("recbole/BPR", "BPR"),
        ("recbole", "SASRec"),
    ]
