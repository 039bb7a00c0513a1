from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from recbias.language.masking import text_words
from recbias.language.masking.counterfactual import Side, Swaps, copies, swaps_of
from recbias.language.templates.template_files import packaged

GENDER, RACE = swaps_of("gender"), swaps_of("race")


def copied(*texts: str, swaps: Swaps = GENDER, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    rows, made = copies(np.array(texts, dtype=object), swaps, rng)
    assert rows.size == made.size
    return [str(each) for each in made]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She ate. she ATE, SHE did", "He ate. he ATE, HE did"),
        ("I saw her dog with her, not her.", "I saw his dog with him, not him."),
        ("his tea is his. It's his", "her tea is hers. It's hers"),
        ("with him; hers", "with her; his"),
        ("He'll say he’s here", "She'll say she’s here"),
        ("Ma'am, yes sir", "Sir, yes madam"),
        ("my Fiancée", "my Fiancé"),
        ("the heather shed", None),
        ("the hostess and the host", "the host and the host"),
        ("a mom, a Dad", "a dad, a Mom"),
        ("", None),
        ("🍜 שלום", None),
    ],
)
def test_words_of_gender(text: str, expected: str | None) -> None:
    assert copied(text) == ([] if expected is None else [expected])


def test_names_become_names_of_the_other_side_with_the_other_label_kept() -> None:
    listed = packaged()["restaurants"].kinds[0].words["name"]
    labels = {
        name: (listed.labels["race"][place], listed.labels["gender"][place])
        for place, name in enumerate(listed.words)
    }
    for side, place in (("race", 0), ("gender", 1)):
        swaps = swaps_of(side)  # type: ignore[arg-type]  # a literal of the loop
        for name, own in labels.items():
            if name in {"Asia", "Kenya"}:
                assert name.casefold() not in swaps.names
                continue
            found = {labels[other] for other in swaps.names[name.casefold()]}
            wanted = list(own)
            wanted[place] = {"white": "black", "black": "white", "female": "male"}.get(
                own[place] or "", "female"
            )
            assert found == {tuple(wanted)}


def test_a_name_becomes_the_same_name_throughout_a_text() -> None:
    for seed in range(5):
        (made,) = copied("Emily's, Emily & EMILY", seed=seed)
        first = made.partition("'")[0]
        assert made == f"{first}'s, {first} & {first.upper()}"
        assert first.casefold() in GENDER.names
    drawn = copied(*["Emily"] * 50)
    assert len(set(drawn)) > 5


def test_a_name_in_small_letters_is_a_word() -> None:
    assert copied("precious holly", swaps=RACE) == []
    assert copied("he met her", swaps=RACE) == []


def test_copies_are_of_the_texts_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_words, "CHARACTERS_AT_ONCE", 6)
    texts = np.array(["he", "soup", "", "she she", "tea", "mom"], dtype=object)
    rows, made = copies(texts, GENDER, np.random.default_rng(0))
    assert rows.tolist() == [0, 3, 5]
    assert made.tolist() == ["she", "he he", "dad"]
    rows, made = copies(texts[:0], GENDER, np.random.default_rng(0))
    assert (rows.size, made.size) == (0, 0)


def test_the_same_seed_draws_the_same_names() -> None:
    texts = [f"{name} ate" for name in ("Emily", "Jamal", "Brad")] * 5
    assert copied(*texts, seed=3) == copied(*texts, seed=3)
    assert copied(*texts, seed=3) != copied(*texts, seed=4)


WORDS = st.sampled_from(["she", "he", "Mom", "dad", "WIFE", "soup", "herself", "waiter", "."])


@given(st.lists(WORDS, max_size=10))
def test_a_copy_of_a_copy_is_the_text(words: list[str]) -> None:
    text = " ".join(words)
    made = copied(text)
    assert made == [] or copied(*made) == [text]


@pytest.mark.parametrize("side", ["gender", "race"])
def test_a_planted_difference_vanishes(side: Side) -> None:
    pairs = {"gender": ("she", "he"), "race": ("Emily", "Keisha")}
    a, b = pairs[side]
    # of 40 texts with a, 30 are of item 1; of 40 with b, 10 are
    texts = np.array([f"{a} ate soup"] * 40 + [f"{b} ate soup"] * 40, dtype=object)
    items = np.repeat([1, 0, 1, 0], [30, 10, 10, 30])

    def gap(texts: np.ndarray, items: np.ndarray) -> float:
        reader = CountVectorizer()
        model = LogisticRegression(C=10).fit(reader.fit_transform(texts), items)
        scores = model.decision_function(reader.transform([f"{a} ate", f"{b} ate"]))
        return float(scores[0] - scores[1])

    rows, made = copies(texts, swaps_of(side), np.random.default_rng(0))
    before, after = gap(texts, items), gap(np.append(texts, made), np.append(items, items[rows]))
    # log odds ln 3 against -ln 3, a little less by the penalty
    assert before == pytest.approx(2 * np.log(3), rel=0.1)
    # he and she change places for good; of names each becomes one of many
    assert abs(after) < (1e-3 if side == "gender" else 0.9 * before)
