"""What a user of pip gets: the specs, the README, one version, a citation."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import recbias

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Return the wheel of the project, built from a copy."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    process = subprocess.run([*command, folder, folder], capture_output=True, text=True)
    if process.returncode and "setuptools" in process.stderr:
        pytest.skip("no index with setuptools")
    assert process.returncode == 0, process.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_spec_with_its_tables(wheel: zipfile.ZipFile) -> None:
    packed = {
        name.removeprefix("recbias/configs/"): wheel.read(name)
        for name in wheel.namelist()
        if name.startswith("recbias/configs/")
    }
    configs = ROOT / "configs"
    files = [path for path in configs.rglob("*") if path.is_file()]
    assert packed == {path.relative_to(configs).as_posix(): path.read_bytes() for path in files}


def test_the_description_is_the_readme_with_addresses(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("dist-info/METADATA")]
    metadata = wheel.read(name).decode()
    assert (ROOT / "README.md").read_text(encoding="utf-8").strip() in metadata
    assert f"Project-URL: Source, {PROJECT['urls']['Source']}" in metadata
    assert f"\nVersion: {recbias.__version__}\n" in metadata
    assert "Description-Content-Type: text/markdown" in metadata


def test_the_citation_is_valid_and_has_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    required = {"cff-version", "message", "title", "authors", "type", "version", "license"}
    assert required <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == recbias.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert all({"name", "family-names"} & set(author) for author in citation["authors"])


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
