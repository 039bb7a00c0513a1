from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MalformedLine, MissingFile, UnknownName
from recbias.language.terms import load_packaged_terms, load_terms, read_terms, select_category

OWN = """\
about: Terms of my own.
source: this test
whole_words: true
categories:
  age:
    groups: [old, young]
    targets:
      - [grandmother, granddaughter]
      - [No, Yes]
    attributes:
      - [slow, fast]
      - [tired, null]
"""


@pytest.mark.parametrize(
    ("category", "groups", "keywords", "counterparts"),
    [
        ("gender", ("female", "male"), 261, 17),
        ("orientation", ("lgbt", "straight"), 75, 7),
        ("age", ("old", "young"), 56, 6),
        ("appearance", ("fat", "slim"), 126, 10),
    ],
)
def test_packaged_terms_have_the_published_numbers(
    category: str, groups: tuple[str, str], keywords: int, counterparts: int
) -> None:
    # the numbers of search keywords and of attribute pairs of appendix A of the paper
    pairs = load_terms("CHBias")[category]
    assert (pairs.groups, pairs.whole_words) == (groups, False)
    assert len(pairs.target_terms) * len(pairs.attribute_terms) == keywords
    assert len(pairs.attribute_pairs) == counterparts


@pytest.mark.parametrize("name", load_packaged_terms())
def test_packaged_terms_of_the_first_group_are_all_replaced(name: str) -> None:
    for pairs in load_terms(name).values():
        for first, second in pairs.targets:
            assert pairs.swap_targets(first) == second
        assert not set(pairs.target_terms) & {second for _, second in pairs.targets}


def test_own_terms_are_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    pairs = select_category(load_terms(path), "AGE")
    assert pairs.targets == (("grandmother", "granddaughter"), ("No", "Yes"))
    assert pairs.attributes == (("slow", "fast"), ("tired", None))
    assert pairs.swap_targets("Grandmother said no.") == "Granddaughter said Yes."


@pytest.mark.parametrize(
    ("text", "replacement", "message", "line"),
    [
        ("categories:", "lists:", "has no key 'lists'", 4),
        ("[old, young]", "[old, old]", "groups must be two different names", 6),
        ("[No, Yes]", "[No, null]", "each target term needs a counterpart", 7),
        ("[No, Yes]", "[No]", "a pair of target terms has two terms", 9),
        ("[No, Yes]", "[Grandmother, x]", "the target term 'Grandmother' has two pairs", 9),
        ("[No, Yes]", "[no, No]", "the target term 'no' is paired with itself", 9),
        ("[No, Yes]", "No", "a pair of target terms must be a list", 9),
        ("[slow, fast]", "[[], fast]", "a attribute term must be text", 11),
        ("[slow, fast]", "[slow, {a: b}]", "a attribute term must be text", 11),
        ("whole_words: true", "whole_words: maybe", "whole_words must be true or false", 3),
        ("    groups: [old, young]\n", "", "the category age has no groups", 5),
    ],
)
def test_faults_name_their_line(
    tmp_path: Path, text: str, replacement: str, message: str, line: int
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN.replace(text, replacement))
    with pytest.raises(MalformedLine, match=message.replace("[", r"\[")) as caught:
        read_terms(path)
    assert caught.value.where == f"{path}:{line}"


def test_a_file_without_categories_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("about: nothing\n")
    with pytest.raises(MalformedLine, match="there are no categories"):
        read_terms(path)


def test_unknown_names_have_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="neither a packaged list of terms nor a file") as caught:
        load_terms("chbais")
    assert "chbias" in caught.value.remedy
    with pytest.raises(UnknownName, match="no category 'gendre'") as caught:
        select_category(load_terms("chbias"), "gendre")
    assert "gender" in caught.value.remedy
    with pytest.raises(MissingFile):
        read_terms(tmp_path / "absent.yaml")
