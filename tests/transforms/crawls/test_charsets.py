"""Encodings of pages, by the WHATWG encoding standard and the prescan of the HTML standard."""

from __future__ import annotations

import pytest

from semrank.transforms.crawls.charsets import codec_of, declared_encoding, decode_html, encode_query


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        (b"<meta charset=koi8-r>", "koi8-r"),
        (b"<META/CHARSET='koi8-r'>", "koi8-r"),
        (b"<meta name=x charset = koi8-r>", "koi8-r"),
        (b"<meta http-equiv=content-type content='text/html; charset=koi8-r'>", "koi8-r"),
        (b"<meta content='text/html; charset=\"koi8-r\"' http-equiv=Content-Type>", "koi8-r"),
        (b"<!-- <meta charset=koi8-r> --><meta charset=utf-8>", "utf-8"),
        (b"<!-->--><meta charset=utf-8>", "utf-8"),
        (b"<meta name=description content='charset=koi8-r'><meta charset=utf-8>", "utf-8"),
        (b"<meta data-charset=koi8-r><meta charset=utf-8>", "utf-8"),
        (b"<p title='<meta charset=koi8-r>'><meta charset=utf-8>", "utf-8"),
        (b"<script>'<meta charset=koi8-r>'</script><meta charset=utf-8>", "utf-8"),
        (b"<title><meta charset=koi8-r></title><meta charset=utf-8>", "utf-8"),
        (b"<? <meta charset=koi8-r> <meta charset=utf-8>", "utf-8"),
        (b"<meta charset=nonsense><meta charset=koi8-r>", "koi8-r"),
        (b"<meta charset=utf-16le>", "utf-8"),
        (b"<meta charset=x-user-defined>", "cp1252"),
        (b"</meta charset=koi8-r>", None),
        (b"<metadata charset=koi8-r>", None),
        (b"<!-- <meta charset=koi8-r>", None),
        (b"<?xml version='1.0' encoding='koi8-r'?><p>", "koi8-r"),
        (b"<?xml version='1.0' encoding='koi8-r'?><meta charset=utf-8>", "utf-8"),
        (b"<link>" * 1_000 + b"<meta charset=koi8-r>", "koi8-r"),
        (b"<p>" * 1_000 + b"<meta charset=koi8-r>", None),
    ],
)
def test_declarations(head: bytes, encoding: str | None) -> None:
    assert declared_encoding(head) == encoding


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        (b"\xef\xbb\xbf\xc3\xbc", "koi8-r", "ü"),
        (b"\xfe\xff\x00\xfc", "utf-8", "ü"),
        (b"\xfc\x00", "utf-16", "ü"),
        ("<?xml version='1.0'?>ü".encode("utf-16-le"), None, "<?xml version='1.0'?>ü"),
        ("<?xml version='1.0'?>ü".encode("utf-16-be"), None, "<?xml version='1.0'?>ü"),
        (b"<meta charset=utf-8>\xcf", "windows-1251", "<meta charset=utf-8>П"),
        (b"<meta charset=gb2312>\xe9F", "none", "<meta charset=gb2312>镕"),
        (b"\xad\xa1\xc6\xfc", "euc-jp", "①日"),
        (b"\xf9\xa1\xfc\xee", "euc-jp", "纊黑"),
        (b"\xa1\xc1\xa1\xdd", "euc-jp", "～－"),
        (b"\x8e\xb1\x8f\xb0\xa1", "euc-jp", "ｱ丂"),
        (b"a\xffb", "euc-jp", "a\ufffdb"),
        (b"\x1b$B-!F|\x1b(B!", "iso-2022-jp", "①日!"),
        (b"\x1b$B!A\x1b(J\\~\x1b(I1", "iso-2022-jp", "～¥‾ｱ"),
        (b"\x87\x40", "shift_jis", "①"),
        (b"\xf3", "x-mac-cyrillic", "у"),
        (b"\x80", "latin1", "€"),
    ],
)
def test_characters(body: bytes, charset: str, text: str) -> None:
    assert decode_html(body, charset).text == text


def test_xml_is_utf_8_unless_it_declares_otherwise() -> None:
    assert decode_html("<meta charset='koi8-r'/>ü".encode(), xml=True).text == "<meta charset='koi8-r'/>ü"
    assert decode_html(b"<?xml version='1.0' encoding='koi8-r'?>\xd0", xml=True).text.endswith("п")


def test_pairs_are_those_of_windows() -> None:
    """All of JIS X 0208 with the rows of NEC and IBM, by way of Shift_JIS, which Python has in full."""
    for row in range(94):
        for cell in range(94):
            lead = row // 2 + (0x81 if row < 62 else 0xC1)
            trail = 0x9F + cell if row % 2 else 0x40 + cell + (cell >= 63)
            expected = bytes([lead, trail]).decode("cp932", "replace")
            if "\ufffd" not in expected and len(expected) == 1:
                assert decode_html(bytes([row + 0xA1, cell + 0xA1]), "euc-jp").text == expected
                assert decode_html(b"\x1b$B" + bytes([row + 0x21, cell + 0x21]), "iso-2022-jp").text == expected


@pytest.mark.parametrize(
    ("label", "reference", "sent"),
    [
        ("windows-1252", "/ü?q=ü&p=a b#ü", "/ü?q=%FC&p=a b#ü"),
        ("iso-8859-2", "?ł", "?%B3"),
        ("windows-1252", "?ł€", "?%26%23322%3B%80"),
        ("windows-1251", "?q=привет", "?q=%EF%F0%E8%E2%E5%F2"),
        ("gb2312", "?q=中文", "?q=%D6%D0%CE%C4"),
        ("shift_jis", "?≡‽", "?%81%DF%26%238253%3B"),
        ("shift_jis", "?ソ=～", "?%83\\=%81`"),
        ("euc-jp", "?日～", "?%C6%FC%A1%C1"),
        ("iso-2022-jp", "?¥", "?%1B(J\\%1B(B"),
        ("utf-8", "?ü", "?ü"),
        ("utf-16", "?ü", "?ü"),
        ("windows-1252", "/ü", "/ü"),
        ("windows-1252", "#?ü", "#?ü"),
    ],
)
def test_queries_have_the_bytes_of_the_page(label: str, reference: str, sent: str) -> None:
    """URL standard, "percent-encode after encoding", and its table of examples for Shift_JIS and ISO-2022-JP."""
    codec = codec_of(label)
    assert codec is not None
    assert encode_query(reference, codec) == sent
