from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from recbias.core.errors import MissingFile, WrongType
from recbias.language.masking.person_names import FirstNames, PersonModel
from recbias.language.masking.text_words import TextWords
from support.small_encoder import WORDS, write_small_encoder


def taken(*texts: str) -> TextWords:
    return TextWords.of(np.array(texts, dtype=object))


def first_names(*texts: str) -> list[str]:
    block, finder = taken(*texts), FirstNames()
    finder.look(block)
    return [str(each) for each in block.words[finder.find(block)]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Our server Emily was kind. Emily's smile!", ["Emily", "Emily's"]),
        ("Emily served us", ["Emily"]),
        ("We met emily and EMILY", []),
        ("Will served us, Will is kind; I will be back, he will too, it will do", []),
        ("Will served us and I told Will so", ["Will", "Will"]),
        ("The soup. The tea. In the end the rice", []),
        ("Bo and Li said", []),
        ("José and Zoë paid", ["José", "Zoë"]),
        ("", []),
    ],
)
def test_first_names_are_known_by_their_capital(text: str, expected: list[str]) -> None:
    assert first_names(text) == expected


def labeller(folder: Path, person: str) -> Path:
    """Write a model without layers of attention to speak of, which labels ``tea`` a person."""
    write_small_encoder(folder)
    config = transformers.BertConfig.from_pretrained(folder)
    config.id2label = {0: "O", 1: person}
    config.label2id = {"O": 0, person: 1}
    model: Any = transformers.BertForTokenClassification(config)
    tea = 5 + WORDS.index("tea")
    with torch.no_grad():
        for each in model.parameters():
            each.zero_()
        # no layer adds anything; the last norm passes on the word's own vector, shrunk and moved
        for name, each in model.named_parameters():
            if name.endswith("LayerNorm.weight"):
                each.fill_(1.0)
        model.bert.embeddings.word_embeddings.weight[:, 0] = 1.0
        model.bert.embeddings.word_embeddings.weight[tea, :2] = torch.tensor([0.0, 1.0])
        model.classifier.weight[1, 1] = 1.0
        model.classifier.weight[0, 0] = 1.0
    model.save_pretrained(folder)
    return folder


def test_a_model_s_persons_are_words(tmp_path: Path) -> None:
    finder = PersonModel(str(labeller(tmp_path, "B-PER")))
    long = "soup " * 200 + "tea " + "soup " * 200
    block = taken("The tea was good, TEA-bread", "", long, "🍜 שלום", "tea")
    finder.look(block)
    found = finder.find(block)
    assert block.words[found].tolist() == ["tea", "TEA", "tea", "tea"]
    assert block.text[found].tolist() == [0, 0, 2, 4]
    assert finder.find(taken("", "")).tolist() == []


def test_a_model_without_persons_is_refused(tmp_path: Path) -> None:
    folder = labeller(tmp_path, "B-LOC")
    with pytest.raises(WrongType, match="has no label PER or PERSON, but O, B-LOC") as caught:
        PersonModel(str(folder))
    assert caught.value.where == "persons"


def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        PersonModel(str(tmp_path / "none"))
