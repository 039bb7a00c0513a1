from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from recbias.core.errors import MissingFile, WrongType
from recbias.language.masking import FirstNames, PersonModel, TextWords
from support.models.small_encoder import WORDS, write_small_encoder


def divide(*texts: str) -> TextWords:
    return TextWords.from_texts(np.array(texts, dtype=object))


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
def test_first_names_are_recognized_by_their_capital(text: str, expected: list[str]) -> None:
    block, finder = divide(text), FirstNames()
    finder.learn(block)
    assert block.words[finder.find(block)].tolist() == expected


def write_token_classifier(folder: Path, label: str) -> Path:
    """Write a model without effective attention that assigns the label to ``tea``."""
    write_small_encoder(folder)
    config = transformers.BertConfig.from_pretrained(folder)
    config.id2label = {0: "O", 1: label}
    config.label2id = {"O": 0, label: 1}
    model: Any = transformers.BertForTokenClassification(config)
    tea = 5 + WORDS.index("tea")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        # no layer adds anything; the last norm passes on the word's own vector, scaled and shifted
        for name, parameter in model.named_parameters():
            if name.endswith("LayerNorm.weight"):
                parameter.fill_(1.0)
        model.bert.embeddings.word_embeddings.weight[:, 0] = 1.0
        model.bert.embeddings.word_embeddings.weight[tea, :2] = torch.tensor([0.0, 1.0])
        model.classifier.weight[1, 1] = 1.0
        model.classifier.weight[0, 0] = 1.0
    model.save_pretrained(folder)
    return folder


def test_tokens_that_a_model_labels_as_persons_are_mapped_to_words(tmp_path: Path) -> None:
    finder = PersonModel(str(write_token_classifier(tmp_path, "B-PER")))
    long = "soup " * 200 + "tea " + "soup " * 200
    block = divide("The tea was good, TEA-bread", "", long, "🍜 שלום", "tea")
    is_person = finder.find(block)
    assert block.words[is_person].tolist() == ["tea", "TEA", "tea", "tea"]
    assert block.text[is_person].tolist() == [0, 0, 2, 4]
    assert finder.find(divide("", "")).tolist() == []


def test_a_model_without_a_label_for_persons_is_an_error(tmp_path: Path) -> None:
    folder = write_token_classifier(tmp_path, "B-LOC")
    with pytest.raises(WrongType, match="has no label PER or PERSON, but O, B-LOC") as caught:
        PersonModel(str(folder))
    assert caught.value.where == "persons"


def test_a_missing_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        PersonModel(str(tmp_path / "none"))
