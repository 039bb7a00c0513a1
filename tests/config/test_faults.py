"""Every kind of fault of a spec: its place, its words and its remedy, as the command prints them.

A block of ``faults.txt`` is overrides (``--set``), a spec, and its errors with help lines. A spec
without a name gets the first two lines of ``HEAD``.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recbias
from recbias.config.experiment import load_experiment
from recbias.config.settings import read_settings
from recbias.config.specs import ExperimentFile
from recbias.core.errors import Faults, MissingExtra, UnknownName
from support.models.fake_plugins import REGISTRIES
from support.specs import make_small_spec

HEAD = "name: x\ndataset: ml-1m\n"


BLOCKS = Path(__file__).with_name("faults.txt").read_text(encoding="utf-8").strip().split("\n\n")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", BLOCKS)
def test_faults_have_their_places_words_and_remedies(block: str, folder: Path) -> None:
    lines = block.split("\n")
    overrides = [line.removeprefix("--set ") for line in lines if line.startswith("--set ")]
    expected = [line for line in lines if line.startswith(("error: ", "help: "))]
    text = "\n".join(
        line for line in lines if not line.startswith(("--set ", "error: ", "help: "))
    )
    if not text.startswith(("name:", "extends:", "dataset:")):
        text = HEAD + text
    Path("base.yaml").write_text("k: 1\n", encoding="utf-8")
    Path("cycle.yaml").write_text("extends: spec.yaml\n", encoding="utf-8")
    Path("spec.yaml").write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(Faults) as caught:
        load_experiment(Path("spec.yaml"), registries=REGISTRIES, overrides=overrides)
    found = "\n".join(caught.value.lines()).replace(str(folder), "FOLDER")
    assert re.sub(r"plugins\.py:\d+", "plugins.py:LINE", found).split("\n") == expected


def test_every_published_table_of_a_spec_is_checked() -> None:
    named: list[str] = []

    def refuse_second(name: str) -> None:
        named.append(name)
        if name == "b":
            raise UnknownName("no published table is called 'b'")

    text = f"{HEAD}models: [MostPop]\nmetrics: [nDCG]\nreport: {{reference: [a, b, c]}}\n"
    Path("spec.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(Faults, match=r"report\.reference: no published table is called 'b'"):
        load_experiment(Path("spec.yaml"), registries=REGISTRIES, check_reference=refuse_second)
    assert named == ["a", "b", "c"]


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


keys = st.sampled_from([*read_settings(ExperimentFile), "extends"])


entries = plain_values | st.sampled_from(["ml-1m", "MostPop", "nDCG@5", "users", "random"])


@given(st.dictionaries(keys, entries | st.lists(entries, max_size=3), max_size=8))
def test_any_mapping_gives_an_experiment_or_faults(spec: dict[str, Any]) -> None:
    with contextlib.suppress(Faults):
        complete = load_experiment(spec, registries=REGISTRIES).as_spec()
        assert load_experiment(complete, registries=REGISTRIES).as_spec() == complete


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
