"""What pyproject.toml, constraints.txt and the Makefile say of the documentation agrees."""

from __future__ import annotations

import io
import json
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
from support.commands import invoke_recbias

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


DOCS = Path(__file__).parents[2] / "docs"


USERS, ITEMS = [f"u{user}" for user in range(12)], [f"i{item}" for item in range(40)]


def write_table(path: Path, head: str, rows: list[str]) -> None:
    path.write_text("\n".join([head, *rows, ""]), encoding="utf-8")


def write_tables(folder: Path) -> None:
    """Write histories of ten items; production finds one of two test items, candidate both."""
    train = [f"{user},{item}" for user in USERS for item in ITEMS[:10]]
    train += [f"other,{item}" for item in ITEMS]
    tests = {user: ITEMS[10 + at : 12 + at] for at, user in enumerate(USERS)}
    test = [f"{user},{item}" for user, items in tests.items() for item in items]
    head = "user_id,item_id"
    for name, rows in (("clicks", [*train, *test]), ("train", train), ("test", test)):
        write_table(folder / f"{name}.csv", head, rows)
    genders = [f"{user},{'FM'[at % 2]}" for at, user in enumerate(USERS)]
    write_table(folder / "users.csv", "user_id,gender", [*genders, "other,F"])
    for name, n_found in (("production", 1), ("candidate", 2)):
        lists = {
            user: [*items[:n_found], *[item for item in ITEMS[25:] if item not in items]][:10]
            for user, items in tests.items()
        }
        rows = [f"{user},{item},{at}" for user in USERS for at, item in enumerate(lists[user], 1)]
        write_table(folder / f"{name}.csv", "query_id,item_id,rank", rows)


def test_the_example_compares_a_candidate_with_production(tmp_path: Path) -> None:
    write_tables(tmp_path)
    (spec,) = re.findall(r"```yaml\n(.*?)```", (DOCS / "gate.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "release.yaml").write_text(spec, encoding="utf-8")
    result = invoke_recbias("run", "release.yaml", folder=tmp_path)
    assert result.code in {0, 3}, result.err
    rows = [line.split() for line in result.out.partition("Checks")[2].splitlines()]
    (noninferior,) = [row for row in rows if row[:2] == ["candidate", "nDCG"]]
    assert noninferior[-1] == "pass"


def read_commands() -> list[list[str]]:
    """Return the words of the commands of the workflow."""
    workflow = yaml.safe_load((DOCS / "release-gate.yml").read_text("utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [shlex.split(step["run"], comments=True) for step in steps if "run" in step]


def test_the_workflow_runs_the_commands_of_the_page() -> None:
    commands = read_commands()
    assert ["recbias", "run", "release.yaml", "--quiet"] in commands
    address = "recbias @ git+https://github.com/recbias/recbias"
    assert ["pip", "install", address] in commands  # what the models of the core need


@pytest.mark.slow  # `make papers` and the tutorial compare with the same table
@pytest.mark.real_data
def test_the_published_part_of_the_workflow_passes(tmp_path: Path, real_data: Path) -> None:
    command, compare = [words[1:] for words in read_commands() if words[0] == "recbias"][-2:]
    assert (command[0], compare[0]) == ("run", "compare")
    run = invoke_recbias(*command, "--data", real_data, folder=tmp_path)
    assert run.code == 0, run.err
    result = invoke_recbias(*compare, "--json", folder=tmp_path)
    assert (result.code, result.err) == (0, "")
    values = json.loads(result.out)["values"]
    assert {row["system"] for row in values} == {"MostPop", "ItemKNN", "PureSVD"}
    assert len(values) == 3 * 4
    strict = [*compare[:-1], "0.0001"]
    assert invoke_recbias(*strict, folder=tmp_path).code == 3
