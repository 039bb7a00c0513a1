"""The spec and the workflow of ``docs/gate.md`` are valid."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from support.commands import invoke_recbias

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
