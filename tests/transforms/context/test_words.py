"""Words in many languages, one by one; counts against a loop over `lemmas_of`; independence of batches."""

from __future__ import annotations

import sys
import tarfile
import unicodedata
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.transforms.context.nouns import check_tagger
from semrank.transforms.context.words import (
    MAX_WORD_CHARACTERS,
    MIN_DETECTED_CHARACTERS,
    TOPICAL_WORDS,
    LemmaCounts,
    lemma_counts,
    lemmas_of,
    text_languages,
)

CASES = [
    ("en", "The crawlers were climbing, and mice climbed", ["crawler", "climb", "mouse", "climb"]),
    ("en", "web page information spider", ["web", "information", "spider"]),
    ("en", "The user's and the users’ data; Zorblax's, too", ["user", "user", "data", "zorblax"]),
    ("en", "Don't! They’d've said: 'quoted' dogs'", ["quote", "dog"]),
    ("en", "O'Neill's rock'n'roll", ["neill", "rock", "roll"]),
    ("en", "co\u00adoper\u00adation by the zero\u200dwidth\u2060joiners", ["cooperation", "zerowidthjoiners"]),
    ("en", "café cafe\u0301 CAFÉ ｃａｆé ﬁsh", ["café", "café", "café", "café", "fish"]),
    ("en", "\u0301spider ' '' \u00ad \u0301", ["spider"]),
    ("en", "1999 ½ 3½ ٣٤ 1,000.5 x y", []),
    ("en", "h2o m² 1990s Windows™ state-of-the-art", ["h2o", "m2", "1990s", "window", "art"]),
    ("en", "a" * MAX_WORD_CHARACTERS + " " + "b" * (MAX_WORD_CHARACTERS + 1), ["a" * MAX_WORD_CHARACTERS]),
    (
        "de",
        "Die Häuser der Straßen, Ha\u0308user und WELTRAUMTELESKOPE",
        ["haus", "straße", "haus", "weltraumteleskop"],
    ),
    ("fr", "L’eau de l'école : aujourd'hui, qu'il ait des chevaux", ["eau", "école", "cheval"]),
    ("fr", "l'xyzzy", ["xyzzy"]),
    ("it", "dell'acqua, un'amica", ["acqua", "amico"]),
    ("nl", "foto's en auto’s", ["foto", "auto"]),
    ("tr", "İstanbul'da ISPARTA kitaplar", ["istanbul", "ısparta", "kitap"]),
    ("ru", "Кошками и собаками", ["кошка", "собака"]),
    ("uk", "м’яч і об'єкти", ["м'яч", "об'єкт"]),
    ("el", "ΟΔΥΣΣΕΥΣ και οι δρόμοι", ["οδυσσευς", "δρόμος"]),
    ("he", "סֵפֶר הספרים", ["ספר", "ספר"]),
    ("ar", "الْكُتُبُ الجديدة في المكتبــة", ["كتاب", "جديد", "مكتبة"]),
    ("fa", "کتاب\u200cها", ["کتابها"]),
    ("hi", "किताबें और भाषा में", ["किताब", "भाषा"]),
    ("ko", "물 을 마셨다", ["물", "마셨다"]),
    (
        "zh",
        "我来到北京清华大学，学习自然语言。iPhone手机2024年",
        ["来到", "北京", "清华大学", "学习", "自然", "语言", "iphone", "手机"],
    ),
    ("ja", "東京の天気予報。コンピューターゲームとﾃﾚﾋﾞ", ["東京", "天気", "予報", "コンピューター", "ゲーム", "テレビ"]),
    ("th", "ภาษาไทยเป็นภาษาราชการของน้ำทะเล", ["ภาษา", "ไทย", "ภาษา", "ราชการ", "น้ำ", "ทะเล"]),
    ("lo", "ພາສາລາວ", ["ພາສາ", "ລາວ"]),
    ("km", "ភាសាខ្មែរជាភាសា", ["ភាសាខ្មែរ", "ជា", "ភាសា"]),
    ("my", "မြန်မာဘာသာစကား", ["မြန်မာဘာသာ", "စကား"]),
    ("en", "Spiders: 日本語 のテスト and ไทย", ["spider", "日本語", "テスト", "ไทย"]),
    ("xx", "Foo's unknown BAR", ["foo", "unknown", "bar"]),
    ("en", "", []),
    ("en", "?!… \n\t--", []),
]


@pytest.mark.parametrize(("language", "text", "expected"), CASES)
def test_words_of_a_language(language: str, text: str, expected: list[str]) -> None:
    assert lemmas_of(pa.array([text]), pa.array([language])).to_pylist() == [expected]


NOUNS = [
    (
        "en",
        "The crawler's beautiful spiders quickly climbed London mountains",
        ["crawler", "spider", "london", "mountain"],
    ),
    ("de", "Schnelle Häuser laufen in Berlin", ["haus", "berlin"]),
    ("nl", "snelle huizen lopen in Amsterdam", ["huis", "amsterdam"]),
    ("fr", "le cheval court", ["cheval", "court"]),
]


@pytest.mark.parametrize(("language", "text", "expected"), NOUNS)
def test_nouns_of_a_language(language: str, text: str, expected: list[str]) -> None:
    texts, languages = pa.array([text]), pa.array([language])
    assert lemmas_of(texts, languages, nouns=True).to_pylist() == [expected]
    assert lemma_counts(texts, languages, nouns=True).lemmas.to_pylist() == sorted(expected)
    assert set(expected) <= set(lemmas_of(texts, languages)[0].as_py())


def test_languages_without_a_tagger_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_tagger("de")
    with pytest.raises(InputError, match="found --language fr, expected one that has a tagger: de, en, nl"):
        check_tagger("fr")
    monkeypatch.setitem(sys.modules, "HanTa", None)
    with pytest.raises(InputError, match="HanTa is missing, which the extra `nouns` installs"):
        check_tagger("de")


def test_strings_of_all_languages_keep_their_order() -> None:
    texts = pa.array([text for _, text, _ in CASES])
    languages = pa.array([language for language, _, _ in CASES])
    expected = [words for _, _, words in CASES]
    assert lemmas_of(texts, languages).to_pylist() == expected
    assert lemmas_of(texts, languages, batch_bytes=1).to_pylist() == expected
    chunked = pa.chunked_array([texts.slice(0, 3), texts.slice(3)])
    assert lemmas_of(chunked, languages).to_pylist() == expected


def test_nulls_and_nothing() -> None:
    none = pa.array([], type=pa.string())
    assert lemmas_of(none).to_pylist() == []
    assert lemmas_of(none).type == pa.list_(pa.string())
    assert lemmas_of(pa.array(["spiders", None, ""])).to_pylist() == [["spider"], [], []]
    counts = lemma_counts(pa.array([None, "spiders and a spider"]))
    assert (counts.document.tolist(), counts.count.tolist(), counts.lemmas.to_pylist()) == ([1], [2], ["spider"])
    empty = lemma_counts(none)
    assert (len(empty.document), len(empty.lemma), len(empty.count), len(empty.lemmas)) == (0, 0, 0, 0)
    assert [str(column.dtype) for column in (empty.document, empty.lemma, empty.count)] == ["int64", "int32", "int32"]


def test_fallback_language_is_that_of_strings_without_one() -> None:
    texts = pa.array(["die Häuser", "die Häuser"])
    assert lemmas_of(texts, pa.array([None, "en"]), fallback="de").to_pylist() == [["haus"], ["die", "häuser"]]
    assert lemmas_of(texts.slice(0, 1), fallback="no language").to_pylist() == [["die", "häuser"]]


def test_every_text_needs_its_language() -> None:
    with pytest.raises(ValueError, match="found 1 languages for 2 texts, expected one for each"):
        lemma_counts(pa.array(["a", "b"]), pa.array(["en"]))


def test_languages_of_long_texts_are_detected() -> None:
    english = "The spider follows the links of the pages that it has fetched, and so it comes to know the web. " * 3
    french = "Le chat est sur la table et il mange une souris grise avec les autres animaux de la maison. " * 3
    russian = "Кошка сидит на ковре и смотрит на птиц, которые летают за окном большого старого дома. " * 3
    short = french[: MIN_DETECTED_CHARACTERS - 1]
    texts = pa.array([english, french, russian, short, french, None])
    languages = pa.array([None, "und", None, None, "it", None])
    assert text_languages(texts, languages).to_pylist() == ["en", "fr", "ru", "en", "it", "en"]
    assert text_languages(texts, fallback="fr").to_pylist() == ["en", "fr", "ru", "fr", "fr", "fr"]
    lemmas = lemma_counts(texts).lemmas.to_pylist()
    assert {"souris", "кошка", "spider"} <= set(lemmas)


def test_topical_words_are_no_stop_words() -> None:
    words = sorted(TOPICAL_WORDS["en"])
    assert lemmas_of(pa.array([" ".join(words)])).to_pylist() == [words]


# Python's Unicode tables may be older than RE2's: they can't tell of what kind a character is that they don't know.
_ASSIGNED = st.text(st.characters(exclude_categories=["Cn", "Cs"]), max_size=60)
_WORDS = st.sampled_from(
    [
        "spiders",
        "Spider",
        "the",
        "user's",
        "l'eau",
        "Häuser",
        "кошками",
        "東京の天気",
        "ภาษาไทย",
        "2024",
        "x",
        "½",
        "web",
    ]
)
_TEXTS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.lists(_WORDS, max_size=12).map(" ".join), st.text(max_size=20)),
        st.sampled_from([None, "en", "de", "fr", "ru", "ja", "th", "und", "eng"]),
    ),
    max_size=12,
)


def _as_rows(counts: LemmaCounts) -> list[tuple[int, str, int]]:
    lemmas = counts.lemmas.to_pylist()
    rows = zip(counts.document.tolist(), counts.lemma.tolist(), counts.count.tolist(), strict=True)
    return [(document, lemmas[lemma], count) for document, lemma, count in rows]


@settings(max_examples=60, deadline=None)
@given(rows=_TEXTS, batch_bytes=st.sampled_from([1, 7, 40, 1 << 20]))
def test_counts_are_those_of_each_text_alone(rows: list[tuple[str | None, str | None]], batch_bytes: int) -> None:
    expected = []
    for document, (text, language) in enumerate(rows):
        [words] = lemmas_of(pa.array([text], pa.string()), pa.array([language], pa.string())).to_pylist()
        expected += [(document, word, count) for word, count in sorted(Counter(words).items())]
    texts = pa.array([text for text, _ in rows], pa.string())
    languages = pa.array([language for _, language in rows], pa.string())
    counts = lemma_counts(texts, languages, batch_bytes=batch_bytes)
    assert _as_rows(counts) == expected
    assert counts.lemmas.to_pylist() == sorted({word for _, word, _ in expected})


@settings(max_examples=200, deadline=None)
@given(text=_ASSIGNED, language=st.sampled_from(["en", "de", "fr", "tr", "zh", "th", "xx"]))
def test_words_of_any_text_are_words(text: str, language: str) -> None:
    [words] = lemmas_of(pa.array([text], pa.string()), pa.array([language])).to_pylist()
    for word in words:
        kinds = {unicodedata.category(character)[0] for character in word if character != "'"}
        assert kinds <= {"L", "M", "N"}
        assert kinds != {"N"}
        assert 0 < len(word) <= MAX_WORD_CHARACTERS
    [again] = lemmas_of(pa.array([f"  {text}\n"], pa.string()), pa.array([language])).to_pylist()
    assert again == words


def test_published_articles_are_about_their_titles(shared_data: Path) -> None:
    titles, texts = [], []
    with tarfile.open(shared_data / "wikispeedia" / "wikispeedia_articles_plaintext.tar.gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None and member.name.endswith(".txt"):
                titles.append(unquote(Path(member.name).stem).replace("_", " "))
                texts.append(content.read().decode())
            if len(texts) == 60:
                break
    counts = lemma_counts(pa.array(texts))
    assert _as_rows(counts) == _as_rows(lemma_counts(pa.array(texts), batch_bytes=10_000))
    said: list[set[str]] = [set() for _ in texts]
    for document, lemma, _ in _as_rows(counts):
        said[document].add(lemma)
    named = lemmas_of(pa.array(titles)).to_pylist()
    shares = [len(set(words) & found) / len(set(words)) for words, found in zip(named, said, strict=True) if words]
    assert sum(shares) / len(shares) > 0.9
