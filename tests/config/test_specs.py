from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.config.settings import settings
from recbias.config.specs import DEFAULT_SEED, SECTIONS, ExperimentFile, ReportSpec, safe_name
from recbias.core.errors import OutOfRange


@pytest.mark.parametrize("name", ["a", "children-ml1m", "v1.2_x", "7", "a" * 100])
def test_a_name_of_letters_digits_and_three_signs_is_safe(name: str) -> None:
    assert safe_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".x", "a/b", "a\\b", "a b", "é", "a\n", "a" * 101, "a:b", "~"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(OutOfRange, match="cannot be the name of a folder"):
        safe_name(name)


@pytest.mark.parametrize("name", ["store", "Store", "latest"])
def test_the_names_of_recbias_are_taken(name: str) -> None:
    with pytest.raises(OutOfRange, match="is the name of a folder of recbias"):
        safe_name(name)


@given(st.text(max_size=20))
def test_a_safe_name_stays_in_its_folder(name: str) -> None:
    try:
        safe = safe_name(name)
    except OutOfRange:
        return
    assert safe.isascii()
    assert not set(safe) & set("/\\:\0 ")
    assert not safe.startswith(".")


def test_the_frame_has_the_keys_of_the_contract_in_order() -> None:
    keys = "name seed seeds dataset split queries k models labels metrics tests report"
    assert list(settings(ExperimentFile)) == keys.split()
    needed = [name for name, each in settings(ExperimentFile).items() if each.needed]
    assert needed == ["name", "dataset", "models"]
    assert settings(ExperimentFile)["seed"].default == DEFAULT_SEED == 42
    assert settings(ExperimentFile)["report"].default == ReportSpec()


def test_every_kind_of_plugin_has_its_section() -> None:
    assert {each[0] for each in SECTIONS.values()} <= set(settings(ExperimentFile))
