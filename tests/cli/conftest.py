from __future__ import annotations

from pathlib import Path

import pytest

import recbias
from support.specs import make_small_spec

MODELS = ["Random", "MostPop", "ItemKNN"]
FORMATS = {"formats": ["csv", "json"]}


@pytest.fixture(scope="session")
def finished_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a read-only folder with the runs ``one``, ``two`` and ``alone`` in ``results``.

    ``one`` and ``two`` differ in the neighbors of ItemKNN and in Recall, which only ``two`` has;
    ``alone`` shares no metric row with them.
    """
    folder = tmp_path_factory.mktemp("finished")
    two_models = [*MODELS[:2], {"name": "ItemKNN", "neighbors": 3}]
    options = {"k": 10, "report": FORMATS}
    recbias.run(make_small_spec(name="one", models=MODELS, **options), out=folder / "results")
    two_metrics = ["nDCG", "HR", "Recall"]
    recbias.run(
        make_small_spec(name="two", models=two_models, metrics=two_metrics, **options),
        out=folder / "results",
    )
    recbias.run(make_small_spec(name="alone", seed=7, **options), out=folder / "results")
    return folder
