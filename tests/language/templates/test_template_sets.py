from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MalformedLine
from recbias.language.templates.template_sets import (
    Kind,
    WordList,
    filled,
    refuse_equal_ids,
    slots_of,
)

WORD = st.text(st.characters(categories=["L"]), min_size=1, max_size=6)
GENDER = st.sampled_from(["female", "male", None])


@st.composite
def kinds(draw: st.DrawFn) -> Kind:
    lists = {
        slot: draw(st.dictionaries(WORD, GENDER, min_size=1, max_size=4))
        for slot in ("first", "second")
    }
    words = {
        slot: WordList(tuple(each), {"gender": tuple(each.values())})
        for slot, each in lists.items()
    }
    some = ["To [first] from [second]", "[first]", "A [second] and his/her [first]!"]
    sentences = draw(st.lists(st.sampled_from(some), min_size=1, unique=True))
    return Kind("k", (*sentences, "[first] [second]"), words)


@given(kind=kinds())
def test_every_template_is_filled_with_every_word(kind: Kind) -> None:
    made = filled([kind])
    first, second = (len(kind.words[slot].words) for slot in ("first", "second"))
    expected = sum(first if each == "[first]" else first * second for each in kind.sentences)
    assert len(made) == len(kind) == expected
    assert not made["id"].duplicated().any()
    assert made.groupby("template").size().size == len(kind.sentences)


@given(kind=kinds())
def test_the_words_are_in_the_text_and_labels_follow_from_them(kind: Kind) -> None:
    made = filled([kind])
    for row in made.to_dict("records"):
        for slot in ("first", "second"):
            word = row[slot]
            if word is None:
                assert row[f"{slot}_gender"] is None
                continue
            assert word in row["text"]
            at = kind.words[slot].words.index(word)
            assert row[f"{slot}_gender"] == kind.words[slot].labels["gender"][at]
        genders = {row["first_gender"], row["second_gender"]}
        if None in genders:
            assert row["orientation"] is None
        else:
            assert row["orientation"] == ("homosexual" if len(genders) == 1 else "heterosexual")


def test_two_slots_are_crossed_the_second_first() -> None:
    words = {
        "first": WordList(("mom", "dad"), {"gender": ("female", "male")}),
        "second": WordList(("wife", "husband"), {"gender": ("female", "male")}),
    }
    made = filled([Kind("couples", ("my [first] and his/her [second]",), words)])
    assert made["text"].tolist() == [
        "my mom and her wife",
        "my mom and her husband",
        "my dad and his wife",
        "my dad and his husband",
    ]
    # by the genders of the two words: F F, F M, M F, M M
    same, other = "homosexual", "heterosexual"
    assert made["orientation"].tolist() == [same, other, other, same]
    assert made["id"].tolist()[1] == "couples-01:mom:husband"


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("[name] and his/her dog", ["Ann and her dog", "Bob and his dog", "Kim and their dog"]),
        ("he/she is [name]", ["she is Ann", "he is Bob", "they is Kim"]),
        ("[name], feed him/her", ["Ann, feed her", "Bob, feed him", "Kim, feed them"]),
        (
            "[name] likes this/her",
            ["Ann likes this/her", "Bob likes this/her", "Kim likes this/her"],
        ),
        ("[name] or [name]", ["Ann or Ann", "Bob or Bob", "Kim or Kim"]),
    ],
)
def test_a_pronoun_fits_the_word_before_it(sentence: str, said: list[str]) -> None:
    words = {"name": WordList(("Ann", "Bob", "Kim"), {"gender": ("female", "male", None)})}
    assert filled([Kind("n", (sentence,), words)])["text"].tolist() == said


def test_words_without_a_gender_are_they() -> None:
    words = {"name": WordList(("Kim",), {})}
    assert filled([Kind("n", ("[name] in his/her car",), words)])["text"][0] == "Kim in their car"


def test_a_cell_that_does_not_apply_is_none() -> None:
    name = {"name": WordList(("Ann",), {"race": ("white",)})}
    place = {"location": WordList(("bank",), {})}
    made = filled(
        [Kind("names", ("For [name]",), name), Kind("places", ("At [location]",), place)]
    )
    assert made.columns.tolist() == ["id", "text", "kind", "template", "name", "location", "race"]
    assert made["name"].tolist() == ["Ann", None]
    assert made["race"].tolist() == ["white", None]


def test_numbers_of_templates_have_one_width() -> None:
    words = {"n": WordList(("a",), {})}
    made = filled([Kind("k", tuple(f"{at} [n]" for at in range(100)), words)])
    assert made["template"].tolist()[::99] == ["k-001", "k-100"]


def test_slots_are_named_once_and_pronouns_are_none() -> None:
    assert slots_of("[a] [b] his/her [a]") == ["a", "b"]


def test_prompts_of_one_name_are_refused() -> None:
    words = {"a": WordList(("x:y", "x"), {}), "b": WordList(("z", "y:z"), {})}
    ids = filled([Kind("k", ("[a] [b]",), words)])["id"].to_numpy(dtype=object)
    with pytest.raises(MalformedLine, match="two prompts are called 'k-01:x:y:z'"):
        refuse_equal_ids(ids, "mine.yaml")
    refuse_equal_ids(np.array(["a", "b"], dtype=object), "mine.yaml")


def test_masked_slots_are_not_told() -> None:
    words = {
        "first": WordList(("mom", "dad"), {"gender": ("female", "male")}),
        "second": WordList(("wife",), {"gender": ("female",)}),
    }
    kind = Kind("couples", ("my [first] and his/her [second]",), words)
    told = filled([kind])
    made = filled([kind], masked=("first",))
    assert made["text"].tolist() == ["my [MASK] and their wife"] * 2
    rest = [name for name in told if name != "text"]
    pd.testing.assert_frame_equal(made[rest], told[rest])
    made = filled([kind], masked=("second",))
    assert made["text"].tolist() == ["my mom and her [MASK]", "my dad and his [MASK]"]


def test_neutral_prompts_stand_behind_those_with_words() -> None:
    words = {"name": WordList(("Ann", "Bob"), {"gender": ("female", "male")})}
    made = filled([Kind("names", ("for [name]", "[name] and his/her car"), words)], neutral=True)
    assert made["id"].tolist() == [
        *("names-01:Ann", "names-01:Bob", "names-01:neutral"),
        *("names-02:Ann", "names-02:Bob", "names-02:neutral"),
    ]
    assert made["neutral"].tolist() == [0, 0, 1, 0, 0, 1]
    assert made["text"][5] == "[MASK] and their car"
    assert made[["kind", "template"]].to_numpy()[5].tolist() == ["names", "names-02"]
    assert made[["name", "gender"]].to_numpy()[5].tolist() == [None, None]
