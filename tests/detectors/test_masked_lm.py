from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_facts, collect_warnings
from recbias.core.dataset import Attributes
from recbias.core.errors import NothingLeft, UnknownColumn, UnknownName
from recbias.detectors.groups import MaskedLM
from recbias.language.groups import certainty_factor, score_groups
from recbias.language.local_models import load_model
from recbias.testing import check_detector
from support.models.small_encoder import write_small_encoder
from support.worlds.evidence_worlds import make_vocabulary

WORDS = (
    *("man", "woman", "he", "she", "white", "black", "asian", "hispanic", "arab", "muslim"),
    *("christian", "jew", "the", "a", "nurse", "sings", "and", "to", "talks", "doctor", "un"),
    *("##do", "it", "was", "we", "saw"),
)
TEXTS = ["He sings and she talks. The nurse talks to a man. We saw it.", "The doctor sings.", None]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_small_encoder(tmp_path_factory.mktemp("masked"), WORDS, head=True))


def make_items(texts: list[Any]) -> Attributes:
    return Attributes(
        make_vocabulary("i", len(texts)), pd.DataFrame({"text": texts}, dtype=object)
    )


def label(
    model: str, texts: list[Any], **settings: Any
) -> tuple[dict[str, list[float]], list[str], dict[str, Any]]:
    """Return the columns of the detector, its warnings and its facts."""
    detector = MaskedLM(model=model, from_="text", device="cpu", **settings)
    with collect_warnings() as messages, collect_facts() as facts:
        columns = detector.label(make_items(texts), np.random.default_rng(0))
    return {kind: values.tolist() for kind, values in columns.items()}, messages, facts


def predict_shares(model: str, text: str, words: list[list[str]]) -> np.ndarray[Any, Any]:
    """Return the shares of groups of words at the mask of one text."""
    masked = load_model(model, kind="masked", device="cpu")
    start = text.index("[MASK]")
    tokens = np.array([masked.find_token(word) for group in words for word in group])
    logarithms, _ = masked.predict([text], np.array([[0, start, start + 6]]), tokens)
    sizes = np.cumsum([len(group) for group in words])[:-1]
    sums = np.array([part.sum() for part in np.split(np.exp(logarithms[0]), sizes)])
    return np.asarray(sums / sums.sum())


@pytest.mark.parametrize("score", ["difference", "normalized_entropy", "entropy"])
def test_masks_are_averaged_by_sentence_and_combined_by_certainty(model: str, score: Any) -> None:
    masked = [
        ("[MASK] sings and she talks.", 0),
        ("He sings and [MASK] talks.", 1),
        ("The nurse talks to a [MASK].", 0),
    ]
    shares = np.stack([predict_shares(model, text, [["man"], ["woman"]]) for text, _ in masked])
    scores = score_groups(shares, np.array([group for _, group in masked]), score)
    certainty = float(certainty_factor([scores[:2].mean(), scores[2]], [0, 0])[0])
    columns, messages, facts = label(
        model, TEXTS, kinds=("gender",), score=score, threshold=certainty - 1e-3
    )
    assert columns["gender"] == [1, 0, 0]
    assert columns["gender_score"] == pytest.approx([max(certainty, 0), 0, 0], abs=1e-5)
    assert messages == [
        "1 of 3 items have no text: labelled 0",
        "1 of 2 texts have no word of a group of gender: labelled 0",
    ]
    assert facts["group_words"] == 3
    stricter, _, _ = label(
        model, TEXTS, kinds=("gender",), score=score, threshold=certainty + 1e-3
    )
    assert stricter["gender"] == [0, 0, 0]


def test_kinds_of_one_pass_equal_those_alone(model: str) -> None:
    texts = ["A white man and a black jew talks.", "An asian muslim. The woman sings!"]
    together, _, facts = label(model, texts)
    for kind in ("gender", "race", "religion"):
        alone, _, _ = label(model, texts, kinds=(kind,))
        assert alone[kind] == together[kind]
        assert alone[f"{kind}_score"] == pytest.approx(together[f"{kind}_score"], abs=2e-6)
    assert facts["group_words"] == 7


def test_the_words_of_a_group_are_summed(model: str) -> None:
    shares = predict_shares(model, "[MASK] sings.", [["he", "man"], ["she", "woman"]])
    columns, messages, _ = label(
        model, ["He sings."], kinds=("gender",), candidates="words", threshold=-1
    )
    expected = max(0.0, float(shares[0] - shares[1]))
    assert columns["gender_score"] == pytest.approx([expected], abs=1e-5)
    assert len(messages) == 1
    assert messages[0].startswith("38 group words are divided by the tokenizer and not summed")


@pytest.mark.parametrize("neutral", ["ratio", "log_ratio"])
def test_neutral_sentences_take_out_the_probability_of_the_word(
    model: str, tmp_path: Path, neutral: Any
) -> None:
    path = tmp_path / "words.yaml"
    path.write_text(
        "neutral: ['It was a [MASK]', 'We saw the [MASK]']\n"
        "kinds: {gender: {man: [he], woman: [she]}}"
    )
    masked = load_model(model, kind="masked", device="cpu")
    sentences = ["[MASK] sings.", "It was a [MASK]", "We saw the [MASK]"]
    spans = np.array(
        [[row, text.index("["), text.index("]") + 1] for row, text in enumerate(sentences)]
    )
    logarithms, _ = masked.predict(sentences, spans, np.array([5, 6]))
    p = np.exp(logarithms)
    q = p[1:].mean(axis=0)
    shares = p[0] / (q if neutral == "ratio" else np.log(1 + q))
    shares /= shares.sum()
    for text, named in (("He sings.", 0), ("She sings.", 1)):
        columns, _, _ = label(model, [text], groups=path, neutral=neutral)
        expected = max(0.0, float(2 * shares[named] - 1))
        assert columns["gender_score"] == pytest.approx([expected], abs=1e-5)


def test_texts_in_another_script_are_counted_and_said(model: str) -> None:
    columns, messages, _ = label(model, ["他唱歌。", "Она поёт."], missing="undefined")
    assert np.isnan(columns["gender"]).all()
    assert messages[0].startswith("no text of 'text' has a word of a group")


def test_a_long_sentence_is_shortened_and_counted(model: str) -> None:
    text = "the nurse and " * 3000 + "he sings"
    _, messages, _ = label(model, [text, "He sings"], kinds=("gender",))
    assert messages == [
        "1 of 2 group words are in sentences longer than the model reads, which were shortened"
    ]


def test_a_column_that_holds_no_text_is_refused(model: str) -> None:
    detector = MaskedLM(model=model, from_="text", device="cpu")
    rng = np.random.default_rng(0)
    numbers = Attributes(make_vocabulary("i", 2), pd.DataFrame({"text": [1.0, 2.0]}))
    with pytest.raises(UnknownColumn, match="holds numbers"):
        detector.label(numbers, rng)
    with pytest.raises(NothingLeft, match="is empty"):
        detector.label(make_items([None, " "]), rng)
    with pytest.raises(UnknownColumn, match="no column 'other'"):
        MaskedLM(model=model, from_="other").label(numbers, rng)
    with pytest.raises(UnknownName, match="no kind 'age'"):
        MaskedLM(model=model, from_="text", kinds=("age",))


def test_it_meets_the_contract(model: str) -> None:
    items = make_items(["He sings.", "The jew talks.", None, "A nurse."])
    with collect_warnings():
        check_detector(MaskedLM(model=model, from_="text", device="cpu"), items=items)
