from __future__ import annotations

import numpy as np
import pytest

from recbias.core.errors import MalformedLine
from recbias.language.templates import Kind, WordList, fill_templates, refuse_equal_ids


def test_two_slots_are_filled_with_all_pairs_of_words() -> None:
    words = {
        "first": WordList(("mom", "dad"), {"gender": ("female", "male")}),
        "second": WordList(("wife", "husband"), {"gender": ("female", "male")}),
    }
    prompts = fill_templates([Kind("couples", ("my [first] and his/her [second]",), words)])
    assert prompts["text"].tolist() == [
        "my mom and her wife",
        "my mom and her husband",
        "my dad and his wife",
        "my dad and his husband",
    ]
    # by the genders of the two words: F F, F M, M F, M M
    same, other = "homosexual", "heterosexual"
    assert prompts["orientation"].tolist() == [same, other, other, same]
    assert prompts["id"].tolist()[1] == "couples-01:mom:husband"


@pytest.mark.parametrize(
    ("sentence", "expected"),
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
def test_a_pronoun_agrees_with_the_preceding_word(sentence: str, expected: list[str]) -> None:
    words = {"name": WordList(("Ann", "Bob", "Kim"), {"gender": ("female", "male", None)})}
    assert fill_templates([Kind("n", (sentence,), words)])["text"].tolist() == expected


def test_words_without_a_gender_have_neutral_pronouns() -> None:
    words = {"name": WordList(("Kim",), {})}
    assert (
        fill_templates([Kind("n", ("[name] in his/her car",), words)])["text"][0]
        == "Kim in their car"
    )


def test_prompts_with_equal_identifiers_are_an_error() -> None:
    words = {"a": WordList(("x:y", "x"), {}), "b": WordList(("z", "y:z"), {})}
    ids = fill_templates([Kind("k", ("[a] [b]",), words)])["id"].to_numpy(dtype=object)
    with pytest.raises(MalformedLine, match="two prompts have the identifier 'k-01:x:y:z'"):
        refuse_equal_ids(ids, "mine.yaml")
    refuse_equal_ids(np.array(["a", "b"], dtype=object), "mine.yaml")


def test_neutral_prompts_follow_those_with_words() -> None:
    words = {"name": WordList(("Ann", "Bob"), {"gender": ("female", "male")})}
    prompts = fill_templates(
        [Kind("names", ("for [name]", "[name] and his/her car"), words)], neutral={}
    )
    assert prompts["id"].tolist() == [
        *("names-01:Ann", "names-01:Bob", "names-01:neutral"),
        *("names-02:Ann", "names-02:Bob", "names-02:neutral"),
    ]
    assert prompts["neutral"].tolist() == [0, 0, 1, 0, 0, 1]
    assert prompts["text"][5] == "[MASK] and their car"
    assert prompts[["kind", "template"]].to_numpy()[5].tolist() == ["names", "names-02"]
    assert prompts[["name", "gender"]].to_numpy()[5].tolist() == [None, None]
