"""The table of extras is that of pyproject.toml, and remedies name the right extra."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MissingExtra
from recbias.core.packages import (
    EXTRAS,
    describe_missing,
    find_extras,
    list_libraries,
    require_packages,
)
from recbias.registry import REGISTRIES

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
    assert set(re.findall(r"\w+", everything)) == {"recbias"} | set(EXTRAS) - {"ray", "recbole"}


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
    assert describe_missing(["X"], ["ray"])[1] == "pip install 'recbias[ray]'"
