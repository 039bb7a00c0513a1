"""Titles of films as text: the year, moved articles, alternative titles, and normalised forms."""

from __future__ import annotations

import functools
import re
import unicodedata

ARTICLES = (
    *("the", "a", "an"),  # English
    *("le", "la", "les", "un", "une"),  # French
    *("el", "los", "las", "una", "unos", "unas"),  # Spanish
    *("il", "lo", "gli", "i", "uno"),  # Italian
    *("der", "die", "das", "ein", "eine"),  # German
    *("o", "os", "as", "um", "uma"),  # Portuguese
    *("de", "het", "een"),  # Dutch
    *("den", "det", "en", "ett", "et"),  # Scandinavian languages
)
"""The articles that a catalogue moves to the end of a title, besides L'."""

_YEAR = r"((?:18|19|20)\d\d)"
_ARTICLE = "|".join(ARTICLES)
_PLAIN_YEAR = re.compile(rf"[(\[]\s*{_YEAR}\s*(?:[-–—/]\s*\d{{0,4}}\s*)?[)\]]")
_YEAR_WITH_TEXT = re.compile(
    rf"[(\[](?:[^()\[\]]{{0,60}}[,\s])?{_YEAR}(?:[,;\s][^()\[\]]{{0,60}})?[)\]]"
)
_YEAR_AT_END = re.compile(rf"(?:,|\s[-–—])\s*{_YEAR}\s*$")
_MOVED_ARTICLE = re.compile(rf"(.+),\s*({_ARTICLE}|l['’])", re.IGNORECASE)
_LEADING_ARTICLE = re.compile(rf"(?:{_ARTICLE}) (?=.)")
_PARENTHESES = re.compile(r"\(([^()]*)\)")
_ALSO_KNOWN_AS = re.compile(r"\s*a\.?\s?k\.?\s?a\.?[\s:]+", re.IGNORECASE)
_DELETED = re.compile(r"[.*'’‘`´]")
_WORD = re.compile(r"[^\W_]+")
_LETTERS = str.maketrans({"ø": "o", "æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "ł": "l", "þ": "th"})
_NUMERALS = {
    numeral: str(number)
    for number, numeral in enumerate(
        ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii"), 1
    )
}


def list_plain_years(text: str) -> list[re.Match[str]]:
    """Return the years that stand alone in brackets: ``(1995)``, ``[1995]``, ``(1994-1998)``."""
    return list(_PLAIN_YEAR.finditer(text))


def split_year(text: str) -> tuple[str, int | None]:
    """Return a title without its year and what follows the year, and the year.

    The year stands in brackets, alone (the first such year counts) or with other text, or at the
    end after a comma or a dash.

    >>> split_year("Matrix, The (1999)"), split_year("1984")
    (('Matrix, The', 1999), ('1984', None))
    >>> split_year("Heat (film, 1995): a thriller"), split_year("Heat - 1995")
    (('Heat', 1995), ('Heat', 1995))
    """
    years = _PLAIN_YEAR, _YEAR_WITH_TEXT, _YEAR_AT_END
    match = next(filter(None, (pattern.search(text) for pattern in years)), None)
    if match is None or not text[: match.start()].strip():
        return text.strip(), None
    return text[: match.start()].strip(), int(match[1])


def restore_article(title: str) -> str:
    """Return a title with a moved article in front of it.

    >>> restore_article("Matrix, The"), restore_article("Avventura, L'")
    ('The Matrix', "L'Avventura")
    >>> restore_article("City of Lost Children, The (Cité des enfants perdus, La)")
    'The City of Lost Children (La Cité des enfants perdus)'
    """
    name, separator, rest = title.partition(" (")
    alternatives = _PARENTHESES.sub(
        lambda match: f"({_front_article(match[1])})", separator + rest
    )
    return _front_article(name) + alternatives


def _front_article(title: str) -> str:
    match = _MOVED_ARTICLE.fullmatch(title.strip())
    if match is None:
        return title
    name, article = match[1].strip(), match[2]
    return f"{article}{name}" if article[-1] in "'’" else f"{article} {name}"


def normalize_title(title: str) -> str:
    """Return the words of a title without case, accents and punctuation.

    ``&`` becomes ``and``, and a Roman numeral up to XIII after the first word becomes a number.
    Apostrophes, full stops and asterisks are deleted; other punctuation separates words.

    >>> normalize_title("Léon: The Professional"), normalize_title("M*A*S*H")
    ('leon the professional', 'mash')
    >>> normalize_title("Fast & Furious, Part II"), normalize_title("Alien³")
    ('fast and furious part 2', 'alien3')
    """
    letters = title.casefold() if title.isascii() else _remove_accents(title)
    words = _WORD.findall(_DELETED.sub("", letters.replace("&", " and ")))
    return " ".join([*words[:1], *(_NUMERALS.get(word, word) for word in words[1:])])


def _remove_accents(title: str) -> str:
    letters = unicodedata.normalize("NFKD", title).casefold().translate(_LETTERS)
    decomposed = unicodedata.normalize("NFKD", letters)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


@functools.lru_cache(maxsize=1 << 17)
def list_title_forms(title: str) -> tuple[str, ...]:
    """Return the normalised forms of a title without year, the closest to the title first.

    The forms are the whole title, the title without text in parentheses, and the text of each
    pair of parentheses, without ``a.k.a.``; each with a moved article in front.

    >>> list_title_forms("Seven (a.k.a. Se7en)")
    ('seven aka se7en', 'seven', 'se7en')
    >>> list_title_forms("City of Lost Children, The (Cité des enfants perdus, La)")[1:]
    ('the city of lost children', 'la cite des enfants perdus')
    """
    if "(" not in title:
        form = normalize_title(_front_article(title))
        return (form,) if form else ()
    alternatives = [_ALSO_KNOWN_AS.sub("", text) for text in _PARENTHESES.findall(title)]
    names = [title, _PARENTHESES.sub(" ", title), *alternatives]
    forms = [normalize_title(_front_article(name)) for name in names]
    return tuple(dict.fromkeys(filter(None, forms)))


def remove_article(form: str) -> str:
    """Return a normalised form without its leading article, if another word follows.

    >>> remove_article("the matrix"), remove_article("lavventura"), remove_article("das")
    ('matrix', 'lavventura', 'das')
    """
    match = _LEADING_ARTICLE.match(form)
    return form[match.end() :] if match else form
