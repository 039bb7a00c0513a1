from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.files import compute_digest
from support.commands import CommandResult, invoke_recbias
from support.specs import make_small_spec


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ``run``, a run folder with its card."""
    folder = tmp_path_factory.mktemp("audited")
    spec = make_small_spec(
        metrics=["nDCG", "Gini", {"name": "nDCG", "by": "gender"}],
        checks=[{"metric": "nDCG", "at_least": 0.01}],
        report={"formats": ["card"]},
    )
    shutil.copytree(recbias.run(spec, out=folder / "results").folder, folder / "run")
    return folder


@pytest.fixture
def folder(audited: Path, tmp_path: Path) -> Path:
    """Return a copy of ``audited`` that a test may change."""
    shutil.copytree(audited, tmp_path / "work", ignore=shutil.ignore_patterns("results"))
    return tmp_path / "work"


def verify(folder: Path, *words: str) -> CommandResult:
    return invoke_recbias("verify", "run/card.json", "run", *words, folder=folder)


def test_an_unchanged_card_is_the_same(audited: Path) -> None:
    result = verify(audited)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("same: card ")


def change_text(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def change_metrics(folder: Path) -> None:
    """Change a digit of the first value of ``metrics.csv``."""
    path = folder / "run" / "metrics.csv"
    value = path.read_text(encoding="utf-8").splitlines()[1].split(",")[8]
    assert value.startswith("0.")
    digit = "1" if value[3] != "1" else "2"
    change_text(path, f",{value},", f",{value[:3]}{digit}{value[4:]},")


def change_size(folder: Path) -> None:
    """Cut the last line of ``metrics.csv`` off."""
    path = folder / "run" / "metrics.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")


def change_card(folder: Path, edit: Callable[[dict[str, Any]], None], *, seal: bool) -> None:
    """Edit the card; with ``seal`` its digest is computed again, as a forger would."""
    path = folder / "run" / "card.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    edit(card)
    if seal:
        content = {key: card[key] for key in card if key != "digest"}
        card["digest"] = compute_digest(content)
    path.write_text(json.dumps(card), encoding="utf-8")


def raise_value(card: dict[str, Any]) -> None:
    card["estimates"][0]["value"] += 0.01


def test_a_changed_digit_of_the_metrics_is_found(folder: Path) -> None:
    change_metrics(folder)
    result = verify(folder, "--json")
    assert result.code == 3
    document = json.loads(result.out)
    assert document["same"] is False
    file, figure = document["differences"]
    assert file["location"] == "file metrics.csv"
    assert figure["location"] == "estimates: nDCG@5 demo MostPop 42 1: value"
    assert abs(float(figure["stated"]) - float(figure["found"])) > 0.001


def test_the_last_digit_of_another_machine_is_no_difference(folder: Path) -> None:
    def scale(factor: float) -> Callable[[dict[str, Any]], None]:
        return lambda card: card["estimates"][0].update(
            value=card["estimates"][0]["value"] * factor
        )

    change_card(folder, scale(1.0 + 1e-14), seal=True)
    assert verify(folder).code == 0
    change_card(folder, scale(1.0 + 1e-6), seal=True)
    assert verify(folder).code == 3


@pytest.mark.parametrize("name", ["report.md", "tables/summary.tex"])
def test_a_report_that_is_not_as_it_was_written_is_found(folder: Path, name: str) -> None:
    words = ("report", "run", "--format", "json,md,latex,card")
    assert invoke_recbias(*words, folder=folder).code == 0
    assert verify(folder).code == 0
    path = folder / "run" / name
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    (difference,) = json.loads(verify(folder, "--json").out)["differences"]
    assert difference["location"] == f"file {name}: as written"
    path.unlink()
    assert verify(folder).code == 0
    assert invoke_recbias(*words, folder=folder).code == 0
    assert verify(folder).code == 0


def test_a_cut_table_is_a_difference_not_a_fault_of_the_user(folder: Path) -> None:
    change_size(folder)
    result = verify(folder)
    assert (result.code, result.err) == (3, "")
    assert "the run cannot be read" in result.out


@pytest.mark.parametrize("seal", [False, True])
def test_a_changed_figure_of_the_card_is_found(folder: Path, seal: bool) -> None:
    change_card(folder, raise_value, seal=seal)
    result = verify(folder, "--json")
    assert result.code == 3
    places = [row["location"] for row in json.loads(result.out)["differences"]]
    digest = [] if seal else ["digest of the card"]
    assert places == [*digest, "estimates: nDCG@5 demo MostPop 42 1: value"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "card.json:1: is not JSON"),
        ("[" * 100_000, "is not JSON: it is nested too deeply"),
        ("{}", "card.json: audited: is not that of a card: Field required"),
    ],
)
def test_a_file_that_is_no_card_is_a_fault(folder: Path, content: str, message: str) -> None:
    (folder / "run" / "card.json").write_text(content, encoding="utf-8")
    result = verify(folder)
    assert (result.code, result.out) == (2, "")
    assert message in result.err.splitlines()[0]
    assert "help: give a card.json that" in result.err
