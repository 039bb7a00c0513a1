"""The templates of the LMRec study: as its paper's YAML, and as its authors' JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from recbias.core.errors import MissingFile
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.yaml.marked_text import MarkedValue, read_marked
from recbias.language.templates.template_parts import Group, kind_of, kinds_of, word_list
from recbias.language.templates.template_sets import Kind, TemplateSet

PLACEHOLDERS = {"NAME": "name", "1ST RELP": "first", "2ND RELP": "second", "LOCATION": "location"}
"""The slots of the LMRec paper, and what they are called here."""

RELIGIONS = {"church": "christian", "mosque": "muslim", "synagogue": "jewish"}
"""The religion of the religious places of the LMRec paper."""

SLOTS = {"names": ("name",), "relationships": ("first", "second"), "occupations": ("location",)}
"""The slots of the kinds of the LMRec authors' JSON; those of other kinds are called ``word``."""

COLUMNS = {
    **dict.fromkeys(("female", "male"), "gender"),
    **dict.fromkeys(("white", "black"), "race"),
    **dict.fromkeys(("old", "young"), "age"),
}
"""Which label the lists of the authors' JSON are values of; others are values of ``label``."""

SECOND = {
    "female": ("girlfriend", "wife", "fiancee"),
    "male": ("boyfriend", "husband", "fiance"),
}
"""The second words of a couple, as in the authors' sentences; none of their files lists them."""


def of_paper(tree: MarkedValue) -> TemplateSet:
    """Return the templates of the paper's YAML: ``templates`` and ``substitutions``.

    Raises:
        MalformedLine: It is not of that layout.
    """
    top = tree.mapping("the file")
    if "templates" not in top:
        raise tree.fault("there are substitutions, but no templates")
    node = top["substitutions"]
    lists = {slot: word_list(slot, groups, node) for slot, groups in _paper_groups(node).items()}
    kinds = kinds_of(top["templates"], lists, PLACEHOLDERS)
    source = top["source"].mapping("source") if "source" in top else {}
    said = [source[key].text(key) for key in ("authors", "title", "year") if key in source]
    return TemplateSet("The templates of the LMRec paper.", ". ".join(said), kinds)


def _paper_groups(node: MarkedValue) -> dict[str, list[Group]]:
    parts = node.mapping("substitutions")
    found: dict[str, list[Group]] = {}
    if "race_names" in parts:
        races = parts["race_names"].mapping("race_names")
        found["name"] = [
            Group(words.words, {"race": race, **words.labels})
            for race, each in races.items()
            for words in _by_gender(each)
        ]
    if "relationships" in parts:
        couples = parts["relationships"].mapping("relationships", ("first", "second"))
        found |= {slot: list(_by_gender(each)) for slot, each in couples.items()}
    places = [Group((each,), _place(each)) for each in _listed(parts, "locations")]
    places += [
        Group((each,), _place(each) | {"place": "religion"}) for each in _listed(parts, "religion")
    ]
    return {**found, "location": places} if places else found


def _by_gender(node: MarkedValue) -> Iterator[Group]:
    for gender, each in node.mapping("words by gender").items():
        yield Group(each.entries(gender), {"gender": gender})


def _listed(parts: Mapping[str, MarkedValue], name: str) -> tuple[MarkedValue, ...]:
    return parts[name].entries(name) if name in parts else ()


def _place(node: MarkedValue) -> dict[str, str]:
    religion = RELIGIONS.get(node.text("a place"))
    return {"place": "religion", "religion": religion} if religion else {"place": "location"}


def of_json(tree: MarkedValue, words: Sequence[Path]) -> TemplateSet:
    """Return the templates of the authors' JSON, of the kinds that have a file of words.

    Args:
        tree: The sentences of each kind, with ``{}`` for a word.
        words: The words of each kind by label, in a file that is named like the kind.

    Raises:
        MissingFile: There is no file of words.
        MalformedLine: A file is not of that layout.
    """
    templates = tree.mapping("the templates")
    given = {each.stem: read_marked(each) for each in words}
    for name, node in given.items():
        if name not in templates:
            remedy = suggest(name, templates)
            raise node.fault(f"there are no templates of the kind {name!r}", remedy=remedy)
    if not given:
        remedy = "words: [../example_labels/names.json], a file for each kind, named like it"
        raise MissingFile("the templates come without words", where=tree.where, remedy=remedy)
    left = [name for name in templates if name not in given]
    if left:
        warn(f"templates without a file of words are left out: {', '.join(left)}")
    kinds = tuple(_json_kind(name, templates[name], node) for name, node in given.items())
    source = "The LMRec authors' release, https://github.com/TinaBBB/Unintended-Bias-LMRec"
    return TemplateSet("The templates of the LMRec authors' release.", source, kinds)


def _json_kind(name: str, node: MarkedValue, words: MarkedValue) -> Kind:
    slots = SLOTS.get(name, ("word",))
    lists = {slots[0]: word_list(slots[0], _json_groups(words, slots[0]), words)}
    if len(slots) > 1:
        second = [
            Group(tuple(MarkedValue(each, words.where) for each in listed), {"gender": gender})
            for gender, listed in SECOND.items()
        ]
        lists[slots[1]] = word_list(slots[1], second, words)
    return kind_of(name, _with_names(node, slots), lists, {})


def _json_groups(words: MarkedValue, slot: str) -> Iterator[Group]:
    for label, each in words.mapping("the words").items():
        column = COLUMNS.get(label, "label")
        labels = {} if label == "all" else {column: label}
        if slot == "location":
            labels["place"] = "location"
        yield Group(each.entries(label), labels)


def _with_names(node: MarkedValue, slots: tuple[str, ...]) -> MarkedValue:
    """Return templates whose ``{}`` are filled in order with the slots, a pronoun between two."""
    order = [f"[{slots[0]}]", *(["his/her", f"[{slots[1]}]"] if len(slots) > 1 else [])]
    made: list[MarkedValue] = []
    for each in node.entries("the templates"):
        parts = each.text("a template").split("{}")
        if len(parts) != len(order) + 1:
            found = f"{len(parts) - 1} pairs of braces, not {len(order)}: {each.value!r}"
            raise each.fault(found)
        filled = "".join(text + slot for text, slot in zip(parts, [*order, ""], strict=True))
        made.append(MarkedValue(filled, each.where))
    return MarkedValue(tuple(made), node.where)
