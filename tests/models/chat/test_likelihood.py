from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import AnyArray, Attributes, FloatArray, TrainingData
from recbias.core.errors import WrongType
from recbias.language.likelihood import TextScorer
from recbias.language.local_models import load_model
from recbias.models import lm_ranking
from recbias.models.lm_ranking import LMLikelihood
from recbias.testing import check_recommender
from support.models.checkpoints import Interrupted, MemoryStore, save_always
from support.models.small_causal import score_separately, write_small_causal
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

TITLES = ["Alien (1979)", "Heat (1995)", "Matrix, The (1999)", "Up", "Jaws (1975)", "Never seen"]
SHOWN = ["Alien (1979)", "Heat (1995)", "The Matrix (1999)", "Up", "Jaws (1975)"]
PAIRS = [(0, 0), (0, 1), (1, 2), (1, 3), (1, 0), (2, 4)]
TIMES = [2, 1, 1, 2, 3, 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_causal(tmp_path_factory.mktemp("model"))


@pytest.fixture
def data() -> TrainingData:
    """Return three users with histories and one without; the last item has no training row."""
    train = make_interactions(PAIRS, n_users=4, n_items=len(TITLES), times=TIMES)
    titles = pd.DataFrame({"title": TITLES})
    return TrainingData(train, items=Attributes(train.item_ids, titles, "items"))


class ScriptedScorer:
    """Scores each title by the log of its length, or by its place after a neutral prompt."""

    def __init__(self, texts: list[str]) -> None:
        self.texts, self.contexts = texts, list[str]()

    def score(self, context: str) -> FloatArray:
        self.contexts.append(context)
        if context == "neutral":
            return np.array([0.0, -1.0, -2.0, -3.0, -4.0])
        return np.array([-1.0, -2.5, -2.0, -5.0, -3.0])

    def score_best(
        self, context: str, k: int, *, excluded: AnyArray, offsets: FloatArray | None
    ) -> FloatArray:
        scores = self.score(context) - (0 if offsets is None else offsets)
        return np.where(excluded, -np.inf, scores)


@pytest.fixture
def scorers(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedScorer]:
    """Replace the model by scripted scorers; return those that are made."""
    made: list[ScriptedScorer] = []

    def make_scorer(_: object, texts: list[str]) -> ScriptedScorer:
        made.append(ScriptedScorer(texts))
        return made[-1]

    monkeypatch.setattr(lm_ranking, "load_model", lambda *_, **__: None)
    monkeypatch.setattr(TextScorer, "from_texts", make_scorer)
    return made


def recommend(
    model: LMLikelihood, data: TrainingData, users: list[int], k: int = 3
) -> tuple[list[list[int]], AnyArray]:
    fitted = model.fit(data, np.random.default_rng(0))
    with collect_warnings():
        lists = fitted.recommend(make_queries([f"u{user}" for user in users], users), k, data)
    return lists.items.tolist(), lists.scores


def test_debiasing_subtracts_the_score_after_the_neutral_prompt(
    scorers: list[ScriptedScorer], data: TrainingData
) -> None:
    # -1 - 0, -2.5 + 1, -2 + 2, -5 + 3, -3 + 4 = -1, -1.5, 0, -2, 1;
    # user 0 has watched 0 and 1: 4 (1), 2 (0), 3 (-2)
    model = LMLikelihood(model="scripted", debias=True, neutral_prompt="neutral")
    items, scores = recommend(model, data, [0])
    assert items == [[4, 2, 3]]
    assert scores.tolist() == [[1.0, 0.0, -2.0]]
    assert scorers[0].contexts.count("neutral") == 1


@pytest.mark.parametrize("debias", [False, True])
def test_the_lists_are_those_of_one_pass_for_each_title(
    folder: Path, data: TrainingData, debias: bool
) -> None:
    model = LMLikelihood(model=str(folder), debias=debias)
    items, scores = recommend(model, data, [0], k=2)
    causal = load_model(str(folder))
    prompt = model.prompt.replace("{history}", "- Heat (1995)\n- Alien (1979)")
    titles = [f" {title}" for title in SHOWN]
    expected = score_separately(causal, prompt, titles)
    if debias:
        expected -= score_separately(causal, model.neutral_prompt, titles)
    unseen = sorted([2, 3, 4], key=lambda item: -expected[item])
    assert items == [unseen[:2]]
    assert scores[0] == pytest.approx(expected[unseen[:2]], abs=1e-5)


def test_the_contract_of_recommenders_is_met(folder: Path, data: TrainingData) -> None:
    with collect_warnings():
        check_recommender(LMLikelihood(model=str(folder)), data=data, learns=False)


def test_users_that_a_checkpoint_holds_are_not_scored_again(
    scorers: list[ScriptedScorer], data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_always(monkeypatch)
    model, store = LMLikelihood(model="scripted"), MemoryStore()
    expected, expected_scores = recommend(model, data, [0, 1, 2])

    def interrupt(_: str, completed: int, __: int) -> None:
        if completed == 2:
            raise Interrupted

    with stage_context(checkpoint_store=store, writes_lists=True):
        with pytest.raises(Interrupted), stage_context(on_progress=interrupt):
            recommend(model, data, [0, 1, 2])
        items, scores = recommend(model, data, [0, 1, 2])
    assert items == expected
    assert np.array_equal(scores, expected_scores, equal_nan=True)
    assert [len(scorer.contexts) for scorer in scorers] == [3, 2, 1]


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"prompt": "no place"}, "prompt"),
        ({"prompt": "{history} {history}"}, "prompt"),
        ({"neutral_prompt": "{history}"}, "neutral_prompt"),
        ({"neutral_prompt": " "}, "neutral_prompt"),
    ],
)
def test_prompts_without_their_text_or_place_are_refused(
    settings: dict[str, Any], where: str
) -> None:
    with pytest.raises(WrongType) as caught:
        LMLikelihood(model="scripted", **settings)
    assert caught.value.where == where
    assert caught.value.remedy


def make_spec(folder: Path, model: object) -> dict[str, Any]:
    """Write ten users who rated four of eight films each; return a spec about them."""
    rng = np.random.default_rng(4)
    rows = [
        {"user_id": f"u{user}", "item_id": f"i{item}", "rating": 5, "timestamp": rank}
        for user in range(10)
        for rank, item in enumerate(rng.permutation(8)[:4])
    ]
    pd.DataFrame(rows).to_csv(folder / "ratings.csv", index=False)
    films = {
        "item_id": [f"i{n}" for n in range(8)],
        "title": [f"Film {'abcdefgh'[n]}" for n in range(8)],
    }
    pd.DataFrame(films).to_csv(folder / "films.csv", index=False)
    return {
        "name": "titles",
        "seed": 1,
        "dataset": {
            "name": "tables",
            "interactions": str(folder / "ratings.csv"),
            "items": str(folder / "films.csv"),
        },
        "split": {"name": "leave_one_out", "which": "random"},
        "k": 3,
        "models": [
            "MostPop",
            {"name": "LMLikelihood", "model": str(model)},
            {"name": "LMLikelihood", "label": "debiased", "model": str(model), "debias": True},
        ],
        "metrics": ["HR", "log_popularity_difference", "unmatched"],
        "tests": ["paired_t"],
        "report": {"formats": ["csv"]},
    }


def test_other_weights_in_the_folder_are_scored_again(tmp_path: Path) -> None:
    folder = write_small_causal(tmp_path / "model")
    spec = make_spec(tmp_path, folder)
    first = recbias.run(spec, out=tmp_path / "results")
    write_small_causal(folder, "gpt2")
    second = recbias.run(spec, out=tmp_path / "results")
    assert first.lists is not None
    assert second.lists is not None
    assert not second.lists["score"].equals(first.lists["score"])
