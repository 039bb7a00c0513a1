"""The plan of a feedback loop: its stages, their addresses, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias import api
from recbias.core.errors import UserError
from recbias.runner.plan import Plan
from support.specs import make_small_spec

LOOP = {"rounds": 3, "acceptance": 1.0, "picks": 2}
RERANKED = {"name": "EASE", "rerank": {"name": "xQuAD", "candidates": 20}}


def make_plan(folder: Path, **changes: Any) -> Plan:
    spec = make_small_spec(
        **{"models": ["MostPop", RERANKED], "metrics": ["Gini"], "tests": None, **changes}
    )
    return api.plan(spec, out=folder)[0]


def list_addresses(plan: Plan) -> list[str]:
    return [stage.digest for stage in plan.stages]


def test_each_model_has_a_split_a_training_and_lists_of_its_own_in_each_round(
    tmp_path: Path,
) -> None:
    plan = make_plan(tmp_path, feedback=LOOP)
    titles = [stage.title for stage in plan.stages]
    for model in ("MostPop", "EASE", "EASE + xQuAD"):
        accepted = [title for title in titles if title.startswith(f"accept items of {model} for")]
        assert accepted == [f"accept items of {model} for round {n}" for n in (2, 3)]
    assert titles.count("fit EASE") == 1  # both are trained on the same data in the first round
    assert titles.count("fit EASE, round 2") == 2  # and on what their users accepted later
    assert titles.count("re-rank EASE + xQuAD, round 3") == 1
    splits = {row.data_context.split.digest for first in plan.model_plans for row in first.rounds}
    assert len(splits) == 6


def test_later_rounds_read_the_lists_of_the_round_before(tmp_path: Path) -> None:
    for first in make_plan(tmp_path, feedback=LOOP).model_plans:
        previous = first
        for later in first.rounds:
            split = later.data_context.split
            assert previous.answer in split.inputs
            assert previous.data_context.split in split.inputs
            assert later.data_context.queries is first.data_context.queries
            previous = later


def test_the_first_round_is_the_run_without_feedback(tmp_path: Path) -> None:
    plain, loop = make_plan(tmp_path), make_plan(tmp_path, feedback=LOOP)
    assert set(list_addresses(plain)) < set(list_addresses(loop))
    assert plain.spec_digest != loop.spec_digest


def test_more_rounds_reuse_the_first_ones_and_other_choices_do_not(tmp_path: Path) -> None:
    three = list_addresses(make_plan(tmp_path, feedback=LOOP))
    four = list_addresses(make_plan(tmp_path, feedback={**LOOP, "rounds": 4}))
    assert set(three) < set(four)
    other = list_addresses(make_plan(tmp_path, feedback={**LOOP, "acceptance": 0.5}))
    assert set(three) & set(other) == set(list_addresses(make_plan(tmp_path)))


TUNED = {
    "name": "ItemKNN",
    "tune": {"metric": "nDCG", "trials": 2, "space": {"neighbors": {"int": [5, 9]}}},
}
VECTORS = '''
from dataclasses import dataclass
from typing import ClassVar

from recbias.models.baselines import MostPop


@dataclass(frozen=True, kw_only=True)
class Vectors(MostPop):
    """A model of embeddings only."""

    provides: ClassVar[frozenset] = frozenset({"embeddings"})
'''
CHAT = {"name": "WOK", "llm": {"model": "m", "base_url": "http://127.0.0.1:9"}}
TABLES = {"name": "tables", "interactions": "rows.csv"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": TABLES}, "feedback: how users of tables choose is not known"),
        ({"feedback": {"rounds": 1}}, "feedback.rounds: must be a whole number from 2 to 100"),
        ({"feedback": {}}, "feedback: experiment.feedback needs rounds"),
        ({"feedback": {**LOOP, "acceptance": 1.5}}, "feedback.acceptance: must be a number"),
        ({"feedback": {**LOOP, "pick": 1}}, "feedback.pick: not a setting"),
        ({"feedback": {"rounds": 30}}, "feedback.rounds: a user may have 25 of the 50 items"),
        (
            {"models": [TUNED], "split": {"name": "random", "validation": 0.1}},
            "models[0]: ItemKNN would be searched again in every round",
        ),
        ({"models": [CHAT]}, "models[0]: WOK sends requests whose number in later rounds is not"),
        (
            {"models": ["MostPop", "./own.py:Vectors"]},
            "models[1]: Vectors has no lists from which users could accept items",
        ),
        (
            {"metrics": [{"name": "intra_list_distance", "embeddings_of": "PureSVD"}]},
            "reads PureSVD, which has another history in each round",
        ),
    ],
)
def test_what_cannot_be_run_in_rounds_is_refused(
    changes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("user_id,item_id\na,b\nc,b\na,d\nc,d\n")
    Path("own.py").write_text(VECTORS)
    spec = {"models": ["MostPop", "PureSVD"], "metrics": ["Gini"], "feedback": LOOP, **changes}
    with pytest.raises(UserError) as caught:
        recbias.plan(make_small_spec(**spec), out=tmp_path)
    assert message in str(caught.value)
