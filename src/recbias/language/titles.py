"""Titles of films: their forms and years, and the catalogue in which titles are looked up.

A title of a reply matches an entry by an equal form in an exact index, else by the nearest one
that rapidfuzz finds.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from recbias.core.dataset import AnyArray, BoolArray, Codes
from recbias.core.errors import OutOfRange
from recbias.core.packages import require_packages

_ARTICLES = (
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

YEAR = r"((?:18|19|20)\d\d)"
"""The pattern of a year."""

_ARTICLE = "|".join(_ARTICLES)
_YEAR_SIGN = r"\s*(?:年|년|г\.?)?\s*"
_PLAIN_YEAR = re.compile(rf"[(\[]\s*{YEAR}{_YEAR_SIGN}(?:[-–—/]\s*\d{{0,4}}\s*)?[)\]]")
_YEAR_WITH_TEXT = re.compile(
    rf"[(\[](?:(?P<name>[^()\[\]]{{0,60}})[,\s])?{YEAR}(?:[^\d()\[\]][^()\[\]]{{0,60}})?[)\]]"
)
_YEAR_AT_END = re.compile(rf"(?:,|\s[-–—|])\s*{YEAR}(?:년|年)?(?=$|[\s,;|])")
_DESCRIPTION = re.compile(r" [-–—] .*|(?<=[^\W\d_]): (?=[a-z](?:\S* ){3}).*")
_BARE_YEAR = re.compile(rf"(.+) {YEAR}")
_NO_NAME = re.compile(
    r"\W*|.*\b(?:films?|movies?|animated|tv|series|remake|dir|directed|director|starring|r[ée]al|regie)\b.*"
    r"|c\.?|ca\.?|circa|us|usa|uk|u\.s\.a?\.?|u\.k\.",
    re.IGNORECASE,
)
"""Matches text before a year in brackets that is no other name of the film."""

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

    The year stands in brackets, alone (the first such year counts) or with other text, or after a
    comma or a dash. A name before it in the brackets stays, as another name of the film.

    >>> split_year("Matrix, The (1999)"), split_year("1984")
    (('Matrix, The', 1999), ('1984', None))
    >>> split_year("Heat (film, 1995): a thriller"), split_year("Heat - 1995")
    (('Heat', 1995), ('Heat', 1995))
    >>> split_year("Der Pate (The Godfather, 1972)")
    ('Der Pate (The Godfather)', 1972)
    """
    years = _PLAIN_YEAR, _YEAR_WITH_TEXT, _YEAR_AT_END
    match = next(filter(None, (pattern.search(text) for pattern in years)), None)
    if match is None or not text[: match.start()].strip():
        return text.strip(), None
    title, name = text[: match.start()].strip(), match.groupdict().get("name") or ""
    name = name.rpartition(":")[2].strip(" ,;")
    is_name = not (name[:1].islower() or _NO_NAME.fullmatch(name))
    named = f"{title} ({name})" if is_name else title
    return named, int(match[match.lastindex or 0])


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
    title = html.unescape(title)  # MovieLens has "&#8230;" in a title
    letters = title.casefold() if title.isascii() else _remove_accents(title)
    words = _WORD.findall(_DELETED.sub("", letters.replace("&", " and ")))
    return " ".join([*words[:1], *(_NUMERALS.get(word, word) for word in words[1:])])


def _remove_accents(title: str) -> str:
    letters = unicodedata.normalize("NFKD", title).casefold().translate(_LETTERS)
    decomposed = unicodedata.normalize("NFKD", letters)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


@lru_cache(maxsize=1 << 17)
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


NO_YEAR = 0
"""The year of a title without one."""

MAX_YEAR_DIFFERENCE = 1
"""The largest difference between the year of a reply and that of the catalogue."""

_NUMBER = re.compile(r"\d+")


def _list_search_forms(title: str) -> tuple[str, ...]:
    """Return the forms of a title, then the same forms without their leading article.

    >>> _list_search_forms("Matrix, The")
    ('the matrix', 'matrix')
    """
    forms = list_title_forms(title)
    return tuple(dict.fromkeys([*forms, *map(remove_article, forms)]))


def _list_numbers(form: str) -> tuple[str, ...]:
    """Return the numbers of a form, which tell the parts of a series apart.

    >>> _list_numbers("ocean 11 part 2")
    ('11', '2')
    """
    return tuple(_NUMBER.findall(form))


def _measure_year_difference(years: AnyArray, year: AnyArray | int) -> AnyArray:
    """Return the absolute difference of years; the largest allowed if either is absent."""
    unknown = (years == NO_YEAR) | (np.asarray(year) == NO_YEAR)
    return np.where(unknown, MAX_YEAR_DIFFERENCE, np.abs(years - year))


_BLOCK = 64  # how many titles of one year and about one length are compared at once


@dataclass(frozen=True, eq=False)
class TitleMatches:
    """The item of each title.

    Args:
        codes: The item, ``int32[n]``; -1 if the catalogue has no such title.
        scores: The similarity, ``float64[n]``: 100 for an exact match, NaN without a match.
        exact: Whether a form of the title equals one of the item.
        ambiguous: Whether another item matched as well, so that popularity decided.
    """

    codes: Codes
    scores: npt.NDArray[np.float64]
    exact: BoolArray
    ambiguous: BoolArray

    def take(self, rows: AnyArray | list[int]) -> TitleMatches:
        """Return the matches of some titles."""
        columns: tuple[AnyArray, ...] = self.codes, self.scores, self.exact, self.ambiguous
        return TitleMatches(*(column[rows] for column in columns))


_EXACT_SCORE = 100.0  # the score of a title that equals a form of a title of the catalogue


@dataclass(frozen=True, eq=False)
class CatalogueTitles:
    """The titles of a catalogue and the rule by which other titles match them.

    A title matches an item if, after normalising, one of its forms equals one of the item's, and
    the years differ by at most one or one of the two has no year. Of several items the smaller
    difference of years decides, then the closer form (the whole title before an alternative in
    parentheses), then the popularity, then the order of the catalogue. Of a title without such a
    match, the part before a description is tried, then a number at its end as its year. One
    without any exact match is compared by ``rapidfuzz.fuzz.ratio``: the most similar item from
    the threshold on matches, if it has the same numbers and the year allows it.

    Args:
        forms: The normalised forms of all titles, an entry each.
        codes: The item of each entry, ``int32[e]``.
        levels: How close the form is to the title as written: 0 is the whole title, ``int32[e]``.
            Forms without their leading article follow the forms with it.
        precedence: The place of the item among all items, by decreasing popularity, then by code,
            ``int32[e]``: the smallest wins where nothing else decides.
        rows: The entries of each form.
        years: The year of each item, ``int32[n_items]``; 0 if it has none.
        threshold: The smallest similarity, 0 to 100; None for exact matches only.

    Raises:
        OutOfRange: The threshold is not between 0 and 100.
        MissingExtra: There is a threshold, and rapidfuzz is not installed.
    """

    forms: tuple[str, ...]
    codes: Codes
    levels: Codes
    precedence: Codes
    rows: Mapping[str, Sequence[int]]
    years: Codes
    threshold: float | None = 90.0

    def __post_init__(self) -> None:
        """Refuse a threshold that cannot be used."""
        if self.threshold is not None:
            require_packages("matching titles", "rapidfuzz")
            if not 0 < self.threshold <= _EXACT_SCORE:
                message = f"{self.threshold} is not above 0 and at most 100"
                remedy = "90 is the default, null is for exact matches only"
                raise OutOfRange(message, where="threshold", remedy=remedy)

    @cached_property
    def entry_years(self) -> AnyArray:
        """The year of the item of each entry, ``int32[e]``."""
        return self.years[self.codes]

    def holds(self, text: str) -> bool:
        """Return whether a text is exactly one of the titles, of whatever year."""
        return any(form in self.rows for form in _list_search_forms(split_year(text)[0]))

    def match(self, titles: Sequence[str], years: Sequence[int | None]) -> TitleMatches:
        """Return the item of each title; repeated titles are looked up once.

        Args:
            titles: The titles, without years.
            years: Their years.
        """
        positions: dict[tuple[str, int], int] = {}
        inverse = [
            positions.setdefault((title, year or NO_YEAR), len(positions))
            for title, year in zip(titles, years, strict=True)
        ]
        return self._match_distinct(list(positions)).take(inverse)

    def _match_distinct(self, titles: Sequence[tuple[str, int]]) -> TitleMatches:
        listed = [self._find_exact(title, year) for title, year in titles]
        codes = np.array([code for code, _ in listed], dtype=np.int32)
        ambiguous = np.array([tied for _, tied in listed], dtype=bool)
        exact = codes >= 0
        scores = np.where(exact, _EXACT_SCORE, np.nan)
        rest = np.flatnonzero(~exact)
        if self.threshold is not None and rest.size:
            forms = [_shorten(titles[position][0]) for position in rest.tolist()]
            years = np.array([year for _, year in titles], dtype=np.int32)[rest]
            nearest = self.find_nearest(forms, years, self.threshold)
            codes[rest], scores[rest] = nearest.codes, nearest.scores
            ambiguous[rest] = nearest.ambiguous
        return TitleMatches(codes, scores, exact, ambiguous)

    def find_nearest(self, forms: Sequence[str], years: Codes, threshold: float) -> TitleMatches:
        """Return the nearest item of each title that is at least as similar as the threshold.

        The similarity is ``rapidfuzz.fuzz.ratio`` of the forms without leading articles. Both
        must have the same numbers, so that the parts of a series are not confused, and years that
        differ by at most one. The nearest has the highest similarity; of several the year decides,
        then the precedence of the item.

        Args:
            forms: The normalised titles without leading articles.
            years: Their years, ``int32[n]``; 0 if they have none.
            threshold: The smallest similarity, above 0 to 100.
        """
        from rapidfuzz import fuzz, process

        pairs = [np.empty((0, 3))]
        lengths = np.array([len(form) for form in self.forms])
        is_plain = np.array([remove_article(form) == form for form in self.forms], dtype=bool)
        candidates = np.flatnonzero(is_plain)
        candidates = candidates[np.argsort(lengths[candidates], kind="stable")]
        share = threshold / (200 - threshold)  # by which lengths of similar titles differ at most
        by_length = np.array(sorted(range(len(forms)), key=lambda row: len(forms[row])), dtype=int)
        for year in np.unique(years):
            positions = by_length[years[by_length] == year]
            difference = _measure_year_difference(self.entry_years[candidates], year)
            allowed = candidates[difference <= MAX_YEAR_DIFFERENCE]
            for start in range(0, positions.size, _BLOCK):
                block = positions[start : start + _BLOCK]
                queries = [forms[position] for position in block]
                least, most = len(queries[0]) * share - 1e-9, len(queries[-1]) / share + 1e-9
                ends = np.searchsorted(lengths[allowed], [least, most])
                rows = allowed[ends[0] : ends[1]]
                choices = [self.forms[row] for row in rows]
                scores = process.cdist(
                    queries, choices, scorer=fuzz.ratio, score_cutoff=threshold, dtype=np.float32
                )
                query, choice = np.nonzero(scores)
                pairs.append(np.stack([block[query], rows[choice], scores[query, choice]], axis=1))
        return self._select_nearest(np.concatenate(pairs), forms, years)

    def _select_nearest(self, pairs: AnyArray, forms: Sequence[str], years: Codes) -> TitleMatches:
        nearest = np.full(len(forms), -1, dtype=np.int32)
        scores = np.full(len(forms), np.nan)
        ambiguous = np.zeros(len(forms), dtype=bool)
        equal = [
            _list_numbers(forms[position]) == _list_numbers(self.forms[row])
            for position, row in pairs[:, :2].astype(int)
        ]
        pairs = pairs[np.array(equal, dtype=bool)]
        position, row = pairs[:, :2].astype(int).T
        difference = _measure_year_difference(self.entry_years[row], years[position])
        order = np.lexsort([self.precedence[row], difference, -pairs[:, 2], position])
        position, row, score = position[order], row[order], pairs[order, 2]
        difference, codes = difference[order], self.codes[row]
        first = np.append(True, position[1:] != position[:-1])[: position.size]
        start = np.flatnonzero(first)[np.cumsum(first) - 1]
        ties = (
            (score == score[start]) & (difference == difference[start]) & (codes != codes[start])
        )
        nearest[position[first]], scores[position[first]] = codes[first], score[first]
        ambiguous[position[ties]] = True
        return TitleMatches(nearest, scores, np.zeros_like(ambiguous), ambiguous)

    def _find_exact(self, title: str, year: int) -> tuple[int, bool]:
        """Return the item of a title, -1 if there is none, and whether popularity decided."""
        forms = _list_search_forms(title)
        before = _DESCRIPTION.sub("", title)
        for form in [*forms, *(_list_search_forms(before) if before != title else [])]:
            rows = self.rows.get(form)
            if rows:
                difference = _measure_year_difference(self.entry_years[[*rows]], year)
                allowed = difference <= MAX_YEAR_DIFFERENCE
                if allowed.any():
                    return self._select_first(np.array(rows)[allowed], difference[allowed])
        bare = None if year else _BARE_YEAR.fullmatch(title)
        code, is_tied = self._find_exact(bare[1], int(bare[2])) if bare else (-1, False)
        return (code, is_tied) if code >= 0 and self.years[code] else (-1, False)

    def _select_first(self, rows: AnyArray, difference: AnyArray) -> tuple[int, bool]:
        if rows.size == 1:
            return int(self.codes[rows[0]]), False
        levels, codes = self.levels[rows], self.codes[rows]
        order = np.lexsort([self.precedence[rows], levels, difference])
        first = order[0]
        ties = (difference == difference[first]) & (levels == levels[first])
        return int(codes[first]), bool((codes[ties] != codes[first]).any())


def index_titles(
    titles: Sequence[str],
    years: Sequence[int | None] | None = None,
    popularity: AnyArray | None = None,
    *,
    threshold: float | None = 90.0,
) -> CatalogueTitles:
    """Return the index of the titles of a catalogue.

    Args:
        titles: The title of each item in the order of the codes, as MovieLens writes it.
        years: The year of each item; None to read it from the title.
        popularity: The popularity of each item; None if the order of the catalogue decides.
        threshold: See ``CatalogueTitles``.

    >>> films = index_titles(["Matrix, The (1999)", "Seven (a.k.a. Se7en) (1995)"])
    >>> films.match(["the matrix", "Se7en", "Matirx"], [1998, None, 2003]).codes.tolist()
    [0, 1, -1]
    """
    pairs = [split_year(title) for title in titles]
    read_years = [year for _, year in pairs] if years is None else years
    item_years = np.array([year or NO_YEAR for year in read_years], dtype=np.int32)
    counts = np.zeros(len(titles)) if popularity is None else np.asarray(popularity)
    entries = [
        (form, code, level)
        for code, (name, _) in enumerate(pairs)
        for level, form in enumerate(_list_search_forms(name))
    ]
    rows: dict[str, list[int]] = defaultdict(list)
    for row, (form, _, _) in enumerate(entries):
        rows[form].append(row)
    codes = np.array([code for _, code, _ in entries], dtype=np.int32)
    precedence = np.empty(len(titles), dtype=np.int32)
    precedence[np.argsort(-counts, kind="stable")] = np.arange(len(titles))
    return CatalogueTitles(
        tuple(form for form, _, _ in entries),
        codes,
        np.array([level for _, _, level in entries], dtype=np.int32),
        precedence[codes],
        rows,
        item_years,
        threshold,
    )


def _shorten(title: str) -> str:
    """Return the form that is compared: without parentheses, if it has any, and article."""
    forms = list_title_forms(title)
    return remove_article(forms[min(1, len(forms) - 1)]) if forms else ""
