from __future__ import annotations

from pathlib import Path
from typing import Any

from recbias import api
from recbias.config.experiment import PluginSpec
from recbias.models.language_model import SentenceLanguageModel
from recbias.models.text_classifiers import LMRec
from recbias.runner.plan import ModelPlan
from recbias.runner.planner import identify, identify_learner
from recbias.runner.store import Fingerprints, Store
from support.models.small_encoder import write_small_encoder
from support.specs import make_small_spec

SPLIT = {"name": "random", "test": 0.2, "validation": 0.2}
DETECTOR = {"name": "own", "detector": "column", "from": "stereotype"}


def plan_model(folder: Path, limit: int | None = None, **tune: Any) -> ModelPlan:
    space = {"neighbors": {"int": [1, 9]}}
    model = {"name": "ItemKNN", "tune": {"metric": "nDCG", "trials": 4, "space": space} | tune}
    spec = make_small_spec(models=[model], split=SPLIT, labels=[DETECTOR])
    return api.plan(spec, out=folder, limit=limit)[0].model_plans[0]


def test_fit_and_answer_depend_on_the_search(tmp_path: Path) -> None:
    model_plan = plan_model(tmp_path)
    assert model_plan.search is not None
    assert model_plan.fit is not None
    assert model_plan.answer is not None
    assert [stage.kind for stage in model_plan.fit.inputs] == ["search", "dataset", "split"]
    assert [stage.kind for stage in model_plan.answer.inputs][:1] == ["search"]
    assert [stage.kind for stage in model_plan.search.inputs] == ["trial"] * 4


def test_trials_depend_on_labels_if_their_metric_reads_items(tmp_path: Path) -> None:
    by_label = plan_model(tmp_path, metric={"name": "HIT_BAD", "label": "own.stereotype"})
    kinds = [
        [source.kind for source in model_plan.trials[1].inputs]
        for model_plan in (plan_model(tmp_path), by_label)
    ]
    assert kinds == [["dataset", "split", "trial"], ["dataset", "split", "label", "trial"]]


def test_versions_by_re_rankers_share_the_training_and_the_candidates(tmp_path: Path) -> None:
    rerankers = [
        {"name": "xQuAD", "strength": [0, 1]},
        {"name": "xQuAD", "label": "more", "candidates": 20},
    ]
    models = [{"name": "ItemKNN", "rerank": rerankers}]
    plan, _ = api.plan(make_small_spec(models=models), out=tmp_path)
    plain, *versions = plan.model_plans
    assert [each.model.label for each in versions] == [
        "ItemKNN + xQuAD(strength=0)",
        "ItemKNN + xQuAD(strength=1)",
        "ItemKNN + more",
    ]
    assert plain.fit is not None
    assert {each.fit.digest for each in versions if each.fit} == {plain.fit.digest}
    first, second, third = ([stage.digest for stage in each.candidates] for each in versions)
    assert first == second != third
    answers = {each.answer.digest for each in plan.model_plans if each.answer}
    assert len(answers) == 4
    assert len([stage for stage in plan.stages if stage.kind == "fit"]) == 1


def test_models_that_differ_after_training_are_trained_once(tmp_path: Path) -> None:
    def identify_with(**settings: Any) -> tuple[dict[str, object], dict[str, object]]:
        model = SentenceLanguageModel(model="small", **settings)
        spec = PluginSpec("models", "language_model", "small", model, {}, ())
        fingerprints = Fingerprints(Store(tmp_path))
        return identify_learner(spec, fingerprints), identify(spec, fingerprints)

    plain, changed = identify_with(), identify_with(max_new_tokens=7)
    assert plain[0] == changed[0]
    assert plain[1] != changed[1]
    assert plain[0] != identify_with(revision="other")[0]


def test_the_identity_of_a_model_covers_the_files_of_its_encoder(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "encoder")

    def identify_encoder() -> dict[str, object]:
        model = LMRec(encoder=str(folder))
        return identify(
            PluginSpec("models", "LMRec", "LMRec", model, {}, ()), Fingerprints(Store(tmp_path))
        )

    before = identify_encoder()
    assert identify_encoder() == before
    config = folder / "config.json"
    config.write_text(
        config.read_text().replace('"num_attention_heads": 2', '"num_attention_heads": 4')
    )
    assert identify_encoder() != before
