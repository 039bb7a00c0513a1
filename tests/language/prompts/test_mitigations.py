from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import OutOfRange, UnknownName
from recbias.language.prompts import (
    RecommendationPrompt,
    find_mitigation,
    load_mitigations,
    load_packaged,
    read_prompt,
)
from support.files.prompt_files import PAPER, write_prompt


@pytest.fixture
def prompt() -> RecommendationPrompt:
    return load_packaged()["watch_history"]


@pytest.mark.parametrize("name", ["mitigate", "minimize"])
def test_packaged_mitigation_is_one_sentence_on_one_line(
    prompt: RecommendationPrompt, name: str
) -> None:
    mitigation = find_mitigation(name.upper(), prompt)
    assert mitigation.name == name
    assert mitigation.sentence == load_mitigations()[name].sentence
    assert "\n" not in mitigation.sentence


def test_file_of_a_prompt_brings_its_own_sentences(tmp_path: Path) -> None:
    paper = read_prompt(write_prompt(tmp_path, PAPER))
    assert find_mitigation("mitigate", paper).sentence == "Match the level."
    assert find_mitigation("mitigate", paper).source == "A. Author. A study. 2024"


def test_sentence_of_the_user_is_taken_as_it_is_on_one_line(prompt: RecommendationPrompt) -> None:
    mitigation = find_mitigation(" Only {rare}\nfilms,\x1b please. ", prompt)
    assert mitigation.name == "own"
    assert mitigation.sentence == "Only {rare} films,\\x1b please."


@pytest.mark.parametrize("name", ["masking", "counterfactual"])
def test_mitigation_of_lmrec_names_its_setting(prompt: RecommendationPrompt, name: str) -> None:
    with pytest.raises(UnknownName, match=f"{name} is not a mitigation by prompt") as caught:
        find_mitigation(name, prompt)
    assert load_mitigations()[name].setting in caught.value.remedy


def test_sentence_has_a_longest_length(prompt: RecommendationPrompt) -> None:
    with pytest.raises(OutOfRange, match="longer than 2,000 characters"):
        find_mitigation("rare films " * 200, prompt)
