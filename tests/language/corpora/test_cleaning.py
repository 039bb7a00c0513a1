from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.formats.text_files import FORMULA_STARTS
from recbias.language.corpora import clean_text, count_words, split_text


@pytest.mark.parametrize(
    ("post", "cleaned"),
    [
        ("see https://t.cn/A6x?b=1看这里", "see 看这里"),
        ("www.example.org/page now", "now"),
        ("//@someone:yes @某人 好", "yes 好"),
        ("mail me: ann@example.org", "mail me: ann@example.org"),
        ("#天气#今天下雨[泪]", "今天下雨"),
        ("rain \U0001f327\ufe0f\u2614 again", "rain again"),
        ("family \U0001f469\u200d\U0001f467", "family"),
        ("what??!!!", "what?!"),
        ("真的\uff1f\uff1f\uff1f好……", "真的\uff1f好…"),
        ("  one\n two\t", "one two"),
        ("=HYPERLINK(1)", "HYPERLINK(1)"),
        ("-- +1", "1"),
        ("3 - 2 = 1", "3 - 2 = 1"),
        ("\U0001f600", ""),
    ],
)
def test_what_belongs_to_the_platform_is_removed(post: str, cleaned: str) -> None:
    assert clean_text(post) == cleaned


@given(st.text())
def test_cleaned_text_is_one_line_and_no_formula(post: str) -> None:
    cleaned = clean_text(post)
    assert cleaned == " ".join(cleaned.split())
    assert not cleaned.startswith(FORMULA_STARTS)


def test_long_texts_are_divided_at_sentence_ends() -> None:
    text = "他走了。她来了！我们吃饭。"
    assert list(split_text(text, 13, whole_words=False)) == [text]
    assert list(split_text(text, 9, whole_words=False)) == ["他走了。她来了！", "我们吃饭。"]
    assert list(split_text(text, 2, whole_words=False)) == ["他走了。", "她来了！", "我们吃饭。"]
    assert list(split_text("3.5 is one. Two", 3, whole_words=True)) == ["3.5 is one.", "Two"]


@given(st.text(alphabet="ab .。!", max_size=60), st.integers(1, 12))
def test_division_loses_no_character(text: str, max_words: int) -> None:
    runs = list(split_text(text, max_words, whole_words=False))
    assert "".join("".join(runs).split()) == "".join(text.split())
    sentences = [part for run in runs for part in split_text(run, 1, whole_words=False)]
    for run in runs:
        is_short = count_words(run, whole_words=False) <= max_words
        assert is_short or run in sentences
