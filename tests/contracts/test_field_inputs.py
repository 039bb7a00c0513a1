"""Files as people have them: read rightly and said, or refused with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recbias import api
from recbias.core.errors import UserError

PAIRS = "user_id,item_id\n"
TIMES = "user_id,item_id,timestamp\n"
RANKS = "user_id,item_id,rank\n"
SCORES = "user_id,item_id,score\n"


class Case(NamedTuple):
    """Files, what is said, the value or None for an error, and the parts of a spec."""

    name: str
    files: dict[str, str]
    says: tuple[str, ...]
    value: float | None
    parts: dict[str, Any]


def case(
    name: str, files: dict[str, str], *says: str, value: float | None = None, **parts: Any
) -> Case:
    return Case(name, files, says, value, parts)


# relevance judgements: the first relevant item of each query is the second of its list
QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\nq2 0 d1 0\n"
RUN = "q1 Q0 d2 1 .9 x\nq1 Q0 d1 2 .8 x\nq2 Q0 d1 1 .9 x\nq2 Q0 d3 2 .8 x\n"
NUMBERED = str.maketrans("", "", "qd")


def qrels(name: str, text: str, *says: str, run: str = RUN) -> Case:
    train = "q1,x\nq2,y\nq1,y\nq2,x\n".translate(NUMBERED if "q" not in text else {})
    files = {"train.csv": PAIRS + train, name: text, "run.trec": run}
    split, lists = {"train": "train.csv", "test": name}, {"path": "run.trec"}
    return case(name, files, *says, value=0.5, metric="MRR", split=split, lists=lists)


AS_QRELS = "was read as qrels, query_id 'q1', iteration '0', item_id 'd1', grade '2'"
JUDGEMENTS = [
    qrels("ok.qrels", QRELS),
    qrels("blanks.tsv", QRELS, AS_QRELS),
    qrels("tabs.tsv", QRELS.replace(" ", "\t"), AS_QRELS),
    qrels(
        "numbers.tsv",
        QRELS.translate(NUMBERED).replace(" ", "\t"),
        "was read as qrels, query_id '1'",
        run=RUN.replace("Q", "#").translate(NUMBERED).replace("#", "Q"),
    ),
]


def recbole(rows: str) -> str:
    header = "user_id:token|item_id_list:token_seq|item_id:token\n"
    return (header + rows).replace("|", "\t")


HISTORIES = {
    "s.train.inter": recbole("7|11 12|13\n8|13|11\n"),
    "s.test.inter": recbole("7|11 12 13|14\n8|13 11|12\n"),
}
WRITTEN_OUT = {
    "train.csv": f"{PAIRS}7,11\n7,12\n7,13\n8,13\n8,11\n",
    "test.csv": f"{PAIRS}7,14\n8,12\n",
}

RANKED = {
    "train.csv": f"{PAIRS}u,h\nv,t\nv,x2\nv,x3\n",
    "test.csv": f"{PAIRS}u,t\n",
    "run.tsv": "u\tt\t1\nu\tx2\t2\nu\tx3\t3\n",
}


def ranked(order: str, value: float | None, *says: str) -> Case:
    lists = {"path": "run.tsv", "order": order}
    return case(f"order {order}", RANKED, *says, value=value, metric="MRR", lists=lists)


SEQUENCES = [
    case(
        "histories",
        HISTORIES,
        "the histories in the column 'item_id_list' would be lost",
        split={"train": "s.train.inter", "test": "s.test.inter"},
    ),
    case("pairs", WRITTEN_OUT, value=0.5),
    ranked("auto", None, "score 1", "order: rank", "order: score"),
    case(
        "ranks with gaps",
        {**RANKED, "run.tsv": "u\tt\t1\nu\tx2\t3\nu\tx3\t4\n"},
        "its numbers count up in each list, as ranks do, or scores",
        metric="MRR",
        lists={"path": "run.tsv"},
    ),
    case(
        "scores that rise",
        {**RANKED, "run.tsv": "u\tx2\t0.2\nu\tt\t0.7\n"},
        value=1.0,
        metric="MRR",
        lists={"path": "run.tsv"},
    ),
    ranked("rank", 1.0),
    ranked("rows", 1.0),
    ranked("score", 1 / 3),
    case(
        "scores that fall",
        {**RANKED, "run.tsv": "u\tt\t3\nu\tx2\t2\nu\tx3\t1\n"},
        "run.tsv was read as elliot; query 'u', item 't', score 3",
        value=1.0,
        metric="MRR",
        lists={"path": "run.tsv"},
    ),
]


def spelled(item: str, known: str) -> Case:
    files = {
        "train.csv": f"{PAIRS}u,h\nv,{known}\nv,z\n",
        "test.csv": f"{PAIRS}u,{known}\n",
        "l.csv": f"{RANKS}u,{item},1\n",
    }
    says = ("none of the 1 items of l.csv", f"{item!r} is written {known!r} there")
    return case(f"item {item} for {known}", files, *says, lists={"path": "l.csv"})


def joined(cell: str) -> Case:
    """Return a training file of which one cell has several items."""
    train = f'{PAIRS}7,"{cell}"\n8,13\n8,11\n9,14\n'
    says = "train.csv: 1 of 4 items may be several in one cell"
    files = {"train.csv": train, "test.csv": f"{PAIRS}8,14\n9,11\n"}
    return case(f"several ids: {cell}", files, says, value=1.0)


def unlike(item: str) -> Case:
    """Return a training file of which one item is no whole number as the others are."""
    files = {"train.csv": f"{PAIRS}1,{item}\n1,11\n2,12\n", "test.csv": f"{PAIRS}2,11\n"}
    says = "train.csv: 1 of 3 items may stand for no value, or for a number in another form"
    return case(f"unlike the others: {item!r}", files, says, value=1.0)


CLICKS = f"{PAIRS}1,7\n2,8\n1,9\n"
IDS = [
    *map(spelled, ("0t", "t", "1", "1.0", "T", " t", "t.0"), ("t", "0t", "001", "001", *"ttt")),
    case(
        "users of the test file",
        {"train.csv": CLICKS, "test.csv": f"{PAIRS}01,8\n02,7\n"},
        "split: test.csv: none of the 2 users",
        "'01' is written '1' there: 2 of 2",
    ),
    case(
        "items of the test file",
        {"train.csv": CLICKS, "test.csv": f"{PAIRS}1,08\n2,07\n"},
        "split: test.csv: none of the 2 items",
        "'07' is written '7' there",
    ),
    case(
        "users of another table",
        {"u.csv": "user_id,sex\n01,F\n02,M\n", "train.csv": CLICKS, "test.csv": f"{PAIRS}1,8\n"},
        "split: train.csv: none of the 2 users",
        "'1' is written '01' there",
        dataset={"users": "u.csv"},
    ),
    case(
        "users of the same dataset",
        {"u.csv": "user_id,sex\n01,F\n02,M\n", "i.csv": CLICKS},
        "dataset: u.csv: none of the 2 users",
        dataset={"users": "u.csv", "interactions": "i.csv"},
        split={"name": "random"},
    ),
    case(
        "swapped columns of the test file",
        {"train.csv": CLICKS, "test.csv": f"{PAIRS}8,1\n7,2\n"},
        "its columns of users and items look swapped",
    ),
    *(joined(cell) for cell in ("11,12", "['11', '12']", "11|12", "[11 12]")),
    case(
        "several text ids in a cell",
        {"train.csv": f'{PAIRS}u,a\nu,b\nv,c\nw,"a,b"\n', "test.csv": f"{PAIRS}u,c\n"},
        "train.csv: 1 of 4 items may be several in one cell",
        value=1.0,
    ),
    *(unlike(item) for item in ("1e1", "NULL", "nan", "-1", "10.0", "'10'", "\u200b10", "１０")),
    case(
        "several items in a cell of a list",
        {"train.csv": CLICKS, "test.csv": f"{PAIRS}1,8\n", "l.csv": f'{RANKS}1,8,1\n1,"7,9",2\n'},
        "l.csv: 1 of 2 items may be several in one cell: '7,9'; write each into a row of its own",
        value=1.0,
        lists={"path": "l.csv"},
    ),
    case(
        "one item of two",
        {"train.csv": CLICKS, "test.csv": f"{PAIRS}1,8\n", "l.csv": f"{RANKS}1,8,1\n1,07,2\n"},
        "1 of 2 items are not in the dataset: '07' is written '7' there",
        value=1.0,
        lists={"path": "l.csv"},
    ),
]

RATED = "user_id,item_id,rating\n1,10,5\n1,11,4\n2,10,3\n"
HELD_OUT = f"{PAIRS}2,11\n"
AMAZON = '{"reviewerID": "A", "asin": "1"}\n{"reviewerID": "B", "asin": "2"}\n'


def rated(name: str, text: str, *says: str, value: float | None = None) -> Case:
    files = {name: text, "test.csv": HELD_OUT}
    return case(name, files, *says, value=value, split={"train": name, "test": "test.csv"})


def marked(mark: str) -> str:
    return RATED.replace(",", mark)


TABLES = [
    rated("a.csv", marked(";"), "a.csv: the cells are separated by semicolons", value=1.0),
    rated("b.csv", marked("|"), "separated by vertical bars", value=1.0),
    rated("c.csv", marked("\t"), "separated by tabs", value=1.0),
    rated("d.csv", marked(" "), "split: d.csv:1: the cells are separated by blanks", "by commas"),
    rated("e.csv", "3,1,2.89,1\n3,2,2,1\n", "does not name the columns: '3,1,2.89,1'"),
    rated("f.csv", "ana,t\nben,x\n", "no column 'user_id'", "if this is a row, write the names"),
    rated("g.inter", marked("\t"), value=1.0),
    rated("h.inter", marked("  "), "the cells are separated by blanks", "by tabs"),
    rated("i.csv", AMAZON, "is JSON, not a table", "pandas.read_json"),
    rated("j.jsonl", AMAZON, "no column 'user_id' and", "{reviewerID: user_id, asin: item_id}"),
    rated("k.json", AMAZON, "one JSON object a line", "pandas.read_json"),
    rated("l.tsv", '1\t"10\t5\n1\t11\t4\n2\t"10\t3\n', "as elliot", "item_id '\"10'", value=1.0),
    rated("n.csv", "1::10::5\n1::11::4\n", "does not name the columns: '1,10,5'"),
    rated("o.csv", marked("::"), "separated by double colons", value=1.0),
    rated("p.csv", RATED.replace("\n", "\r"), "its lines end in CR only"),
    rated("q.csv", "user_id,items\n1,10\n", "by columns: {items: item_id}"),
    rated("r.csv", "user_id, item_id\n1, 10\n", "by columns: {' item_id': item_id}"),
    rated("m.tsv", 'user_id\titem_id\n1\t"10\n1\t11\n2\t"10\n', value=1.0),
]

EQUAL_RANKS = {"train.csv": f"{PAIRS}ana,x\nbo,c\nbo,d\n", "test.csv": f"{PAIRS}ana,d\n"}


def equal_ranks(name: str, run: str, value: float) -> Case:
    files = {**EQUAL_RANKS, "r.trec": run}
    says = "the ranks of each list are equal"
    return case(name, files, says, value=value, metric="MRR", lists={"path": "r.trec"})


GCN = {"train": "train.txt", "test": "test.txt"}
LIGHTGCN = {"train.txt": "0 0 1 2\n1 0 2 3\n2 0 3 4\n", "test.txt": "0 0 4 5\n1 0 1 5\n2 0 1 5\n"}
MASKED = {"train.csv": f"{PAIRS}u,a\nu,b\nv,a\nv,c\nw,a\n", "test.csv": f"{PAIRS}u,c\nw,c\n"}


def masked(name: str, filler: str, mask: str = "-3.4028235e+38") -> Case:
    """Return lists padded with the most popular item or with -1: only c and b are recommended."""
    rows = f"u,c,1.5\nu,{filler},{mask}\nw,c,1\nw,b,.5\nw,-1,-inf\n"
    files = {**MASKED, "l.csv": SCORES + rows}
    says = "l.csv: 2 rows are excluded as masks"
    return case(name, files, says, value=1.0, metric="ARP", lists={"path": "l.csv"})


JSON_RANKS = '{"u": {"c": 1, "b2": 2}, "w": {"c": 1, "b": 2}}'


def scored(
    name: str, file: str, text: str, value: float | None, *says: str, order: str = "auto"
) -> Case:
    """Return lists of u and w, whose relevant item is c."""
    lists = {"path": file, "order": order}
    return case(name, {**MASKED, file: text}, *says, value=value, metric="MRR", lists=lists)


TOOLS = [
    equal_ranks("by score", "ana Q0 c 0 1.7 beir\nana Q0 d 0 1.9 beir\n", 1.0),
    equal_ranks("equal scores", "ana Q0 c 0 1 x\nana Q0 d 0 1 x\nana Q0 b 0 1 x\n", 1.0),
    case(
        "LightGCN or qrels",
        LIGHTGCN,
        "split: train.txt:1: its first line can be read as qrels, query_id '0'",
        "or as lightgcn, user '0' with the items '0', '1', '2'",
        "set layout: qrels or layout: lightgcn",
        split=GCN,
    ),
    # as qrels the judged items are 4, 1 and 1; item 4 has the training row of user 2 only
    case("chosen qrels", LIGHTGCN, value=2 / 3, split={**GCN, "layout": "qrels"}),
    case("chosen lightgcn", LIGHTGCN, "('0', '0')", split={**GCN, "layout": "lightgcn"}),
    case(  # user 0 lacks item 3; of user 1's, item 1 is more popular than 3
        "LightGCN",
        {"train.txt": "0 1 2\n1 2\n2 1 3\n", "test.txt": "0 3\n1 3\n"},
        "train.txt was read as lightgcn, user '0' with the items '1', '2'",
        value=0.5,
        split=GCN,
        k=1,
    ),
    case(
        "ratings with times",
        {"train.txt": "0 32 4 978824330\n0 34 4 978824330\n1 4 5 978824268\n",
         "test.csv": f"{PAIRS}0,4\n"},
        "as elliot, user_id '0', item_id '32', rating '4', timestamp '978824330'",
        value=1.0,
        split={"train": "train.txt", "test": "test.csv"},
    ),
    masked("seen items", "a"),
    masked("padding", "-1"),
    *(masked(f"mask {mask}", "a", mask) for mask in ("-1e10", "-1e9", "-65504", "-1e30")),
    case(
        "another mask",
        {**MASKED, "l.csv": f"{SCORES}u,c,1.5\nu,a,-9999\nw,c,1\nw,b,.5\n"},
        "if the score -9999 masks an item, leave out the rows that have it",
        lists={"path": "l.csv"},
    ),
    scored("json", "l.json", JSON_RANKS, None, "count up in each list", "set order: rank"),
    scored("json ranks", "l.json", JSON_RANKS, 1.0, order="rank"),
    scored("json scores", "l.json", JSON_RANKS, 0.5, order="score"),
    scored("scores from 1", "l.csv", f"{SCORES}u,c,1\nu,b2,2\nw,c,1\nw,b,2\n", 0.5,
           "count up in each list, as ranks do: if they are ranks, columns: {score: rank}"),
    scored("TREC with CR LF, tabs and a mark of order", "l.run",
           "\ufeffu\tQ0\tc\t0\t9e-1\tx\r\nw\tQ0\tc\t0\t.8\tx\r\n", 1.0),
    scored("an index of pandas", "l.csv", ",item,score,user,rank\n0,c,.9,u,1\n1,c,.9,w,1\n", 1.0,
           "user is the query_id"),
]  # fmt: skip


def timed(name: str, *times: int, at: int | str, says: str) -> Case:
    rows = "".join(f"u{row % 2},i{row},{time}\n" for row, time in enumerate(times))
    split = {"name": "temporal", "at": at}
    return case(
        name, {"i.csv": TIMES + rows}, says, dataset={"interactions": "i.csv"}, split=split
    )


PARTS = {"train.csv": f"{PAIRS}u,a\nv,b\nu,c\n", "test.csv": f"{PAIRS}u,b\nv,a\n"}
CONTENT = [
    *(
        case(
            f"{name} without a table",
            PARTS,
            f"dataset.{name}: has no effect: the dataset has no table that it acts on",
            dataset={name: value},
        )
        for name, value in (
            ("missing", ["NA"]),
            ("bad_lines", "skip"),
            ("columns", {"userId": "user_id"}),
            ("layout", "elliot"),
        )
    ),
    timed("milliseconds", 1600000000017, 1605484800017, at="2020-11-15",
          says="dataset: i.csv:2: the timestamp '1600000000017' is not in seconds since 1970: "
               "are these milliseconds?"),
    timed("dates", 20201001, 20201116, at="2020-11-15", says="is this the date 2020-10-01?"),
    timed("a date as cut", 1600000000, 1605484800, at=20201115,
          says="split.at: 20201115 is not in seconds since 1970: is this the date 2020-11-15?"),
    case(
        "NaN as text",
        {**PARTS, "u.csv": "user_id,gender\nu,F\nv,NaN\n"},
        "u.csv: gender has the text 'NaN' as a value; missing: [NaN]",
        value=1.0,
        dataset={"users": "u.csv"},
    ),
    case(
        "NA of R",
        {**PARTS, "u.csv": "user_id,gender\nu,F\nv,NA\n"},
        "u.csv: gender has the text 'NA' as a value; missing: [NA]",
        value=1.0,
        dataset={"users": "u.csv"},
    ),
    case(
        "genres with commas",
        {**PARTS, "t.csv": 'item_id,genre\na,"Drama, Romance"\nb,Drama\nc,"Comedy, Drama"\n'},
        "genre may hold several values in a cell",
        'separator: {genre: ","}',
        value=1.0,
        dataset={"items": "t.csv"},
    ),
    case(
        "repeats in the test file",
        {**PARTS, "test.csv": f"{PAIRS}u,b\nu,b\nv,a\n"},
        "test.csv: 1 rows repeat a user and an item and count once",
        value=1.0,
    ),
    case(
        "ratings of 0 in the test file",
        {**PARTS, "test.csv": "user_id,item_id,rating\nu,b,1\nv,a,1\nv,c,0\n"},
        "test.csv: 1 of 3 ratings are 0 or less and count as relevant: least_grade: 1",
        value=1.0,
    ),
]  # fmt: skip

CASES = [*JUDGEMENTS, *SEQUENCES, *IDS, *TABLES, *TOOLS, *CONTENT]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_file_is_read_rightly_or_refused(case: Case, tmp_path: Path) -> None:
    for name, text in case.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def place(part: dict[str, Any]) -> dict[str, Any]:
        return {
            key: str(tmp_path / value) if str(value) in case.files else value
            for key, value in part.items()
        }

    parts = {"split": {"train": "train.csv", "test": "test.csv"}, **case.parts}
    lists = parts.get("lists")
    spec = {
        "name": "field",
        "dataset": {"name": "tables", **place(parts.get("dataset", {}))},
        "split": {"name": "given", **place(parts["split"])},
        "k": parts.get("k", 3),
        "models": [{"name": "lists", **place(lists)} if lists else "MostPop"],
        "metrics": [parts.get("metric", "HR")],
        "report": {"formats": ["csv"]},
    }
    if case.value is None:
        with pytest.raises(UserError) as caught:
            api.run(spec, out=tmp_path / "out", data=tmp_path)
        said = " ".join(caught.value.lines()).replace(f"{tmp_path}/", "")
    else:
        run = api.run(spec, out=tmp_path / "out", data=tmp_path)
        assert run.metrics["value"].tolist() == [pytest.approx(case.value)]
        said = "\n".join(run.manifest["warnings"])
    for part in case.says:
        assert part in said
