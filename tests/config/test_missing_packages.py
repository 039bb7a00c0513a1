"""The packages that a plug-in lacks, reported together with the faults in its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

import recbias
from recbias.core.errors import Faults, MissingExtra
from support.specs import make_small_spec

OWN = '''
from dataclasses import dataclass
from typing import ClassVar

from recbias.models.knn import ItemKNN


@dataclass(frozen=True, kw_only=True)
class Own(ItemKNN):
    """ItemKNN that needs a package."""

    libraries: ClassVar[tuple[str, ...]] = ("no_such_package_of_anyone",)
'''


@pytest.mark.parametrize("settings", [{"neighbors": -1}, {"neighbours": 4}, {"label": 4}])
def test_a_missing_package_is_reported_with_wrong_settings(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    spec = make_small_spec(models=[{"name": f"{tmp_path}/own.py:Own", **settings}])
    with pytest.raises(Faults) as caught:
        recbias.plan(spec, out=tmp_path / "out")
    package, setting = sorted(caught.value.faults, key=lambda fault: fault.where)
    assert isinstance(package, MissingExtra)
    assert package.where.endswith("models[0]")
    assert package.remedy == "pip install no_such_package_of_anyone"
    assert setting.where.endswith(f"models[0].{next(iter(settings))}")
