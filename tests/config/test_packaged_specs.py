"""Specs are found by file or by packaged name, with what they read."""

from __future__ import annotations

from pathlib import Path

import pytest

from recbias.config.source import find_spec, list_spec_files, resolve_spec
from recbias.core.errors import UnknownName

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "src" / "recbias" / "configs"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("quickstart", "quickstart.yaml"),
        ("Quick_Start", "quickstart.yaml"),
        ("audit", "audit.yaml"),
        ("papers/aab", "papers/aab/ml-1m-gender.yaml"),
        ("papers/lmrec/users", "papers/lmrec/users.yaml"),
    ],
)
def test_a_packaged_name_is_found(
    name: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_spec(Path(name)) == CONFIGS / found


def test_a_file_wins_over_a_packaged_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("quickstart.yaml").touch()
    assert find_spec(Path("quickstart")) == Path("quickstart.yaml")
    Path("quickstart").touch()
    assert find_spec(Path("quickstart")) == Path("quickstart")
    Path("papers/aab").mkdir(parents=True)
    Path("papers/aab/ml-1m-gender.yaml").touch()
    assert find_spec(Path("papers/aab")) == Path("papers/aab/ml-1m-gender.yaml")


@pytest.mark.parametrize(
    ("name", "message", "remedy"),
    [
        ("quikstart", "no file and no packaged spec", "did you mean quickstart"),
        ("papers/lmrec", "is several specs", "papers/lmrec/atlanta, "),
    ],
)
def test_an_unknown_name_lists_the_nearest(name: str, message: str, remedy: str) -> None:
    with pytest.raises(UnknownName, match=message) as caught:
        resolve_spec(name)
    assert remedy in caught.value.remedy


def test_the_files_of_a_spec_are_those_that_it_reads_and_extends() -> None:
    files = {path.as_posix() for path in list_spec_files("prompts")}
    tables = {"items.csv", "ours.csv", "sentences.yaml", "theirs.csv"}
    assert files == {"prompts.yaml", *(f"prompts/{name}" for name in tables)}
    extended = {path.as_posix() for path in list_spec_files("ml-1m-children")}
    assert extended == {"ml-1m-children.yaml", "ml-1m.yaml"}
