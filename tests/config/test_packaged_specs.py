"""Specs are found by file or by packaged name, with what they read."""

from __future__ import annotations

from pathlib import Path

import pytest

from recbias.config.source import (
    STARTS,
    find_spec,
    list_spec_files,
    list_specs,
    resolve_spec,
    summarize_spec,
)
from recbias.core.errors import UnknownName

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "src" / "recbias" / "configs"


def test_the_specs_are_at_the_top_of_the_checkout_too() -> None:
    assert (ROOT / "configs").resolve() == CONFIGS.resolve()


def test_every_spec_of_the_checkout_has_a_name() -> None:
    names = ("prompts/sentences", "identity-audit/sentences", "papers/wok/smollm2/prompt")
    parts = {CONFIGS / f"{name}.yaml" for name in names}
    assert set(list_specs().values()) == set(CONFIGS.rglob("*.yaml")) - parts
    assert list(list_specs())[:4] == [*STARTS]


@pytest.mark.parametrize("name", list(list_specs()))
def test_every_spec_says_what_it_answers(name: str) -> None:
    assert len(summarize_spec(list_specs()[name])) > 20


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


@pytest.mark.parametrize("name", ["missing.yaml", "/tmp/missing", ""])
def test_a_path_is_left_to_its_reader(name: str) -> None:
    assert find_spec(Path(name)) == Path(name)


def test_the_files_of_a_spec_are_those_that_it_reads_and_extends() -> None:
    files = {path.as_posix() for path in list_spec_files("prompts")}
    tables = {"items.csv", "ours.csv", "sentences.yaml", "theirs.csv"}
    assert files == {"prompts.yaml", *(f"prompts/{name}" for name in tables)}
    extended = {path.as_posix() for path in list_spec_files("ml-1m-children")}
    assert extended == {"ml-1m-children.yaml", "ml-1m.yaml"}
