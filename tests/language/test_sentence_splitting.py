from __future__ import annotations

import pytest

from recbias.language.corpora import split_sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Mr. Fox met Dr. Owl vs. St. John.", ["Mr. Fox met Dr. Owl vs. St. John."]),
        (
            "He paid 3.50 in the U.S. Army, e.g. once.",
            ["He paid 3.50 in the U.S. Army, e.g. once."],
        ),
        ('"Run!" She ran... Then 2 more.', ['"Run!"', "She ran...", "Then 2 more."]),
        ("So did I. Then it ended.", ["So did I.", "Then it ended."]),
        ("A line\nanother\n\n", ["A line", "another"]),
        ("他来了。她走了！再见", ["他来了。", "她走了！", "再见"]),
        ("Он пришёл. Она ушла.", ["Он пришёл.", "Она ушла."]),
        ("", []),
        ("  ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected
