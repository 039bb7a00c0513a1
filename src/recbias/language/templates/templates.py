"""Prompts from templates: sentences with slots, filled with labelled words."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import Contradiction, UnknownName, UserError
from recbias.core.protocols import InputFile
from recbias.core.queries.queries import Queries
from recbias.core.suggestions import suggest
from recbias.language.templates.template_files import packaged, read_templates
from recbias.language.templates.template_sets import (
    NEUTRAL,
    Kind,
    TemplateSet,
    filled,
    refuse_equal_ids,
)


@dataclass(frozen=True, kw_only=True)
class Templates:
    """Ask with sentences in which only a word changes: every template with every word.

    A prompt carries as labels its ``kind``, its ``template`` (``names-03``), the word in each slot
    (``name``, or ``first`` and ``second``, or ``location``) and what is known of the words:
    ``race``, ``gender``; ``first_gender``, ``second_gender`` and ``orientation`` (homosexual where
    the two genders are equal); ``place`` and ``religion``. A label that does not apply is missing.
    ``his/her`` in a template becomes the pronoun that fits the word before it.

    A model that reads ``[MASK]`` for a word cannot treat it by who is named: ``mask`` asks so, the
    labels staying those of the word, and all prompts of a template that differ in masked words
    only have the same text. ``neutral`` adds what such a model answers as a reference beside the
    prompts with words.

    The packaged set ``restaurants`` has 18 sentences of each of the kinds ``names``,
    ``sexual_orientation`` and ``location``: 3,834 prompts (``recbias show restaurants``). A file
    is one of three:

    - **YAML of your own**: ``words:`` holds the words of each slot, in groups with labels
      (``name: [{gender: female, words: [Ann]}]``), ``templates:`` the sentences of each kind, with
      slots as ``[name]`` or ``{name}``. Labels are of your choosing; where a kind has several
      slots they are called ``first_gender``. A word that stands twice counts once.
    - **the YAML of the LMRec paper**, with ``templates:`` and ``substitutions:``.
    - **the LMRec authors' JSON**: ``templates/yelp_templates.json``, and in ``words`` the files of
      ``example_labels`` for the kinds wanted.

    Args:
        templates: The packaged set ``restaurants``, or a file.
        kinds: Which kinds of sentences; null for all.
        words: For the authors' JSON: the files of words, each named by its kind (``names.json``).
        mask: Slots whose word is ``[MASK]`` in the text; ``his/her`` is then ``their``.
        neutral: Ask each template also once with all its slots masked. Such a prompt
            (``names-03:neutral``) has no word and no label of one; the label ``neutral`` is 1 for
            it and 0 for the others.

    Raises:
        UnknownName: There is no such kind, or no such slot.
        BadYaml: The file is not YAML.
        MalformedLine: A slot has no words, a list is empty, a word has two values of one label, a
            template has no slot or stands twice, and so on.
        WrongType: ``words`` is given beside a YAML.
        MissingFile: The authors' JSON is given without ``words``.

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
    neutral: bool = False

    def __post_init__(self) -> None:
        """Refuse a file or a kind that is at fault, before any data is read."""
        try:
            self._check_slots(self._chosen())
        except UserError as error:
            if error.where in {"kinds", "words", "mask", "neutral"}:
                raise
            raise type(error)(str(error), where="templates", remedy=error.remedy) from error

    def ask(self, dataset: Dataset | None, rng: np.random.Generator | None) -> Queries:
        """Return the prompts, template by template; nothing of the dataset is used."""
        table = filled(self._chosen(), masked=self.mask, neutral=self.neutral)
        ids = table.pop("id").to_numpy(dtype=object).copy()
        refuse_equal_ids(ids, str(self.templates))
        texts = table.pop("text").to_numpy(dtype=object)
        prompts = Vocabulary(ids)
        users = np.full(ids.size, -1, dtype=np.int32)
        return Queries(prompts, Attributes(prompts, table, "query"), users, texts, "prompt")

    def _chosen(self) -> list[Kind]:
        found = self._set()
        if self.kinds is None:
            return list(found.kinds)
        for name in self.kinds:
            if name not in found.names:
                remedy = suggest(name, found.names)
                raise UnknownName(f"there is no kind {name!r}", where="kinds", remedy=remedy)
        return [each for each in found.kinds if each.name in self.kinds]

    def _check_slots(self, kinds: Collection[Kind]) -> None:
        """Refuse slots that no sentence has, and labels that are called like the one added."""
        slots = {slot for kind in kinds for slot in kind.words}
        for slot in self.mask:
            if slot not in slots:
                remedy = suggest(slot, slots)
                raise UnknownName(f"there is no slot {slot!r}", where="mask", remedy=remedy)
        if self.neutral and any(NEUTRAL in (*kind.words, *kind.labels) for kind in kinds):
            found = f"a slot or label is called {NEUTRAL!r} already"
            raise Contradiction(found, where="neutral", remedy="give it another name")

    def _set(self) -> TemplateSet:
        if isinstance(self.templates, str):
            return packaged()[self.templates]
        return read_templates(self.templates, self.words)

    @staticmethod
    def packaged() -> dict[str, TemplateSet]:
        """Return the sets that come with the package, by name."""
        return packaged()
