"""Each declared dataset is read from a small copy in its publisher's layout."""

from __future__ import annotations

import gzip
import pickle  # noqa: TID251  how a worker process gets a dataset
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Dataset
from recbias.core.errors import MalformedLine, MissingFile
from recbias.data.declared import find_folder, list_declared, read_declaration
from recbias.registry import REGISTRIES


class Copy(NamedTuple):
    """Files of a dataset, and what is read: rows of user, item, value and time, and columns."""

    name: str
    files: dict[str, Any]
    rows: list[tuple[str, str, float, int | None]]
    users: dict[str, list[Any]] | None = None
    items: dict[str, list[Any]] | None = None
    settings: Mapping[str, Any] = MappingProxyType({})


MIND_TRAIN = (
    "1\tU1\t11/11/2019 9:05:58 AM\tN9 N8\tN1-1 N2-0 N3-1\n2\tU2\t11/12/2019 12:00:00 PM\t\tN2-0\n"
)
MIND_DEV = "1\tU2\t11/15/2019 8:55:22 PM\tN1\tN2-1 N1-0\n"
NEWS = (
    "N1\tsports\tgolf\tThe title\tAn abstract\thttps://x\t[]\t[]\n"
    'N2\tnews\tnewsus\t"Quoted" title\t\thttps://y\t[{"Label": "A"}]\t[]\n'
)
REVIEW = (
    '{"rating": 5.0, "title": "Nice", "text": "Good", "images": [], "asin": "B1", "parent_asin": '
    '"P1", "user_id": "AE", "timestamp": 1588687728923, "helpful_vote": 0, "verified_purchase": '
    'true}\n{"rating": 1.0, "title": "No", "text": "Bad", "images": [], "asin": "B2", '
    '"parent_asin": "P2", "user_id": "AF", "timestamp": 1589000000000}\n'
)
META = (
    '{"main_category": "All Beauty", "title": "Oil", "average_rating": 4.8, "rating_number": 10, '
    '"features": [], "description": [], "price": 9.5, "videos": [], "store": "Howard"'
    ', "categories": ["Hair", "Oil|s"], "details": {"UPC": "617"}, "parent_asin": "P1", '
    '"bought_together": null}\n'
    '{"main_category": "Books", "title": "No review", "price": null, "store": null, "categories": '
    '[], "parent_asin": "P9"}\n'
)
LASTFM = (
    "u1\taf8e\tcannibal corpse\t48\nu1\t\tno mbid\t31\nu2\taf8e\tcannibal corpse\t5\nu2\t\t\t7\n"
)
BX_BOOKS = (
    '"ISBN";"Book-Title";"Book-Author";"Year-Of-Publication";"Publisher";"Image-URL-S";'
    '"Image-URL-M";"Image-URL-L"\n'
    '"0195153448";"The \\"Real\\" Myth; new";"Mark Añez";"2002";"Oxford &amp; Co";"a";"b";"c"\n'
    '"078946697X";"Creating (Level 4)\\\\";"M. T.";"1999";"DK";"a";"b";"c"\n'
)
BX_USERS = (
    '"User-ID";"Location";"Age"\n"1";"nyc, new york, usa";NULL\n"2";"porto, v.n.gaia, portugal"'
    ';"17"\n"3";"x\n, y, n/a";"61"\n'
)
BX_RATINGS = '"User-ID";"ISBN";"Book-Rating"\n"1";"034545104X";"0"\n"2";"0195153448";"5"\n'
STEAM = (
    "{u'username': u'Chaos Syren', u'hours': 0.1, u'products': 41, u'product_id': u'725280', "
    "u'date': u'2017-12-17', u'text': u'It\\'s \\u00e9', u'early_access': False, "
    "u'page': 1}\n"
    "{u'username': u'\\u2606', u'product_id': u'2', u'date': u'2018-01-02', u'text': u''}\n"
)
GAMES = (
    "{u'publisher': u'Kotoshiro', u'genres': [u'Action', u'Indie'], u'app_name': u'Lost', "
    "u'price': 4.99, u'early_access': False, u'id': u'725280', "
    "u'developer': u'K', u'tags': [u'Fun']}\n"
    "{u'app_name': u'Free one', u'price': u'Free To Play', u'id': u'2'}\n"
    "{u'app_name': u'Twice', u'id': u'2'}\n{u'url': u'http://no.id'}\n"
)
KUAI = (
    "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"
    "0,3649,13838,10867,2020-07-05 00:08:23.438,20200705,1593878903.438,1.273397\n"
    "7,9,1,2,2020-07-05 00:08:24,20200705,1593878904.0,0.5\n"
)
BANDIT = (
    ",timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,"
    "user_feature_2,user_feature_3,user-item_affinity_0\n"
    "0,2019-11-24 00:03:13.442536+00:00,1,3,0,0.02,a,b,c,d,0.0\n"
    "1,2019-11-24 00:03:14.442536+00:00,0,1,1,0.02,a,b,c,d,0.0\n"
)


def events(**more: list[int]) -> pa.Table:
    columns = {"uid": [100, 200], "timestamp": [5, 10], "item_id": [8, 9], "is_organic": [1, 0]}
    kinds = {"is_organic": pa.uint8(), "played_ratio_pct": pa.uint16()}
    cells = {
        name: pa.array(x, kinds.get(name, pa.uint32())) for name, x in (columns | more).items()
    }
    return pa.table(cells)


def mapping(name: str) -> pa.Table:
    ids = {name: [31, 32, 33], "item_id": [9, 9, 777]}
    return pa.table({key: pa.array(values, pa.uint32()) for key, values in ids.items()})


HETREC = "movieID\t{}\n1\t{}\n1\t{}\n"
COPIES = [
    Copy(
        "mind",
        {
            "MINDsmall_train/behaviors.tsv": MIND_TRAIN,
            "MINDsmall_dev/behaviors.tsv": MIND_DEV,
            "MINDsmall_train/news.tsv": NEWS,
            "MINDsmall_dev/news.tsv": NEWS,
        },
        [("U1", "N1", 1, 1573463158), ("U1", "N3", 1, 1573463158), ("U2", "N2", 1, 1573851322)],
        items={
            "category": ["sports", "news", None],
            "subcategory": ["golf", "newsus", None],
            "title": ["The title", '"Quoted" title', None],
            "abstract": ["An abstract", None, None],
        },
    ),
    Copy(
        "amazon-2023",
        {
            "raw/review_categories/All_Beauty.jsonl.gz": REVIEW,
            "raw/meta_categories/meta_All_Beauty.jsonl.gz": META,
        },
        [("AE", "P1", 5, 1588687728), ("AF", "P2", 1, 1589000000)],
        items={
            "title": ["Oil", None],
            "store": ["Howard", None],
            "main_category": ["All Beauty", None],
            "categories": ["Hair|Oil/s", None],
            "price": [9.5, np.nan],
            "average_rating": [4.8, np.nan],
            "rating_number": [10.0, np.nan],
        },
        settings={"side": ("metadata", "reviews")},
    ),
    Copy(
        "amazon-2023",
        {
            "benchmark/5core/rating_only/Books.csv.gz": (
                "user_id,parent_asin,rating,timestamp\nAG,B00,4.0,1449505425000\n"
            )
        },
        [("AG", "B00", 4, 1449505425)],
        settings={"category": "Books", "form": "5core"},
    ),
    Copy(
        "lastfm-360k",
        {
            "usersha1-artmbid-artname-plays.tsv": LASTFM,
            "usersha1-profile.tsv": "u1\tm\t19\tMexico\tApr 28, 2008\nu2\t\t\tFrance\t\n",
        },
        [("u1", "af8e", 48, None), ("u1", "no mbid", 31, None), ("u2", "af8e", 5, None)],
        {
            "gender": ["m", None],
            "age": [19, np.nan],
            "country": ["Mexico", "France"],
            "signup": ["Apr 28, 2008", None],
        },
        {"name": ["cannibal corpse", "no mbid"]},
    ),
    Copy(
        "hetrec-lastfm",
        {
            "user_artists.dat": "userID\tartistID\tweight\n2\t51\t13883\n4\t52\t11690\n",
            "artists.dat": (
                "id\tname\turl\tpictureURL\n51\tDuran Duran\thttp://x\thttp://y\n"
                '52\t"Morcheeba\thttp://x\t\n'
            ),
            "user_taggedartists.dat": (
                "userID\tartistID\ttagID\tday\tmonth\tyear\n2\t52\t13\t1\t4\t2009\n"
                "2\t52\t15\t1\t4\t2009\n4\t52\t13\t1\t4\t2009\n4\t99\t13\t1\t4\t2009\n"
            ),
            "tags.dat": "tagID\ttagValue\n13\tchillout\n15\tdébut\n".encode("latin-1"),
        },
        [("2", "51", 13883, None), ("4", "52", 11690, None)],
        items={"name": ["Duran Duran", '"Morcheeba'], "tags": [None, "chillout|début"]},
    ),
    Copy(
        "hetrec-movielens",
        {
            "user_ratedmovies-timestamps.dat": (
                "userID\tmovieID\trating\ttimestamp\n75\t1\t4.5\t1162160236000\n"
            ),
            "movies.dat": (
                "id\ttitle\timdbID\tspanishTitle\timdbPictureURL\tyear\trtID\n"
                "1\tToy story\t0114709\tToy story: español\thttp://x\t1995\ttoy_story\n"
                "2\tNo one\t0000001\t\\N\t\\N\t\\N\t\\N\n"
            ).encode("latin-1"),
            "movie_genres.dat": HETREC.format("genre", "Adventure", "Animation"),
            "movie_directors.dat": HETREC.format(
                "directorID\tdirectorName", "john\tJohn", "eva\tEva"
            ),
            "movie_actors.dat": HETREC.format(
                "actorID\tactorName\tranking", "annie\tAnnie Potts\t10", "tom\tTom Hanks\t1"
            ),
            "movie_countries.dat": "movieID\tcountry\n1\tUSA\n2\t\n",
        },
        [("75", "1", 4.5, 1162160236)],
        items={
            "title": ["Toy story", "No one"],
            "year": [1995, np.nan],
            "imdb_id": ["0114709", "0000001"],
            "genres": ["Adventure|Animation", None],
            "directors": ["John|Eva", None],
            "cast": ["Annie Potts|Tom Hanks", None],
            "country": ["USA", None],
        },
    ),
    Copy(
        "book-crossing",
        {
            "BX-Book-Ratings.csv": BX_RATINGS,
            "BX-Users.csv": BX_USERS,
            "BX-Books.csv": BX_BOOKS.encode("latin-1"),
        },
        [("1", "034545104X", 0, None), ("2", "0195153448", 5, None)],
        {
            "location": ["nyc, new york, usa", "porto, v.n.gaia, portugal", "x\n, y, n/a"],
            "country": ["usa", "portugal", None],
            "age": [np.nan, 17, 61],
        },
        {
            "title": ['The "Real" Myth; new', None, "Creating (Level 4)\\\\"],
            "author": ["Mark Añez", None, "M. T."],
            "year": [2002, np.nan, 1999],
            "publisher": ["Oxford &amp; Co", None, "DK"],
        },
    ),
    Copy(
        "book-crossing",
        {
            "Ratings.csv": "User-ID,ISBN,Book-Rating\n1,034545104X,0\n",
            "Users.csv": 'User-ID,Location,Age\n1,"nyc, new york, usa",\n2,"a, b, spain",18.0\n',
            "Books.csv": (
                "ISBN,Book-Title,Book-Author,Year-Of-Publication,Publisher,Image-URL-S\n"
                '034545104X,"A ""Title"", new",Ann,2001,Oxford,http://x\n'
            ),
        },
        [("1", "034545104X", 0, None)],
        {
            "location": ["nyc, new york, usa", "a, b, spain"],
            "country": ["usa", "spain"],
            "age": [np.nan, 18],
        },
        {"title": ['A "Title", new'], "author": ["Ann"], "year": [2001], "publisher": ["Oxford"]},
        {"form": "kaggle"},
    ),
    Copy(
        "steam",
        {"steam_reviews.json.gz": STEAM, "steam_games.json.gz": GAMES},
        [("Chaos Syren", "725280", 1, 1513468800), ("☆", "2", 1, 1514851200)],
        items={
            "title": ["Free one", "Lost"],
            "genres": [None, "Action|Indie"],
            "tags": [None, "Fun"],
            "developer": [None, "K"],
            "publisher": [None, "Kotoshiro"],
            "price": [np.nan, 4.99],
        },
        settings={"side": ("reviews",)},
    ),
    Copy(
        "gowalla",
        {
            "loc-gowalla_totalCheckins.txt.gz": (
                "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n"
                "1\t2010-10-18T22:17:43Z\t30.26\t-97.76\t420315\n"
            )
        },
        [("0", "22847", 1, 1287532527), ("1", "420315", 1, 1287440263)],
        items={"latitude": [30.2359091167, 30.26], "longitude": [-97.7951395833, -97.76]},
    ),
    Copy(
        "kuairec",
        {
            "KuaiRec 2.0/data/small_matrix.csv": KUAI,
            "KuaiRec 2.0/data/user_features.csv": (
                "user_id,user_active_degree,is_lowactive_period,is_live_streamer,is_video_author,"
                "follow_user_num,follow_user_num_range,fans_user_num,fans_user_num_range,"
                "friend_user_num,friend_user_num_range,register_days,register_days_range,"
                'onehot_feat0\n0,high_active,0,0,1,5,"(0,10]",4,"[1,10)",0,0,107,61-90,0\n'
                "7,full_active,0,1,0,5,500+,4,0,0,0,107,730+,0\n"
                "9,full_active,0,0,0,5,500+,4,0,0,0,107,730+,0\n"
            ),
            "KuaiRec 2.0/data/item_categories.csv": 'video_id,feat\n9,"[27, 9]"\n3649,[8]\n',
        },
        [("0", "3649", 1.273397, 1593878903), ("7", "9", 0.5, 1593878904)],
        {
            "user_active_degree": ["high_active", "full_active"],
            "is_lowactive_period": [0, 0],
            "is_live_streamer": [0, 1],
            "is_video_author": [1, 0],
            "follow_user_num_range": ["(0,10]", "500+"],
            "fans_user_num_range": ["[1,10)", "0"],
            "friend_user_num_range": ["0", "0"],
            "register_days_range": ["61-90", "730+"],
        },
        {"categories": ["27|9", "8"]},
        {"matrix": "small"},
    ),
    Copy(
        "yambda",
        {
            "flat/50m/listens.parquet": events(played_ratio_pct=[100, 42]),
            "artist_item_mapping.parquet": mapping("artist_id"),
            "album_item_mapping.parquet": mapping("album_id"),
        },
        [("100", "8", 100, 5), ("200", "9", 42, 10)],
        items={"artist": [None, "31|32"], "album": [None, "31|32"]},
        settings={"form": "listens"},
    ),
    Copy(
        "open-bandit",
        {
            "bts/men/men.csv": BANDIT,
            "bts/men/item_context.csv": (
                ",item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3\n"
                "0,0,-0.5,x,y,z\n1,1,0.7,p,q,r\n"
            ),
        },
        [("a/b/c/d", "0", 1, 1574553794)],
        items={
            "item_feature_0": [-0.5, 0.7],
            "item_feature_1": ["x", "p"],
            "item_feature_2": ["y", "q"],
            "item_feature_3": ["z", "r"],
        },
        settings={"policy": "bts", "campaign": "men"},
    ),
]


def write(folder: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            parquet.write_table(content, path)
            continue
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def list_rows(data: Dataset) -> list[tuple[str, str, float, int | None]]:
    rows = data.interactions
    users, items = rows.user_ids.ids[rows.users].tolist(), rows.item_ids.ids[rows.items].tolist()
    times = [None] * len(rows) if rows.times is None else rows.times.tolist()
    return list(zip(users, items, rows.values.tolist(), times, strict=True))


def list_columns(table: Attributes | None) -> Any:
    return None if table is None else table.frame.to_dict("list")


@pytest.mark.parametrize(
    "copy", COPIES, ids=lambda copy: f"{copy.name}{[*copy.settings.values()]}"
)
def test_a_copy_in_the_publishers_layout_is_read(
    tmp_path: Path, rng: np.random.Generator, copy: Copy
) -> None:
    write(tmp_path / copy.name, copy.files)
    source: Any = REGISTRIES["datasets"].load(copy.name)(**copy.settings)
    assert pickle.loads(pickle.dumps(source)) == source
    data = source.load(tmp_path, rng)
    expected: Any = [(user, item, pytest.approx(x), time) for user, item, x, time in copy.rows]
    assert list_rows(data) == expected
    for table, columns in ((data.users, copy.users), (data.items, copy.items)):
        np.testing.assert_equal(list_columns(table), columns)
    parts = {"train": 1, "users": copy.users, "items": copy.items, "reviews": data.reviews}
    assert source.gives() == {part for part, given in parts.items() if given is not None}
    assert {
        path.relative_to(tmp_path / copy.name).as_posix() for path in source.files(tmp_path)
    } == {*copy.files}


def test_review_texts_are_those_of_the_interactions(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    write(tmp_path / "steam", COPIES[-5].files)
    source: Any = REGISTRIES["datasets"].load("steam")(side=("reviews",))
    data = source.load(tmp_path, rng)
    assert data.reviews.texts.tolist() == ["It's é", ""]


def test_rows_without_a_time_leave_the_dataset_without_times(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    copy = next(copy for copy in COPIES if copy.name == "kuairec")
    text = KUAI.replace("2020-07-05 00:08:24,20200705,1593878904.0", ",,")
    write(tmp_path / "kuairec", copy.files | {"KuaiRec 2.0/data/small_matrix.csv": text})
    source: Any = REGISTRIES["datasets"].load("kuairec")(matrix="small")
    with collect_warnings() as messages:
        data = source.load(tmp_path, rng)
    assert data.interactions.times is None
    assert messages == [
        "data/small_matrix.csv: 1 row(s) have no time, so the dataset has no times"
    ]


def test_a_malformed_line_is_refused_with_its_place_or_skipped(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    write(tmp_path / "gowalla", {"loc-gowalla_totalCheckins.txt.gz": "0\tx\n"})
    load: Any = REGISTRIES["datasets"].load("gowalla")
    with pytest.raises(MalformedLine, match="has 2 cells, not 5"):
        load().load(tmp_path, rng)
    with collect_warnings():
        assert load(bad_lines="skip").load(tmp_path, rng).counts == {"bad_lines": 1}


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    source: Any = REGISTRIES["datasets"].load("amazon-2023")(category="Books", form="5core")
    with pytest.raises(MissingFile) as caught:
        source.files(tmp_path)
    assert "recbias data fetch amazon-2023-Books-5core" in caught.value.remedy


@pytest.mark.parametrize("name", list_declared())
def test_every_declaration_is_a_dataset(name: str) -> None:
    cls = REGISTRIES["datasets"].load(name)
    assert cls.__doc__
    assert cls.__doc__.startswith(read_declaration(name)["title"])


@pytest.mark.real_data
def test_the_published_open_bandit_sample_is_read(
    real_data: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    (tmp_path / "open-bandit").symlink_to(real_data / "open-bandit")
    source: Any = REGISTRIES["datasets"].load("open-bandit")(policy="bts", campaign="men")
    data = source.load(tmp_path, rng)
    assert len(data.interactions) == 69
    assert data.interactions.n_items == 34


@pytest.mark.parametrize(
    ("title", "year"),
    [
        ("Toy Story (1995)", "1995"),
        ("Death Note (2006–2007)", "2006"),
        ("Death Note (2006-2007)", "2006"),
        ("Doctor Who (2005-)", "2005"),
        ("Land Before Time III (1995) (V)", "1995"),
        ("2001: A Space Odyssey (1968)", "1968"),
        ("Babylon 5", None),
        ("(500) Days of Summer", None),
        ("Film (19955)", None),
    ],
)
def test_the_year_of_a_movie_is_in_its_title(title: str, year: str | None) -> None:
    pattern = read_declaration("ml-20m")["items"]["columns"]["year"]["match"]
    assert pc.extract_regex(pa.array([title]), pattern).to_pylist() == [year and {"value": year}]


@pytest.mark.parametrize("subfolder", ["ml-10m", "ml-10m/ml-10M100K", "ml-10M100K"])
def test_the_folder_of_the_publishers_archive_is_found(tmp_path: Path, subfolder: str) -> None:
    folder = tmp_path / subfolder
    folder.mkdir(parents=True)
    (folder / "ratings.dat").touch()
    assert find_folder("ml-10m", tmp_path, holds="ratings.dat", inner="ml-10M100K") == folder


def test_numbers_that_mean_none_are_missing(tmp_path: Path, rng: np.random.Generator) -> None:
    copy = next(copy for copy in COPIES if copy.name == "lastfm-360k")
    profile = "u1\tm\t-1337\tPeru\tFeb 1, 2007\nu2\tf\t120\tPeru\tFeb 1, 2007\n"
    write(tmp_path / copy.name, copy.files | {"usersha1-profile.tsv": profile})
    with collect_warnings() as messages:
        data = REGISTRIES["datasets"].load(copy.name)().load(tmp_path, rng)
    np.testing.assert_equal(data.users.frame["age"].tolist(), [np.nan, 120])
    text = "1 cell(s) of age outside 1 to 120 are taken as missing"
    assert messages == [f"usersha1-profile.tsv: {text}"]


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "line"),
    [
        ("gowalla", "loc-gowalla_totalCheckins.txt.gz", "2010-10-18T", "2010-13-18T", ":2"),
        ("steam", "steam_reviews.json.gz", "2018-01-02", "January", ":2"),
    ],
)
def test_a_text_that_is_no_time_is_a_malformed_line(
    tmp_path: Path, rng: np.random.Generator, name: str, file: str, old: str, new: str, line: str
) -> None:
    copy = next(copy for copy in COPIES if copy.name == name)
    write(tmp_path / name, copy.files | {file: copy.files[file].replace(old, new)})
    load: Any = REGISTRIES["datasets"].load(name)
    with pytest.raises(MalformedLine, match=f"{new}.* is not a time") as caught:
        load().load(tmp_path, rng)
    assert caught.value.where == f"{tmp_path / name / file}{line}"
    with collect_warnings():
        data = load(bad_lines="skip").load(tmp_path, rng)
    assert data.interactions.times.size == 1
    assert data.counts == {"bad_lines": 1}
