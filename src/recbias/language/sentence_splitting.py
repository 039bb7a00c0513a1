"""Texts divided into sentences by rules."""

from __future__ import annotations

import re

_ABBREVIATIONS = frozenset(
    (  # noqa: SIM905  one abbreviation a line would be 40 lines
        "adm al apr aug ave capt cmdr co col corp dec dept dr ed esp est etc feb ft gen gov hon "
        "inc jan jr lt ltd maj messrs mr mrs ms mt no nov oct ph prof rep rev sen sep sept sgt sr "
        "st ste vol vs"
    ).split()
)
"""Words before a period that does not end a sentence, without their periods."""

_END = re.compile(
    r"""
    [.!?…]+["'”’»)\]]*(?=\s+["'“‘«(\[¿¡]*[^\W_a-z])   # before a capital or a digit
    | [。！？｡]+["'”’」』）]*                            # without a blank after it
    | \n+
    """,
    re.VERBOSE,
)

_END_IN_POST = re.compile(
    r"""
    [.!?…]+["'”’»)\]]*(?=\s)
    | [!?]+(?=[\u3040-\u30ff\u3400-\u9fff])            # keyboards without 。 and ？
    | [。！？｡]+["'”’」』）)]*
    | \n+
    """,
    re.VERBOSE,
)

_LAST_WORD = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]+$")


def split_sentences(text: str, *, is_post: bool = False) -> list[str]:
    """Return the sentences of a text, without the blanks around them.

    A sentence ends at a period, an exclamation or a question mark before a capital letter, a digit
    or a letter of a script without capitals, at an ideographic full stop, and at a line's end. The
    period of an abbreviation (``Dr.``) or of initials (``J. R.``) does not end one.

    Args:
        text: The text.
        is_post: Whether the text is a post of social media, in which a sentence may begin with a
            lower-case letter, and ``!`` and ``?`` stand between Chinese sentences without a blank.

    >>> split_sentences("Dr. No met J. R. Ewing. They left! Who won? The U.S. team.")
    ['Dr. No met J. R. Ewing.', 'They left!', 'Who won?', 'The U.S. team.']
    >>> split_sentences("i left. she is at home!", is_post=True)
    ['i left.', 'she is at home!']
    """
    sentences, start = [], 0
    for match in (_END_IN_POST if is_post else _END).finditer(text):
        if match.group() != "." or not _is_abbreviation(text[start : match.start()]):
            sentences.append(text[start : match.end()].strip())
            start = match.end()
    return [sentence for sentence in (*sentences, text[start:].strip()) if sentence]


def _is_abbreviation(before: str) -> bool:
    """Return whether the text before a period ends with an abbreviation or an initial."""
    match = _LAST_WORD.search(before[-20:])
    word = match.group() if match else ""
    is_initial = "." in word or (len(word) == 1 and word.isupper() and word != "I")
    return is_initial or word.lower() in _ABBREVIATIONS
