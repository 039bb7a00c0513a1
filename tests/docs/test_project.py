"""What pyproject.toml, constraints.txt and the Makefile say of the documentation agrees."""

from __future__ import annotations

import io
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def normalize_package(requirement: str) -> str:
    name = re.split(r"[\[<>=;~! ]", requirement.strip())[0]
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("extra", ["dev", "torch", "text", "libraries", "llm", "tune"])
def test_every_requirement_has_a_tested_version(project: dict[str, Any], extra: str) -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").split()
    pinned = {normalize_package(line) for line in lines}
    assert all("==" in line for line in lines)
    requirements = [*project["dependencies"], *project["optional-dependencies"][extra]]
    assert {normalize_package(text) for text in requirements} - pinned == set()


def test_the_python_versions_start_at_the_required_one(project: dict[str, Any]) -> None:
    prefix = "Programming Language :: Python :: 3."
    minors = [int(text.removeprefix(prefix)) for text in project["classifiers"] if prefix in text]
    assert project["requires-python"] == f">=3.{minors[0]}"
    assert minors == list(range(minors[0], minors[0] + len(minors)))
    assert len(minors) == 3


def test_numpy_is_required_from_the_version_whose_archives_refuse_pickles(
    project: dict[str, Any],
) -> None:
    """Before 2.2, ``savez(allow_pickle=False)`` stored an array of that name, and pickles."""
    required = next(text for text in project["dependencies"] if text.startswith("numpy"))
    specifier = Requirement(required).specifier
    assert "2.2.0" in specifier
    assert not any(version in specifier for version in ("1.26.4", "2.0.2", "2.1.3"))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        np.savez(io.BytesIO(), allow_pickle=False, objects=np.array([{}], dtype=object))


def test_the_built_site_is_not_in_the_repository() -> None:
    ignored = (ROOT / ".gitignore").read_text("utf-8").split()
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "/site/" in ignored
    assert "site_dir: site\n" in config
    assert "mkdocs build" in (ROOT / "Makefile").read_text("utf-8")
