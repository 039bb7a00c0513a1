from __future__ import annotations

from pathlib import Path

import pytest

import recbias
from support.specs import small

MODELS = ["Random", "MostPop", "ItemKNN"]
FORMATS = {"formats": ["csv", "json"]}


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose ``results`` hold three runs; nobody changes it.

    ``one`` and ``two`` are alike but for the neighbours of ItemKNN and a metric that only ``two``
    has; ``alone`` shares no figure with them.
    """
    folder = tmp_path_factory.mktemp("finished")
    few = [*MODELS[:2], {"name": "ItemKNN", "neighbors": 3}]
    seen = {"k": 10, "report": FORMATS}
    recbias.run(small(name="one", models=MODELS, **seen), out=folder / "results")
    more = ["nDCG", "HR", "Recall"]
    recbias.run(small(name="two", models=few, metrics=more, **seen), out=folder / "results")
    recbias.run(small(name="alone", seed=7, **seen), out=folder / "results")
    return folder
