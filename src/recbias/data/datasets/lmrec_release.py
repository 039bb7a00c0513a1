"""The LMRec authors' release: what their model recommended to sentences that differ in a word."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import MinLen

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MissingEvidence, MissingFile
from recbias.core.input_files import has_file
from recbias.core.protocols import InputFile
from recbias.core.queries.queries import Queries
from recbias.core.suggestions import suggest
from recbias.data.datasets.dataset_folder import present
from recbias.data.datasets.lmrec_outputs import kind_of, read_outputs
from recbias.data.datasets.lmrec_sentences import sentences_of
from recbias.formats.tables import named_file

NAME = "lmrec-release"
OUTPUTS = Path("data", "bias_analysis", "yelp", "output_dataframes")
TEXT, LIST, SEPARATOR = "text", "recommended", "\x1f"
"""Columns of the users with each sentence and its list, and what stands between its items."""

City: TypeAlias = Literal[
    "Atlanta", "Austin", "Boston", "Cambridge", "Columbus", "Orlando", "Portland", "Toronto"
]
SUFFIXES = {"5f": "_5f", "first": "", "neutralized": "_Neutralized"}


@dataclass(frozen=True, kw_only=True)
class LMRecRelease:
    """LMRec authors' release: what their model recommended in a city to each input sentence.

    Users are the input sentences, called like the prompts of ``templates``
    (``names-01:Allison``), with their text and labels; items are the businesses, with ``name``,
    ``price`` (``$`` to ``$$$$``), ``price_level`` (1 to 4), ``categories`` (``A|B``) and
    ``stars``. There are no interactions. Ask with ``queries: lmrec-release`` and measure the
    authors' lists with the model ``lmrec_lists``; name a dataset for each city to have them all.

    An item is called by its name, with a number behind it (``Bell Street Burritos (2)``) only
    where a name stands for several businesses: they differ in stars, price or categories, or
    stand in one list. A sentence stands in the files once for each label and is one query here,
    with all its labels; a list that stands twice counts once.

    Args:
        city: Whose outputs are read.
        kinds: The sentences: ``names``, ``relationships``, ``pairrelationships``, ``age``,
            ``occupations``, ``additionalOccupations`` and others, as the files are named.
        outputs: Which of the authors' outputs: ``5f``, those of the last version; ``first``; or
            ``neutralized``, with neutralised test sentences.
        path: A file ``yelp_qa_<kind>.csv`` that lies elsewhere; ``city``, ``kinds`` and
            ``outputs`` do not count then.
        folder: The folder below the data folder.

    Raises:
        MissingFile: The files are not there; ``recbias data fetch lmrec-release`` gets them.
        UnknownColumn: A file lacks a column.
        MalformedLine: A price is no level, a rank is missing, or a sentence has two lists.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022; github.com/TinaBBB/Unintended-Bias-LMRec.
    """

    city: City = "Boston"
    kinds: Annotated[tuple[str, ...], MinLen(1)] = ("names",)
    outputs: Literal["5f", "first", "neutralized"] = "5f"
    path: InputFile | None = None
    folder: str = NAME

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"users", "items"})

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        if self.path is not None:
            return [named_file(self.path)]
        home = data / self.folder / OUTPUTS
        if not home.is_dir():
            present([home / f"yelp_qa_{self.kinds[0]}.csv"], fetch=NAME)
        folder = home / f"{self.city}_output_dataframes{SUFFIXES[self.outputs]}"
        return [self._file(folder, kind) for kind in dict.fromkeys(self.kinds)]

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        read = read_outputs(self.files(data))
        sentences = sentences_of(read.rows)
        ids = Vocabulary(sentences.pop("id").to_numpy(dtype=object).copy())
        items = read.items.ids
        names = pd.Series(items.ids[read.places["item"].to_numpy()])
        lists = names.groupby(read.places["input_sentence"].to_numpy()).agg(SEPARATOR.join)
        sentences[LIST] = sentences[TEXT].map(lists)
        none = np.empty(0, dtype=np.int32)
        rows = Interactions(none, none.copy(), np.empty(0, dtype=np.float32), None, ids, items)
        return Dataset(rows, Attributes(ids, sentences, "user"), read.items)

    def _file(self, folder: Path, kind: str) -> Path:
        path = folder / f"yelp_qa_{kind}.csv"
        if has_file(path):
            return path
        found = f"there are no outputs of the kind {kind!r} as CSV"
        if path.with_suffix(".xlsx").is_file():
            remedy = f"save {path.stem}.xlsx as CSV beside it"
        elif folder.is_dir():
            remedy = suggest(kind, [kind_of(each) for each in folder.glob("yelp_qa_*.csv")])
        else:
            found = f"there are no such outputs of {self.city}"
            remedy = suggest(folder.name, [each.name for each in folder.parent.iterdir()])
        raise MissingFile(found, where=str(path), remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class LMRecSentences:
    """Ask with the input sentences of the dataset ``lmrec-release``, each once.

    Labels are those of ``templates``: ``kind``, ``template``, the words (``name``; ``first`` and
    ``second``; ``location``; ``word`` for other kinds), and ``race``, ``gender``;
    ``first_gender``, ``second_gender``, ``orientation``; ``place``, ``religion``; ``age``. The
    template is what is left of a sentence without its words; templates are numbered in the order
    of the file.

    Raises:
        MissingEvidence: The dataset is another one.
    """

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return a query for each sentence, in the order of the files."""
        table = dataset.users
        if table is None or not {TEXT, LIST} <= set(table.names):
            remedy = f"name the dataset {NAME}, or ask otherwise"
            raise MissingEvidence("the dataset has no input sentences", remedy=remedy)
        texts = table.frame[TEXT].to_numpy(dtype=object)
        labels = Attributes(table.ids, table.frame.drop(columns=[TEXT, LIST]), "query")
        nobody = np.full(len(table.ids), -1, dtype=np.int32)
        return Queries(table.ids, labels, nobody, texts, "prompt")
