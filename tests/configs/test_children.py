"""The specs of the children's thesis have its settings, its families and all of its models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.config.entries import load_packaged_spaces
from recbias.config.source import read_spec
from recbias.core.text import normalize_name
from recbias.reports.published import load_published

FOLDER = Path(__file__).parents[2] / "configs" / "papers" / "children"
SETTINGS = {
    "topK": "neighbors",
    "num factors": "embedding_size",
    "embedding size": "embedding_size",
    "latent dim": "embedding_size",
    "intermediate dim": "hidden_size",
    "epochs": "epochs",
    "learning rate": "learning_rate",
    "batch size": "batch_size",
    "eps": "eps",
    "l1 ratio": "l1_ratio",
    "alpha": "alpha",
    "negative sample": "negatives",
    "adversarial epochs": "adversarial_epochs",
    "dropout prob": "dropout",
    "l_b": "reg_bias",
    "reg user": "reg_user",
    "reg positive item": "reg_positive",
    "reg negative item": "reg_negative",
    "reg": "reg",
}
"""The hyperparameters of Table A.2 by our names, those that the trained models use."""

NOT_COMPARED = {"ML (MovieLens)": "", "GR (Goodreads)": "ItemKNN"}
"""The neighbours of ItemKNN include the item itself in the framework of the thesis."""


def read_models(name: str) -> dict[str, dict[str, Any]]:
    """Return the settings of each model of a spec."""
    entries = read_spec(FOLDER / name).data["models"]
    models = [{"name": entry} if isinstance(entry, str) else entry for entry in entries]
    return {normalize_name(model["name"]): model for model in models}


def test_power_is_that_of_the_family_of_the_thesis_for_models_without_epochs() -> None:
    (test,) = read_spec(FOLDER / "power.yaml").data["tests"]
    assert (test["correction"], test["family"]) == ("bonferroni", 19)
    models = read_models("power.yaml")
    assert len(models) == 7
    assert not any("epochs" in settings for settings in models.values())


@pytest.mark.parametrize("name", ["neighbourhood-n4", "latent-factors-n7", "neural-n4"])
def test_groups_have_the_models_of_the_whole(name: str) -> None:
    whole = read_models("table-5-1-elliot.yaml")
    group = read_models(f"{name}.yaml")
    assert {model: whole[model] for model in group} == group


def test_the_search_has_every_model_of_the_table() -> None:
    models = read_models("a1-search.yaml")
    published = {normalize_name(system) for system in load_published("children/a1")["system"]}
    assert len(published) == 17
    assert set(models) == published
    spaces = {normalize_name(model) for model in load_packaged_spaces()["thesis"]}
    assert published <= spaces
    assert all(model["tune"]["space"] == "thesis" for model in models.values())


@pytest.mark.parametrize(
    ("name", "dataset"),
    [
        ("table-5-1-elliot.yaml", "ML (MovieLens)"),
        ("a3-elliot.yaml", "ML (MovieLens)"),
        ("goodreads.yaml", "GR (Goodreads)"),
    ],
)
def test_settings_are_those_of_the_thesis(name: str, dataset: str) -> None:
    table = load_published("children/a2")
    rows: pd.DataFrame = table[(table["dataset"] == dataset) & (table["value"] != "")]
    models = read_models(name)
    n_compared = 0
    for row in rows.itertuples(index=False):
        system, hyperparameter, published = map(str, (row.system, row.hyperparameter, row.value))
        model = models.get(normalize_name(system), {})
        setting = "factors" if system == "PureSVD" else SETTINGS.get(hyperparameter, "")
        if system != NOT_COMPARED[dataset] and setting in model:
            assert float(model[setting]) == pytest.approx(float(published)), (system, setting)
            n_compared += 1
    assert n_compared > 30
