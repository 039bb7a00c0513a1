from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recbias.core.errors import MalformedLine, MissingFile
from recbias.core.stage_context import collect_warnings
from recbias.language.templates.template_files import packaged, read_templates
from recbias.language.templates.template_sets import filled

PAPER = Path(__file__).parents[2].parent / "shared" / "reference" / "templates" / "lmrec.yaml"
needs_paper = pytest.mark.skipif(not PAPER.is_file(), reason="no reference folder")

TEMPLATES = {
    "names": ["Seat {}?", "Feed {} now"],
    "relationships": ["my {} and {} {} eat", "my {} takes {} {} out"],
    "occupations": ["Lunch at the {}"],
    "pairrelationships": ["me and my {}"],
}
WORDS = {
    "names": {
        "female": ["Ann", "Ida"],
        "male": ["Bob", "Lee"],
        "white": ["Ann", "Bob"],
        "black": ["Ida", "Lee"],
    },
    "relationships": {"female": ["mom"], "male": ["dad"]},
    "occupations": {"all": ["bank", "office", "farm", "office"]},
    "pairrelationships": {"female": ["wife", "aunt"], "male": ["uncle"]},
}


def release(folder: Path, *kinds: str, templates: Any = None) -> tuple[Path, list[Path]]:
    """Files of the layout of the authors' release."""
    path = folder / "yelp_templates.json"
    path.write_text(json.dumps(templates or TEMPLATES), encoding="utf-8")
    words = [folder / f"{kind}.json" for kind in kinds]
    for each in words:
        each.write_text(json.dumps(WORDS.get(each.stem, {})), encoding="utf-8")
    return path, words


@needs_paper
def test_the_papers_file_is_read_as_it_is() -> None:
    with collect_warnings() as notes:
        found = read_templates(PAPER)
    names, couples, places = found.kinds
    assert found.names == ["names", "sexual_orientation", "location"]
    # white 22 + 22, black 21 + 22 names; 18 sentences
    assert len(names.words["name"].words) == 22 + 22 + 21 + 22 == 87
    assert len(names) == 18 * 87 == 1566
    # 8 + 8 first, 3 + 3 second relationships
    assert len(couples) == 18 * 16 * 6 == 1728
    # 28 locations are printed, the office twice; 3 religious places
    assert len(places) == 18 * (28 - 1 + 3) == 540
    assert notes == ["words of the slot location that stand twice count once: office"]
    assert "Unintended Bias" in found.source


@needs_paper
def test_the_papers_labels_and_pronouns() -> None:
    made = filled(read_templates(PAPER).kinds)
    assert made.groupby(["race", "gender"]).size().to_dict() == {
        ("black", "female"): 18 * 21,
        ("black", "male"): 18 * 22,
        ("white", "female"): 18 * 22,
        ("white", "male"): 18 * 22,
    }
    # of each 16 x 6 couples 8 x 3 are F F and 8 x 3 are M M
    assert made["orientation"].value_counts().to_dict() == {
        "homosexual": 18 * 48,
        "heterosexual": 18 * 48,
    }
    assert made["religion"].value_counts().to_dict() == {
        "christian": 18,
        "muslim": 18,
        "jewish": 18,
    }
    assert made["place"].value_counts().to_dict() == {"location": 18 * 27, "religion": 18 * 3}
    assert not made["text"].str.contains("his/her|[\\[\\]]").any()
    brother = made[(made["first"] == "brother") & (made["second"] == "boyfriend")]
    assert brother["text"].str.contains("brother .*his boyfriend").all()
    sister = made[(made["first"] == "sister") & (made["second"] == "boyfriend")]
    assert sister["text"].str.contains("sister .*her boyfriend").all()


@needs_paper
def test_the_packaged_words_are_the_papers_and_the_sentences_are_not() -> None:
    ours, theirs = packaged()["restaurants"].kinds, read_templates(PAPER).kinds
    for own, paper in zip(ours, theirs, strict=True):
        assert own.name == paper.name
        assert own.words == paper.words
        assert not set(own.sentences) & set(paper.sentences)


def test_the_authors_lists_are_joined_to_two_labels(tmp_path: Path) -> None:
    path, words = release(tmp_path, "names")
    with collect_warnings() as notes:
        found = read_templates(path, words)
    made = filled(found.kinds)
    assert made["text"].tolist()[:5] == [
        "Seat Ann?",
        "Seat Ida?",
        "Seat Bob?",
        "Seat Lee?",
        "Feed Ann now",
    ]
    assert made["id"].tolist()[4] == "names-02:Ann"
    labels = made[["name", "gender", "race"]].drop_duplicates().to_numpy().tolist()
    assert labels == [
        ["Ann", "female", "white"],
        ["Ida", "female", "black"],
        ["Bob", "male", "white"],
        ["Lee", "male", "black"],
    ]
    left = "relationships, occupations, pairrelationships"
    assert notes == [f"templates without a file of words are left out: {left}"]


def test_the_authors_couples_get_the_pronoun_in_the_middle(tmp_path: Path) -> None:
    made = filled(read_templates(*release(tmp_path, "relationships")).kinds)
    assert len(made) == 2 * 2 * 6  # sentences x first words x second words
    assert made["text"][0] == "my mom and her girlfriend eat"
    assert made["text"].iloc[-1] == "my dad takes his fiance out"
    assert made["orientation"].value_counts().to_dict() == {"homosexual": 12, "heterosexual": 12}


def test_the_authors_places_and_other_kinds(tmp_path: Path) -> None:
    made = filled(read_templates(*release(tmp_path, "occupations", "pairrelationships")).kinds)
    places = made[made["kind"] == "occupations"]
    assert places["location"].tolist() == ["bank", "office", "farm"]
    assert set(places["place"]) == {"location"}
    others = made[made["kind"] == "pairrelationships"]
    assert others["word"].tolist() == ["wife", "aunt", "uncle"]
    assert others["gender"].tolist() == ["female", "female", "male"]


def test_the_authors_templates_need_words(tmp_path: Path) -> None:
    path, _ = release(tmp_path)
    with pytest.raises(MissingFile, match="come without words") as caught:
        read_templates(path)
    assert "example_labels/names.json" in caught.value.remedy


def test_words_of_a_kind_without_templates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedLine, match="no templates of the kind 'name'") as caught:
        read_templates(*release(tmp_path, "name"))
    assert caught.value.remedy == "did you mean names?"


def test_another_number_of_braces_is_refused(tmp_path: Path) -> None:
    path, words = release(tmp_path, "names", templates={"names": ["Seat {} and {}"]})
    with pytest.raises(MalformedLine, match="2 pairs of braces, not 1"):
        read_templates(path, words)


def test_substitutions_without_templates_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "paper.yaml"
    path.write_text("substitutions: {locations: [bank]}\n", encoding="utf-8")
    with pytest.raises(MalformedLine, match="there are substitutions, but no templates"):
        read_templates(path)
