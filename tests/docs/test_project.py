"""What pyproject.toml, constraints.txt and the Makefile say of the documentation agrees."""

from __future__ import annotations

import io
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement

from recbias.config.source import find_spec, read_spec
from recbias.reports.published import load_published, read_source

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


def test_the_workflow_of_the_papers_compares_specs_with_tables_that_name_them() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    recipe = makefile.partition("\npapers:")[2].partition("\n\n")[0]
    commands = [shlex.split(line)[1:] for line in recipe.splitlines()[1:]]
    specs = [words[1] for words in commands if words[0] == "run"]
    comparisons = [words for words in commands if words[0] == "compare"]
    names = {read_spec(find_spec(Path(spec))).data["name"]: spec for spec in specs}
    assert len(comparisons) == len(names) == 2
    for _, experiment, _, table, *options in comparisons:
        source = read_source(table)
        assert names[experiment] in source.specs
        limits = [option.rpartition("=")[0] for option in options if option != "--fail-over"]
        assert {*filter(None, limits)} <= {*load_published(table)["metric"]}
    workflow = yaml.safe_load((ROOT / ".github/workflows/papers.yml").read_text("utf-8"))
    steps = [step.get("run", "") for step in workflow["jobs"]["children"]["steps"]]
    assert any(step.startswith("pip install") and ".[torch]" in step for step in steps)
    assert any(step.startswith("make papers") for step in steps)


@pytest.mark.parametrize("folder", ["data", "results"])
def test_only_the_readme_of_a_folder_is_in_the_repository(folder: str) -> None:
    assert (ROOT / folder / "README.md").is_file()
    lines = (ROOT / ".gitignore").read_text("utf-8").split()
    assert [line for line in lines if folder in line] == [
        f"/{folder}/*",
        f"!/{folder}/README.md",
    ]
