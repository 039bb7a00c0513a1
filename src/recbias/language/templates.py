"""Prompts that differ in a word: sentences with slots and their labelled words, and FaiRLLM's.

Template files are a YAML of one's own, or the JSON of the authors of LMRec; those of FaiRLLM are
its attributes or its results.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Le, MinLen

from recbias.core.context import warn
from recbias.core.dataset import SAMPLE, AnyArray, Dataset, Ids, Queries
from recbias.core.errors import (
    Contradiction,
    MalformedLine,
    MissingFile,
    NothingLeft,
    UnknownColumn,
    UnknownName,
    UserError,
    WrongType,
)
from recbias.core.evidence import MASK
from recbias.core.plugins import InputFile
from recbias.core.text import suggest
from recbias.formats.tables import read_text_table
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.terms import find_packaged

_PRONOUNS = {
    "his/her": {"male": "his", "female": "her", None: "their"},
    "he/she": {"male": "he", "female": "she", None: "they"},
    "him/her": {"male": "him", "female": "her", None: "them"},
}
"""The pronouns by the ``gender`` of the preceding word."""

NEUTRAL = "neutral"
"""The label of prompts without an identity, and the end of their identifiers."""

_TOKEN = re.compile(rf"\[([^\[\]]+)\]|\b({'|'.join(_PRONOUNS)})\b")


@dataclass(frozen=True)
class WordList:
    """The words of a slot, with the value of each label: ``{"gender": ("female", None)}``."""

    words: tuple[str, ...]
    labels: Mapping[str, tuple[str | None, ...]]


@dataclass(frozen=True)
class Kind:
    """Sentences about one subject, with slots as ``[name]``, and the words of each slot."""

    name: str
    sentences: tuple[str, ...]
    words: Mapping[str, WordList]

    @property
    def labels(self) -> dict[str, tuple[str, str]]:
        """The slot and label of each label column: ``first_gender`` if there are several slots."""
        columns: dict[str, tuple[str, str]] = {}
        for slot, word_list in self.words.items():
            for label in word_list.labels:
                columns[f"{slot}_{label}" if len(self.words) > 1 else label] = (slot, label)
        return columns

    def __len__(self) -> int:
        """Return the number of prompts."""
        sizes = {slot: len(word_list.words) for slot, word_list in self.words.items()}
        counts = [[sizes[slot] for slot in find_slots(text)] for text in self.sentences]
        return int(sum(np.prod(count) for count in counts))


@dataclass(frozen=True)
class _TemplateSet:
    """Sentences of several kinds, a description in one sentence, and the source or blank."""

    about: str
    source: str
    kinds: tuple[Kind, ...]

    @property
    def names(self) -> list[str]:
        """The names of the kinds."""
        return [kind.name for kind in self.kinds]


def find_slots(sentence: str) -> list[str]:
    """Return the slots of a sentence, without repetition.

    >>> find_slots("A table for my [first] and his/her [second]")
    ['first', 'second']
    """
    return list(dict.fromkeys(match[1] for match in _TOKEN.finditer(sentence) if match[1]))


def fill_templates(
    kinds: Iterable[Kind],
    *,
    masked: Collection[str] = (),
    neutral: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return one row per prompt: every sentence with every word of its slots.

    The columns are ``id``, ``text``, ``kind``, ``template``, one for each slot and one for each
    label; None where a column does not apply. Two slots are filled with all pairs of their words;
    ``orientation`` follows from the genders of ``first`` and ``second``.

    The word of ``masked`` slots is ``[MASK]`` in the text, with gender-neutral pronouns; the other
    columns do not change. With ``neutral``, each sentence is added after its prompts with these
    words, or ``[MASK]`` in a slot without one: the column ``neutral`` is 1 for these rows and 0
    otherwise.

    >>> words = {"name": WordList(("Ann", "Bob"), {"gender": ("female", "male")})}
    >>> table = fill_templates([Kind("names", ("A table for [name] and his/her friend",), words)])
    >>> table[["id", "text", "gender"]].to_numpy().tolist()[1]
    ['names-01:Bob', 'A table for Bob and his friend', 'male']
    """
    kinds = list(kinds)
    blocks = [block for kind in kinds for block in _fill_kind(kind, masked, neutral)]
    slots = dict.fromkeys(slot for kind in kinds for slot in kind.words)
    labels = dict.fromkeys(label for kind in kinds for label in kind.labels)
    columns = list(dict.fromkeys(["id", "text", "kind", "template", *slots, *labels]))
    if {"first_gender", "second_gender"} <= labels.keys():
        columns.append("orientation")
    if neutral is not None:
        columns.append(NEUTRAL)
    return pd.DataFrame({column: _stack_column(blocks, column) for column in columns})


def add_samples(prompts: pd.DataFrame, n_samples: int) -> pd.DataFrame:
    """Return the prompts, and each neutral one ``n_samples`` more times, right behind it.

    So the first prompts, which a smoke test takes, have samples too. Prompts have ``sample`` 0;
    repeated ones 1, 2, ... and the identifier ``a:neutral:sample-1``.

    Args:
        prompts: The columns ``id``, ``neutral`` and others.
        n_samples: The number of further samples; with 0 there is no column ``sample``.
    """
    if not n_samples:
        return prompts
    prompts = prompts.reset_index(drop=True)
    neutral = prompts[prompts[NEUTRAL] == 1]
    copies = [
        neutral.assign(id=neutral["id"] + f":{SAMPLE}-{number}").assign(**{SAMPLE: float(number)})
        for number in range(1, n_samples + 1)
    ]
    samples = pd.concat([prompts.assign(**{SAMPLE: 0.0}), *copies])
    return samples.sort_index(kind="stable").reset_index(drop=True)


def refuse_equal_ids(ids: Ids, file: str) -> None:
    """Raise MalformedLine if two prompts have the same identifier: words contain a colon."""
    is_repeated = pd.Series(ids).duplicated().to_numpy()
    if is_repeated.any():
        message = f"two prompts have the identifier {ids[is_repeated][0]!r}"
        raise MalformedLine(message, where=file, remedy="remove the colon from the words")


def _fill_kind(
    kind: Kind, masked: Collection[str], neutral: Mapping[str, str] | None
) -> Iterator[dict[str, AnyArray]]:
    width = max(2, len(str(len(kind.sentences))))
    for number, sentence in enumerate(kind.sentences, 1):
        template = f"{kind.name}-{number:0{width}d}"
        yield _fill_sentence(kind, sentence, template, dict.fromkeys(masked, MASK))
        if neutral is not None:
            slots = {slot: np.zeros(1, dtype=np.intp) for slot in find_slots(sentence)}
            texts = {"id": f"{template}:{NEUTRAL}", "kind": kind.name, "template": template}
            yield {
                **{column: _repeat(text, 1) for column, text in texts.items()},
                "text": _fill_text(
                    kind, sentence, slots, {**dict.fromkeys(slots, MASK), **neutral}
                ),
                NEUTRAL: np.ones(1),
            }


def _fill_sentence(
    kind: Kind, sentence: str, template: str, masked: Mapping[str, str]
) -> dict[str, AnyArray]:
    slots = find_slots(sentence)
    sizes = [len(kind.words[slot].words) for slot in slots]
    indices = dict(zip(slots, np.indices(sizes).reshape(len(slots), -1), strict=True))
    n = int(np.prod(sizes))
    columns: dict[str, AnyArray] = {
        "kind": _repeat(kind.name, n),
        "template": _repeat(template, n),
        NEUTRAL: np.zeros(n),
    }
    for slot in slots:
        columns[slot] = np.array(kind.words[slot].words, dtype=object)[indices[slot]]
    for column, (slot, label) in kind.labels.items():
        if slot in indices:
            values = np.array(kind.words[slot].labels[label], dtype=object)
            columns[column] = values[indices[slot]]
    columns["text"] = _fill_text(kind, sentence, indices, masked)
    columns["id"] = columns["template"]
    for slot in slots:
        columns["id"] = columns["id"] + ":" + columns[slot]
    if {"first_gender", "second_gender"} <= columns.keys():
        first, second = columns["first_gender"], columns["second_gender"]
        orientation = np.where(first == second, "homosexual", "heterosexual").astype(object)
        orientation[pd.isna(first) | pd.isna(second)] = None
        columns["orientation"] = orientation
    return columns


def _fill_text(
    kind: Kind, sentence: str, indices: Mapping[str, AnyArray], masked: Mapping[str, str]
) -> Ids:
    texts: Ids = _repeat("", next(iter(indices.values())).size)
    end, slot = 0, next(iter(indices))
    for match in _TOKEN.finditer(sentence):
        texts = texts + sentence[end : match.start()]
        slot, end = match[1] or slot, match.end()
        word_list = kind.words[slot]
        if slot in masked:
            word_list = WordList((masked[slot],) * len(word_list.words), {})
        words = word_list.words
        if not match[1]:
            forms = _PRONOUNS[match[2]]
            genders = word_list.labels.get("gender", (None,) * len(words))
            words = tuple(forms.get(gender, forms[None]) for gender in genders)
        texts = texts + np.array(words, dtype=object)[indices[slot]]
    return np.asarray(texts + sentence[end:], dtype=object)


def _stack_column(blocks: list[dict[str, AnyArray]], column: str) -> AnyArray:
    return np.concatenate([block.get(column, _repeat(None, block["id"].size)) for block in blocks])


def _repeat(value: str | None, n: int) -> Ids:
    return np.full(n, value, dtype=object)


_RESERVED = ("kind", "template", "id", "text")
_BRACES = re.compile(r"\{([^{}]*)\}")


_Group: TypeAlias = tuple[Sequence[MarkedValue], Mapping[str, str]]
"""Words of a file, and their labels."""


def _merge_groups(slot: str, groups: Iterable[_Group], node: MarkedValue) -> WordList:
    """Return the words of a slot without repetition, with the labels of all their groups.

    MalformedLine if there are no words, or a word has two values of one label.
    """
    if slot in _RESERVED:
        raise node.fault(f"no slot can be named {slot!r}", remedy="choose another name")
    words: dict[str, dict[str, str]] = {}
    repeated: list[str] = []
    for marked, new_labels in _iterate_words(slot, groups, node):
        word = marked.text("a word").strip()
        if word in words and new_labels.keys() <= words[word].keys():
            repeated.append(word)
        labels = words.setdefault(word, {})
        for name, value in new_labels.items():
            if labels.setdefault(name, value) != value:
                message = f"the word {word!r} is both {labels[name]} and {value} ({name})"
                raise marked.fault(message, remedy="keep it in one of the lists")
    if not words:
        raise node.fault(f"the slot {slot!r} has no words")
    if repeated:
        warn(f"repeated words of the slot {slot} are used once: {', '.join(repeated)}")
    names = dict.fromkeys(name for labels in words.values() for name in labels)
    columns = {name: tuple(labels.get(name) for labels in words.values()) for name in names}
    return WordList(tuple(words), columns)


def _iterate_words(
    slot: str, groups: Iterable[_Group], node: MarkedValue
) -> Iterator[tuple[MarkedValue, Mapping[str, str]]]:
    for words, labels in groups:
        if not words:
            raise node.fault(f"a list of words of the slot {slot!r} is empty")
        yield from ((word, labels) for word in words)


def _parse_kind(name: str, node: MarkedValue, word_lists: Mapping[str, WordList]) -> Kind:
    """Return one kind from a list of sentences.

    MalformedLine if a sentence has no slot, has a slot without words, or occurs twice.
    """
    sentences: dict[str, list[str]] = {}
    for marked in node.entries(f"the templates {name!r}"):
        sentence = _BRACES.sub(r"[\1]", marked.text("a template").strip())
        slots = find_slots(sentence)
        if sentence in sentences:
            raise marked.fault("this template occurs twice", remedy="remove one of them")
        if not slots:
            raise marked.fault("this template has no slot", remedy="write a slot as [name]")
        for slot in slots:
            if slot not in word_lists:
                remedy = suggest(slot, word_lists)
                raise marked.fault(f"there are no words for the slot [{slot}]", remedy=remedy)
        sentences[sentence] = slots
    if not sentences:
        raise node.fault(f"the kind {name!r} has no templates")
    used = dict.fromkeys(slot for slots in sentences.values() for slot in slots)
    return Kind(name, tuple(sentences), {slot: word_lists[slot] for slot in used})


_SLOTS = {"names": ("name",), "relationships": ("first", "second"), "occupations": ("location",)}
"""The slots of the kinds in the authors' files; the slot of any other kind is named ``word``."""

_LABELS = {
    **dict.fromkeys(("female", "male"), "gender"),
    **dict.fromkeys(("white", "black"), "race"),
    **dict.fromkeys(("old", "young"), "age"),
}
"""The label of which a list in the authors' files is a value; any other is one of ``label``."""

_PARTNERS = {
    "female": ("girlfriend", "wife", "fiancee"),
    "male": ("boyfriend", "husband", "fiance"),
}
"""The second words of couples in the authors' sentences; none of their files lists them."""


def _parse_authors_json(tree: MarkedValue, words: Sequence[Path]) -> _TemplateSet:
    """Return the templates of the authors' JSON, with ``{}`` for a word."""
    templates = tree.mapping("the templates")
    words_of_kinds = {path.stem: read_marked(path) for path in words}
    for name, node in words_of_kinds.items():
        if name not in templates:
            remedy = suggest(name, templates)
            raise node.fault(f"there are no templates of the kind {name!r}", remedy=remedy)
    if not words_of_kinds:
        remedy = "list a file for each kind: words: [../example_labels/names.json]"
        raise MissingFile("the templates have no words", where=tree.where, remedy=remedy)
    excluded = [name for name in templates if name not in words_of_kinds]
    if excluded:
        warn(f"templates without a file of words are excluded: {', '.join(excluded)}")
    kinds = tuple(
        _parse_authors_kind(name, templates[name], node) for name, node in words_of_kinds.items()
    )
    source = "The LMRec authors' release, https://github.com/TinaBBB/Unintended-Bias-LMRec"
    return _TemplateSet("The templates of the LMRec authors' release.", source, kinds)


def _parse_authors_kind(name: str, node: MarkedValue, words: MarkedValue) -> Kind:
    slots = _SLOTS.get(name, ("word",))
    word_lists = {slots[0]: _merge_groups(slots[0], _iterate_labels(words, slots[0]), words)}
    if len(slots) > 1:
        partners: list[_Group] = [
            ([MarkedValue(word, words.where) for word in gendered], {"gender": gender})
            for gender, gendered in _PARTNERS.items()
        ]
        word_lists[slots[1]] = _merge_groups(slots[1], partners, words)
    return _parse_kind(name, _name_slots(node, slots), word_lists)


def _iterate_labels(node: MarkedValue, slot: str) -> Iterator[_Group]:
    for value, words in node.mapping("the words").items():
        labels = {} if value == "all" else {_LABELS.get(value, "label"): value}
        if slot == "location":
            labels["place"] = "location"
        yield words.entries(value), labels


def _name_slots(node: MarkedValue, slots: tuple[str, ...]) -> MarkedValue:
    """Return sentences with ``{}`` replaced by the slots in order, with a pronoun between two."""
    fillers = [f"[{slots[0]}]", *(["his/her", f"[{slots[1]}]"] if len(slots) > 1 else [])]
    sentences: list[MarkedValue] = []
    for marked in node.entries("the templates"):
        texts = marked.text("a template").split("{}")
        if len(texts) != len(fillers) + 1:
            message = f"{len(texts) - 1} pairs of braces, not {len(fillers)}: {marked.value!r}"
            raise marked.fault(message)
        pairs = zip(texts, [*fillers, ""], strict=True)
        sentence = "".join(text + filler for text, filler in pairs)
        sentences.append(MarkedValue(sentence, marked.where))
    return MarkedValue(tuple(sentences), node.where)


def load_packaged() -> dict[str, _TemplateSet]:
    """Return the packaged sets of templates by name."""
    paths = sorted(find_packaged("templates").glob("*.yaml"))
    return {path.stem: read_templates(path) for path in paths}


@dataclass(frozen=True, kw_only=True)
class Templates:
    """Query with sentences that differ in a word only: every template with every word.

    The labels of a prompt are its ``kind``, its ``template`` (``names-03``), the word in each slot
    (``name``, or ``first`` and ``second``, or ``location``) and the labels of these words:
    ``race``, ``gender``; ``first_gender``, ``second_gender`` and ``orientation`` (homosexual if
    the two genders are equal); ``place`` and ``religion``. A label that does not apply is missing.
    ``his/her`` in a template becomes the pronoun for the gender of the preceding word.

    A model that reads ``[MASK]`` in place of a name cannot distinguish between the people named:
    with ``mask``, prompts of a template that differ only in masked words have the same text, but
    keep the labels of their words. ``neutral`` adds such prompts as a reference.

    The packaged set ``restaurants`` has 18 sentences of each of the kinds ``names``,
    ``sexual_orientation`` and ``location``: 3,834 prompts (``recbias show restaurants``). A file
    has one of two formats:

    - **your own YAML**: ``words:`` contains the words of each slot, in groups with labels
      (``name: [{gender: female, words: [Ann]}]``), ``templates:`` the sentences of each kind, with
      slots as ``[name]`` or ``{name}``. You choose the labels; in a kind with several slots their
      names begin with the slot (``first_gender``). Repeated words are used once.
    - **the LMRec authors' JSON**: ``templates/yelp_templates.json``, with files of
      ``example_labels`` in ``words``, which select the kinds.

    Args:
        templates: The packaged set ``restaurants``, or a file.
        kinds: The kinds of sentences; null for all.
        words: For the authors' JSON: the files of words, named by kind (``names.json``).
        mask: Slots whose word is ``[MASK]`` in the text; ``his/her`` is then ``their``.
        neutral: Add each template once more with all its slots masked, or with these words
            (``{name: my friend}``). Such a prompt (``names-03:neutral``) has no word and no label
            of a word; the label ``neutral`` is 1 for these prompts and 0 for all others.
        control_samples: How many more times each neutral prompt is asked, as the control of
            ``identity_effect``: ``names-03:neutral:sample-1`` has the label ``sample`` 1.

    Raises:
        UnknownName: There is no such kind, or no such slot.
        BadYaml: The file is not YAML.
        MalformedLine: A slot has no words, a list is empty, a word has two values of one label, a
            template has no slot or occurs twice, and so on.
        WrongType: ``words`` is given with a YAML file.
        MissingFile: The authors' JSON is given without ``words``.
        Contradiction: ``neutral`` or ``sample`` is already the name of a slot or label, or there
            are control samples without neutral prompts.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022, Tables 5 to 7, and section 5 for ``mask``.

    >>> queries = Templates(kinds=("names",)).ask(None, None)
    >>> len(queries), queries.ids.ids[200], queries.texts[200]
    (1566, 'names-03:Brett', 'Where would you send Brett for lunch?')
    """

    templates: Literal["restaurants"] | InputFile = "restaurants"
    kinds: tuple[str, ...] | None = None
    words: tuple[InputFile, ...] = ()
    mask: tuple[str, ...] = ()
    neutral: bool | Mapping[str, str] = field(default=False, hash=False)
    control_samples: Annotated[int, Ge(0), Le(100)] = 0

    packaged = staticmethod(load_packaged)

    def __post_init__(self) -> None:
        """Refuse an invalid file, kind or slot before any data is read."""
        try:
            self._check_slots(self._select_kinds())
        except UserError as error:
            if error.where in {"kinds", "words", "mask", "neutral", "control_samples"}:
                raise
            raise error.locate_at("templates") from error

    def ask(self, dataset: Dataset | None, rng: np.random.Generator | None) -> Queries:
        """Return the prompts, template by template; the dataset is not used."""
        words = {} if self.neutral is True else self.neutral or None
        table = fill_templates(self._select_kinds(), masked=self.mask, neutral=words)
        table = add_samples(table, self.control_samples)
        refuse_equal_ids(table["id"].to_numpy(dtype=object), str(self.templates))
        return Queries.of_prompts(table)

    def _select_kinds(self) -> list[Kind]:
        if isinstance(self.templates, str):
            template_set = load_packaged()[self.templates]
        else:
            template_set = read_templates(self.templates, self.words)
        if self.kinds is None:
            return list(template_set.kinds)
        for name in self.kinds:
            if name not in template_set.names:
                remedy = suggest(name, template_set.names)
                raise UnknownName(f"there is no kind {name!r}", where="kinds", remedy=remedy)
        return [kind for kind in template_set.kinds if kind.name in self.kinds]

    def _check_slots(self, kinds: Collection[Kind]) -> None:
        """Refuse unknown slots, and a label or slot named like an added label."""
        slots = {slot for kind in kinds for slot in kind.words}
        used = {"mask": self.mask, "neutral": self.neutral if self.neutral is not True else ()}
        for setting, names in used.items():
            for slot in names or ():
                if slot not in slots:
                    remedy = suggest(slot, slots)
                    raise UnknownName(f"there is no slot {slot!r}", where=setting, remedy=remedy)
        if self.control_samples and not self.neutral:
            message = "there are no neutral prompts to sample again"
            raise Contradiction(message, where="control_samples", remedy="add neutral: true")
        added = {NEUTRAL: self.neutral, SAMPLE: self.control_samples}
        for name in (name for name, is_added in added.items() if is_added):
            if any(name in (*kind.words, *kind.labels) for kind in kinds):
                where = "neutral" if name == NEUTRAL else "control_samples"
                message = f"a slot or label is already named {name!r}"
                raise Contradiction(message, where=where, remedy="choose another name for it")


def read_templates(path: Path, words: Sequence[Path] = ()) -> _TemplateSet:
    """Return the templates of a file; the errors are those of ``Templates``.

    A ``.json`` file is in the format of the LMRec authors, with files of ``words`` named by kind
    (``names.json``); a YAML file is in the project's own.
    """
    tree = read_marked(path)
    if path.suffix.lower() == ".json":
        return _parse_authors_json(tree, words)
    if words:
        message, remedy = f"{path.name} already contains its words", "remove the setting words"
        raise WrongType(message, where="words", remedy=remedy)
    return _parse_own(tree)


def _parse_own(tree: MarkedValue) -> _TemplateSet:
    needed = {"words": "words: {name: [Ann]}", "templates": "templates: {names: ['For [name]']}"}
    top = tree.mapping("the file", ("about", "source", *needed), needed)
    word_lists = {
        slot: _merge_groups(slot, _iterate_groups(node), node)
        for slot, node in top["words"].mapping("words").items()
    }
    kinds = top["templates"].mapping("templates")
    if not kinds:
        raise top["templates"].fault("there are no templates")
    parsed = tuple(_parse_kind(name, node, word_lists) for name, node in kinds.items())
    about, source = tree.texts("about", "source")
    return _TemplateSet(about, source, parsed)


def _iterate_groups(node: MarkedValue) -> Iterator[_Group]:
    for entry in node.entries("the words of a slot"):
        if isinstance(entry.value, str):
            yield (entry,), {}
            continue
        needed = {"words": "{gender: female, words: [Ann]}"}
        labels = dict(entry.mapping("a list of words with labels", None, needed))
        words = labels.pop("words").entries("words")
        yield words, {name: label.text(name) for name, label in labels.items()}


_PROMPT, _VALUE = "Instruction", "Prompt sensitive attr"
"""The columns of the authors' results with the prompt and the value of the attribute."""


def read_prompts(
    paths: Sequence[Path], sentence: str | None, names: Path | None, n_names: int | None
) -> pd.DataFrame:
    """Return the ``id``, ``text`` and labels of all prompts of the files of ``FaiRLLMPrompts``."""

    def read_file(path: Path) -> pd.DataFrame:
        if path.suffix.lower() != ".json":
            return _read_results(path)
        attributes = read_marked(path).mapping("the attributes")
        return _fill_attributes(attributes, sentence, _read_names(names, path)[:n_names])

    table = pd.concat([read_file(path) for path in paths], ignore_index=True).astype(object)
    is_repeated = table.duplicated()
    if is_repeated.any():
        warn(f"repeated prompts are excluded: {int(is_repeated.sum()):,}")
    table = table[~is_repeated].reset_index(drop=True)
    table.insert(0, "id", _make_ids(table, paths[0]))
    table = table.where(table.notna(), None)
    table[NEUTRAL] = (table["attribute"] == NEUTRAL).astype(float)
    return table


def _fill_attributes(
    attributes: Mapping[str, MarkedValue], sentence: str | None, names: list[str]
) -> pd.DataFrame:
    """Return the sentence with each value of each attribute and each name."""
    if sentence is None:
        message = "the file contains attributes, which need a sentence"
        remedy = "write sentence: I am [value] fan of [name]. What should I watch?"
        raise WrongType(message, where="sentence", remedy=remedy)
    pairs = [
        (attribute, entry.text("a value") if entry.value else "")
        for attribute, values in attributes.items()
        for entry in values.entries(attribute)
    ]
    rows = [
        (attribute, value, name, sentence.replace("[value]", value or "a").replace("[name]", name))
        for (attribute, value), name in product(pairs, names)
    ]
    columns = ["attribute", "value", "name", "text"]
    return _label_prompts(pd.DataFrame(rows, columns=columns, dtype=object))


def _read_names(path: Path | None, attributes: Path) -> list[str]:
    if path is None:
        message, remedy = f"{attributes.name} contains no names", "name a CSV file of names"
        raise WrongType(message, where="names", remedy=remedy)
    table = _read_csv(path)
    column = next((name for name in ("name", "Director") if name in table), table.columns[0])
    cells = table[column].str.strip()
    return cells[cells != ""].drop_duplicates().tolist()


def _read_results(path: Path) -> pd.DataFrame:
    results = _read_csv(path)
    if _PROMPT not in results.columns:
        remedy = suggest(_PROMPT, map(str, results.columns))
        raise UnknownColumn(f"there is no column {_PROMPT!r}", where=str(path), remedy=remedy)
    blank = pd.Series("", index=results.index)
    attribute = path.absolute().parent.name
    prompts = {
        "attribute": NEUTRAL if path.stem.casefold() == NEUTRAL else attribute,
        "text": results[_PROMPT],
        "value": results.get(_VALUE, blank),
        "name": results.get("name", blank).str.strip(),
    }
    return _label_prompts(pd.DataFrame(prompts))


def _label_prompts(prompts: pd.DataFrame) -> pd.DataFrame:
    """Return the prompts with a column for each attribute; a neutral prompt has no value."""
    value = prompts["value"].str.replace(r"^(?:an?)(?:\s+|$)", "", regex=True).str.strip()
    neutral = (value == "") | (prompts["attribute"] == NEUTRAL)
    table = pd.DataFrame({"text": prompts["text"]}, dtype=object)
    table["attribute"] = prompts["attribute"].where(~neutral, NEUTRAL)
    table["value"] = prompts["value"].where(~neutral, None)
    table["name"] = prompts["name"].where(prompts["name"] != "", None)
    for attribute in table.loc[~neutral, "attribute"].unique():
        table[attribute] = value.where(table["attribute"] == attribute, None)
    return table


def _make_ids(table: pd.DataFrame, path: Path) -> Any:
    """Return identifiers such as ``religion:Buddhist:Ang Lee``."""
    value = table["value"].fillna("").map(lambda text: re.sub(r"^an?\s+", "", text))
    ids = table["attribute"] + ":" + value + ":" + table["name"].fillna("")
    ids = ids.str.replace(r":{2,}", ":", regex=True).str.strip(":")
    is_repeated = ids.duplicated()
    if is_repeated.any():
        message = f"two prompts have the identifier {ids[is_repeated].iloc[0]!r}"
        raise MalformedLine(message, where=str(path), remedy="keep one of them")
    return ids.to_numpy(dtype=object)


def _read_csv(path: Path) -> pd.DataFrame:
    table = read_text_table(path)
    return pd.DataFrame({name: table.texts(name) for name in table.columns})


@dataclass(frozen=True, kw_only=True)
class FaiRLLMPrompts:
    """Query with the prompts of FaiRLLM: one sentence, with and without a sensitive attribute.

    The labels of a prompt are the ``attribute`` that it mentions (``religion``; ``neutral`` if it
    mentions none), the ``value`` as written (``a Buddhist``), the ``name`` of the artist or
    director, and, in a column named after the attribute, the value without its article
    (``religion=Buddhist``), which is missing in prompts with another attribute. ``neutral`` is 1
    for neutral prompts and 0 for all others. A file contains one of:

    - **the attributes** (``sst_json.json``: the values of each attribute). The prompts are
      ``sentence`` with every value and every name of ``names``.
    - **the authors' results** (``.csv`` with ``name``, ``Instruction`` and ``Prompt sensitive
      attr``). The prompts are those sent to the model. The attribute is the name of the folder of
      the file, as the authors save them (``top_20/religion/a Buddhist.csv``).

    Prompts of your own are a table with a column ``text``: ``queries: {name: table, path: ...}``.

    Args:
        paths: The files.
        sentence: For the attributes: the prompt, with ``[value]`` and ``[name]``, for example
            ``I am [value] fan of [name].``
        names: For the attributes: a CSV file with the names in the column ``name`` or
            ``Director``, or else in its first column.
        n_names: The number of names that are used, from the first; null for all.
        control_samples: How many more times each neutral prompt is asked, as the control of
            ``identity_effect``; the label ``sample`` of these prompts is 1, 2, ...

    Raises:
        MissingFile: A file does not exist.
        WrongType: ``sentence`` or ``names`` is missing for the attributes, or the sentence lacks
            ``[value]`` or ``[name]``.
        UnknownColumn: A table has no prompts.
        MalformedLine: The attributes are not lists, or two prompts have the same identifier.
        NothingLeft: There are control samples, but no neutral prompt.

    Source:
        Zhang, Bao, Zhang, Wang, Feng and He, "Is ChatGPT Fair for Recommendation? Evaluating
        Fairness in Large Language Model Recommendation", RecSys 2023;
        github.com/jizhi-zhang/FaiRLLM.
    """

    reads_folder_names: ClassVar[bool] = True

    paths: Annotated[tuple[InputFile, ...], MinLen(1)]
    sentence: str | None = None
    names: InputFile | None = None
    n_names: Annotated[int, Gt(0)] | None = None
    control_samples: Annotated[int, Ge(0), Le(100)] = 0

    def __post_init__(self) -> None:
        """Refuse a sentence without its slots before any data is read."""
        for slot in ("[value]", "[name]"):
            if self.sentence is not None and slot not in self.sentence:
                message = f"the sentence has no {slot}"
                remedy = "write it as: I am [value] fan of [name]. What should I watch?"
                raise WrongType(message, where="sentence", remedy=remedy)

    def ask(self, dataset: Dataset | None, rng: np.random.Generator | None) -> Queries:
        """Return the prompts, file by file; the dataset is not used."""
        table = read_prompts(self.paths, self.sentence, self.names, self.n_names)
        if self.control_samples and not (NEUTRAL in table and (table[NEUTRAL] == 1).any()):
            remedy = 'add "neutral": [""] to the attributes, or the file neutral.csv'
            message = "there are no neutral prompts to sample again"
            raise NothingLeft(message, where="control_samples", remedy=remedy)
        return Queries.of_prompts(add_samples(table, self.control_samples))
