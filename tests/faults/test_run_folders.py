"""Damaged run folders: an error that names the file and the remedy, and nothing is written."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.commands import invoke_recbias, write_small_spec
from support.faults.file_faults import break_file, break_json, refuse_hang
from support.faults.samples import CONTROLS, choose_seeds

SPEC = """\
name: small
dataset: {name: demo, n_users: 40, n_items: 40}
split: {name: random, test: 0.2}
k: 10
models: [MostPop, ItemKNN]
metrics: [nDCG, ItemCoverage, {name: nDCG, by: gender, gap: difference}]
tests: [paired_t]
checks: [{metric: nDCG, at_least: 0.1}]
report: {formats: [csv, json, md, html, latex, card]}
"""
COMMANDS: Sequence[Sequence[str]] = (
    ("report", "RUN"),
    ("report", "RUN", "--format", "json"),
    ("report", "RUN", "--format", "card"),
    ("report", "RUN", "--format", "md", "--reference", "children/a3"),
    ("compare", "WHOLE", "RUN"),
    ("compare", "RUN", "WHOLE", "--json"),
    ("compare", "RUN", "--reference", "children/a3"),
    ("verify", "WHOLE/card.json", "RUN"),
    ("verify", "RUN/card.json", "WHOLE"),
    ("power", "RUN"),
    ("power", "RUN", "--difference", "0.01"),
    ("runs", "--out", "OUT"),
)
"""``RUN`` is the damaged folder, ``WHOLE`` the whole one, ``OUT`` the folder of results."""

CODES = {"verify": {0, 2, 3}, "runs": {0}, "report": {0, 2}, "compare": {0, 2}, "power": {0, 2}}
WEIGHTS = {"manifest.json": 12, "report.json": 3, "card.json": 2, "metrics.csv": 4}
"""How often a file is damaged; the others once."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    write_small_spec(folder, SPEC)
    result = invoke_recbias("run", "small.yaml", "--quiet", folder=folder)
    assert result.code == 0, result.err
    return (folder / "results" / "small" / "latest").resolve()


def list_files(folder: Path) -> dict[str, bytes | str]:
    """Return the content of the files of a folder, or what else they are."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        if path.is_file() and not path.is_symlink()
        else ("link" if path.is_symlink() else "other")
        for path in folder.rglob("*")
    }


def damage(run: Path, rng: random.Random) -> tuple[str, Path]:
    """Damage a file of a run; return how, and the file."""
    names = [path.name for path in sorted(run.iterdir()) if path.is_file()]
    path = run / rng.choices(names, [WEIGHTS.get(name, 1) for name in names])[0]
    if path.suffix == ".json" and rng.random() < 0.7:
        return break_json(path, rng), path
    return break_file(path, rng), path


@pytest.mark.parametrize("seed", choose_seeds(3, 600))
def test_a_damaged_run_folder_is_read_or_refused(whole: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    run = tmp_path / "results" / "small" / whole.name
    shutil.copytree(whole, run)
    fault, path = damage(run, rng)
    names = {"RUN": str(run), "WHOLE": str(whole), "OUT": str(tmp_path / "results")}
    words = [*rng.choice(COMMANDS)]
    for name, text in names.items():
        words = [word.replace(name, text) for word in words]
    fault = f"{fault}; {words}"
    before, untouched = list_files(run), list_files(whole)
    with refuse_hang():
        result = invoke_recbias(*words, folder=tmp_path)
    output = result.out + result.err
    assert result.code in CODES[words[0]], fault
    assert "Traceback" not in output, fault
    assert not CONTROLS.search(output), fault
    assert list_files(whole) == untouched, fault
    if result.code == 0 and words[0] == "report":
        assert not [*run.rglob("*.part")], fault
    else:
        assert list_files(run) == before, fault
    if result.code == 2:
        assert str(run) in result.err, fault
        assert path.name in result.err, fault
        assert "\nhelp: " in result.err, fault
        assert len(result.err) < 5000, fault
