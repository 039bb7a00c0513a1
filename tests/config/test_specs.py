from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.config.settings import read_settings
from recbias.config.specs import DEFAULT_SEED, SECTIONS, ExperimentFile, ReportSpec, validate_name
from recbias.core.errors import OutOfRange


@pytest.mark.parametrize("name", ["a", "children-ml1m", "v1.2_x", "7", "a" * 100])
def test_name_of_letters_digits_and_three_signs_is_valid(name: str) -> None:
    assert validate_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".x", "a/b", "a\\b", "a b", "é", "a\n", "a" * 101, "a:b", "~"]
)
def test_other_names_are_rejected(name: str) -> None:
    with pytest.raises(OutOfRange, match="cannot be the name of a folder"):
        validate_name(name)


@pytest.mark.parametrize("name", ["store", "Store", "latest"])
def test_reserved_names_are_rejected(name: str) -> None:
    with pytest.raises(OutOfRange, match="is a folder that recbias uses itself"):
        validate_name(name)


@given(st.text(max_size=20))
def test_valid_name_cannot_leave_its_folder(name: str) -> None:
    try:
        valid_name = validate_name(name)
    except OutOfRange:
        return
    assert valid_name.isascii()
    assert not set(valid_name) & set("/\\:\0 ")
    assert not valid_name.startswith(".")


def test_experiment_file_has_its_keys_in_order() -> None:
    keys = (
        "name seed seeds dataset split queries device k models labels metrics tests"
        " feedback checks report sweep"
    )
    assert list(read_settings(ExperimentFile)) == keys.split()
    settings = read_settings(ExperimentFile)
    assert [name for name in settings if settings[name].needed] == ["name", "dataset", "models"]
    assert read_settings(ExperimentFile)["seed"].default == DEFAULT_SEED == 42
    assert read_settings(ExperimentFile)["report"].default == ReportSpec()


def test_every_kind_of_plugin_has_a_section() -> None:
    assert {keys[0] for keys in SECTIONS.values()} <= set(read_settings(ExperimentFile))
