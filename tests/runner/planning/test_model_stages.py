from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias import api
from recbias.config.experiment import PluginSpec
from recbias.core.measurements.columns import DATASET
from recbias.models.text.lmrec import LMRec
from recbias.models.text.share_reranking import Rerank
from recbias.runner.planning.model_stages import BRIEF, identity, learner, of_models
from recbias.runner.planning.plan import ModelPlan
from recbias.runner.storage.fingerprints import Fingerprints
from recbias.runner.storage.store import Store
from support.small_encoder import write_small_encoder
from support.specs import make_small_spec

SPLIT = {"name": "random", "test": 0.2, "validation": 0.2}
OWN = {"name": "own", "detector": "column", "from": "stereotype"}


def chain(folder: Path, limit: int | None = None, **tune: Any) -> ModelPlan:
    space = {"neighbors": {"int": [1, 9]}}
    model = {"name": "ItemKNN", "tune": {"metric": "nDCG", "trials": 4, "space": space} | tune}
    made = make_small_spec(models=[model], split=SPLIT, labels=[OWN])
    return api.plan(made, out=folder, limit=limit)[0].chains[0]


def test_what_is_fitted_and_asked_takes_what_the_search_found(tmp_path: Path) -> None:
    made = chain(tmp_path)
    assert made.search is not None
    assert made.fit is not None
    assert made.answer is not None
    assert [each.kind for each in made.fit.inputs] == ["search", "dataset", "split"]
    assert [each.kind for each in made.answer.inputs][:1] == ["search"]
    assert [each.kind for each in made.search.inputs] == ["trial"] * 4


@pytest.mark.parametrize(("limit", "trials"), [(None, 4), (5, BRIEF)])
def test_a_try_has_few_trials(tmp_path: Path, limit: int | None, trials: int) -> None:
    assert len(chain(tmp_path, limit).trials) == trials


def test_labels_are_read_by_the_trials_whose_metric_may_name_them(tmp_path: Path) -> None:
    by_label = chain(tmp_path, metric={"name": "HIT_BAD", "label": "own.stereotype"})
    kinds = [[each.kind for each in made.trials[1].inputs] for made in (chain(tmp_path), by_label)]
    assert kinds == [["dataset", "split", "trial"], ["dataset", "split", "label", "trial"]]


def test_a_search_by_a_gap_between_groups_has_trials_of_its_own(tmp_path: Path) -> None:
    gaps = [{"name": "nDCG", "by": "gender", "gap": each} for each in ("ratio", "std")]
    digests = [chain(tmp_path, metric=each).trials[0].digest for each in ("nDCG", *gaps)]
    assert len(set(digests)) == 3


def test_what_is_measured_of_a_dataset_alone_has_a_chain_without_a_model(tmp_path: Path) -> None:
    kappa = {"name": "cohen_kappa", "a": "own.stereotype", "b": "stereotype"}
    plan = api.plan(make_small_spec(labels=[OWN], metrics=["nDCG", kappa]), out=tmp_path)[0]
    alone = plan.chains[-1]
    assert (alone.model.label, alone.answer) == (DATASET, None)
    assert [each.name for each in alone.metrics] == ["cohen_kappa"]
    assert [of_models(each) for each in plan.experiment.metrics] == [True, False]


def test_models_that_differ_in_their_lists_alone_are_trained_once(tmp_path: Path) -> None:
    def of(**given: Any) -> tuple[dict[str, object], dict[str, object]]:
        chosen = PluginSpec("models", "LMRec", "LMRec", LMRec(**given), {}, ())
        fingerprints = Fingerprints(Store(tmp_path))
        return learner(chosen, fingerprints), identity(chosen, fingerprints)

    plain, changed = of(), of(rerank=Rerank(attribute="price"))
    assert plain[0] == changed[0]
    assert plain[1] != changed[1]
    assert plain[0] != of(dropout=0.5)[0]


def test_what_a_pretrained_model_holds_is_part_of_who_a_model_is(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path / "encoder")

    def who() -> dict[str, object]:
        model = LMRec(encoder=str(folder))
        return identity(
            PluginSpec("models", "LMRec", "LMRec", model, {}, ()), Fingerprints(Store(tmp_path))
        )

    before = who()
    assert who() == before
    config = folder / "config.json"
    config.write_text(
        config.read_text().replace('"num_attention_heads": 2', '"num_attention_heads": 4')
    )
    assert who() != before
