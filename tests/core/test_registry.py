from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import BrokenContract, MissingExtra, MissingFile, UnknownName
from recbias.core.packages import (
    EXTRAS,
    describe_missing,
    find_extras,
    list_libraries,
    require_packages,
)
from recbias.core.registry import Registry, is_file
from recbias.registry import REGISTRIES
from support.models import fake_plugins

MODELS = Registry(
    "model",
    {
        "ItemKNN": "support.models.fake_plugins:ItemKNN",
        "R-Two": "support.models.fake_plugins:MostPop",
        "Absent": "no_such_package_of_anyone.models:Absent",
        "Gone": "support.models.fake_plugins:NoSuchClass",
        "Moved": "recbias.core.no_such_module:Moved",
    },
    "recbias_test_group",
)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry to which an installed package adds a name."""
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[recbias_test_group]\nTheirs = support.models.fake_plugins:SLIM\n"
        "Bad = support.models.fake_plugins:Nothing\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return MODELS


@pytest.mark.parametrize("name", ["ItemKNN", "itemknn", "item_knn", "Item-KNN"])
def test_names_match_without_case_hyphen_and_underscore(name: str) -> None:
    assert MODELS.resolve_name(name) == "ItemKNN"
    assert MODELS.load(name) is fake_plugins.ItemKNN


def test_a_package_that_fails_while_it_is_imported_is_a_broken_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_package.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    failing = Registry("model", {"Failing": "failing_package:Failing"}, "recbias_test_group")
    with pytest.raises(BrokenContract, match="Failing cannot be imported: SystemExit: 3"):
        failing.load("Failing")


def test_an_absent_module_is_a_broken_contract() -> None:
    with pytest.raises(BrokenContract, match="No module named"):
        MODELS.load("Moved")


def test_plug_ins_of_other_packages_have_the_package_in_their_name(registry: Registry) -> None:
    assert registry.names()[-2:] == ["their-package/Bad", "their-package/Theirs"]
    assert registry.resolve_name("Their_Package/theirs") == "their-package/Theirs"
    assert registry.load("their-package/Theirs") is fake_plugins.SLIM
    with pytest.raises(BrokenContract):
        registry.load("their-package/Bad")
    with pytest.raises(UnknownName):
        registry.resolve_name("Theirs")


def test_a_plug_in_can_be_a_class_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    size = 1\n")
    name = "./mine.py:Mine"
    assert is_file(name)
    assert not is_file("ItemKNN")
    assert MODELS.resolve_name(name) == name
    plugin = MODELS.load(name, base=tmp_path)
    assert plugin.__name__ == "Mine"
    assert MODELS.load(name, base=tmp_path) is plugin


@pytest.mark.parametrize("name", ["none.py:A", "a\0.py:A", f"{'x' * 300}.py:A"])
def test_an_absent_file_is_reported_with_its_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingFile) as caught:
        MODELS.load(name, base=tmp_path)
    assert caught.value.remedy.startswith(f"recbias looked at {tmp_path}")


def test_the_remedy_for_an_absent_class_in_a_file_is_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine: pass\n")
    with pytest.raises(BrokenContract) as caught:
        MODELS.load("mine.py:Mime", base=tmp_path)
    assert caught.value.lines() == [
        "error: mine.py has no class 'Mime'",
        "help: did you mean Mine?",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(:\n", "SyntaxError"),
        ("no_such_name\n", "NameError"),
        ("1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_a_file_that_cannot_be_imported_is_a_broken_contract_each_time(
    tmp_path: Path, text: str, reason: str
) -> None:
    (tmp_path / "mine.py").write_text(text)
    modules = set(sys.modules)
    for _ in range(2):
        with pytest.raises(BrokenContract, match=f"mine.py cannot be imported: {reason}"):
            MODELS.load("mine.py:Mine", base=tmp_path)
    assert set(sys.modules) == modules


@pytest.mark.parametrize("beside", ["helpers.py", "helpers/deep.py"])
def test_a_module_beside_the_file_is_not_to_be_installed(tmp_path: Path, beside: str) -> None:
    (tmp_path / "mine.py").write_text("import helpers.deep\n")
    (tmp_path / beside).parent.mkdir(exist_ok=True)
    (tmp_path / beside).write_text("")
    with pytest.raises(BrokenContract, match="imports 'helpers', which stands beside it") as fault:
        MODELS.load("mine.py:Mine", base=tmp_path)
    assert f"PYTHONPATH={tmp_path}" in fault.value.remedy


def test_a_file_that_needs_a_missing_package_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import no_such_package_of_anyone.deep\n")
    with pytest.raises(MissingExtra) as caught:
        MODELS.load("mine.py:Mine", base=tmp_path)
    assert caught.value.remedy == "pip install no_such_package_of_anyone"


ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_DEVELOPERS = {"all", "bench", "dev", "smollm2"}


def list_names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0] for requirement in requirements}


def test_the_extras_are_those_of_the_project_file() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(EXTRAS) == set(extras) - FOR_DEVELOPERS
    for name, packages in EXTRAS.items():
        assert set(packages) == list_names(extras[name]), name
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything)) == {"recbias"} | set(EXTRAS) - {"ray"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.table],
)
def test_what_a_plugin_needs_is_in_the_core_or_in_an_extra(kind: str, name: str) -> None:
    libraries = set(list_libraries(REGISTRIES[kind].load(name)))
    known = list_names(PROJECT["dependencies"]).union(*EXTRAS.values())
    assert libraries <= known


@given(st.sets(st.sampled_from(sorted({p for packages in EXTRAS.values() for p in packages}))))
def test_the_extras_install_every_package_and_none_is_superfluous(packages: set[str]) -> None:
    extras = find_extras(packages)
    assert packages <= {package for extra in extras for package in EXTRAS[extra]}
    for extra in extras:
        others = {package for other in extras if other != extra for package in EXTRAS[other]}
        assert not packages <= others


def test_require_packages_names_all_that_are_missing() -> None:
    require_packages("A model", "numpy")
    with pytest.raises(MissingExtra) as caught:
        require_packages("A model", "numpy", "no_such_a", "no_such_b", where="model")
    assert caught.value.lines() == [
        (
            "error: model: A model needs the packages 'no_such_a' and 'no_such_b', "
            "which are not installed"
        ),
        "help: pip install no_such_a no_such_b",
    ]
    assert describe_missing(["X"], ["ray"])[1] == "in the clone: pip install '.[ray]'"
