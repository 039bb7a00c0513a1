"""Cleaning of posts of social media, and their division into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recbias.language.sentence_splitting import split_sentences

_URL = re.compile(r"(?:https?://|www\.)[\w\-.~:/?#\[\]@!$&'()*+,;=%]+", re.ASCII | re.IGNORECASE)
_MENTION = re.compile(r"(?://)?(?<![A-Za-z0-9.])[@\uff20][\w\-·]+\s*[:\uff1a]?")
_TOPIC = re.compile(r"#[^#\s]{1,60}#")
_EMOTICON_CODE = re.compile(r"\[[^\[\]\s]{1,10}\]")
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff\u200d\u20e3\ufe0e\ufe0f"
    "\U000e0020-\U000e007f]"
)
_REPEATED = re.compile(r"([^\w\s])\1+")
_FORMULA_START = "=+-@\uff20 "


def clean_text(text: str) -> str:
    """Return a post without what belongs to its platform, on one line.

    URLs, mentions (``@name``, with the ``//`` of a repost), topics between two ``#``, codes of
    emoticons in brackets and emojis are removed, repeated punctuation becomes one character, and
    white space one space. Signs with which a spreadsheet takes a cell for a formula are removed at
    the start.

    >>> clean_text("@ann: Look!!! https://a.org/b [smile]  so good \U0001f600")
    'Look! so good'
    """
    for pattern in (_URL, _MENTION, _TOPIC, _EMOTICON_CODE, _EMOJI):
        text = pattern.sub(" ", text)
    text = _REPEATED.sub(r"\1", text)
    return " ".join(text.split()).lstrip(_FORMULA_START)


def count_words(text: str, *, whole_words: bool) -> int:
    """Return the number of words; of characters in a language that is written without spaces.

    >>> count_words("two words", whole_words=True), count_words("两个 字", whole_words=False)
    (2, 3)
    """
    return len(text.split()) if whole_words else len("".join(text.split()))


def clean_sentences(post: str) -> Iterator[str]:
    r"""Yield the sentences of a post, cleaned; a sentence ends at a line's end.

    >>> list(clean_sentences("@ann: I left. My aunt is here!!\nShe reads"))
    ['I left.', 'My aunt is here!', 'She reads']
    """
    for line in post.splitlines():
        yield from split_sentences(clean_text(line), is_post=True)


def split_text(text: str, max_words: int, *, whole_words: bool) -> Iterator[str]:
    """Yield a text as it is if it is short enough, else its longest runs of whole sentences.

    A single sentence that is too long is yielded as it is; ``count_words`` finds it.

    >>> list(split_text("One two. Three four. Five.", 4, whole_words=True))
    ['One two. Three four.', 'Five.']
    """
    run = ""
    for sentence in split_sentences(text, is_post=True):
        joined = f"{run}{' ' if whole_words and run else ''}{sentence}"
        if run and count_words(joined, whole_words=whole_words) > max_words:
            yield run
            run = sentence
        else:
            run = joined
    if run:
        yield run
