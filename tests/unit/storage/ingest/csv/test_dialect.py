from pathlib import Path

import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.csv.dialect import sniff

PATH = Path("trips.csv")


def dialect(text, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return sniff(data, PATH, is_all=options.pop("is_all", True), **options)


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_delimiter(delimiter):
    found = dialect(
        f"a{delimiter}b\n1,5{delimiter}2\n3{delimiter}4\n".replace(",5", "" if delimiter == "," else ",5")
    )
    assert found.delimiter == delimiter
    assert found.names == ("a", "b")


def test_delimiters_inside_quotes_do_not_count():
    assert dialect('a;b\n"x,y,z";1\n"u,v,w";2\n').delimiter == ";"


@pytest.mark.parametrize("text", ["q,r\nabc\n", "q;r\nabc\nd", "1,2\n3", "a|b|c\n\nabc\n"])
def test_a_delimiter_in_the_first_record_only_is_none(text):
    assert dialect(text).names == (text.splitlines()[0],)


def test_known_delimiter():
    assert dialect("a,b\n1,2\n", delimiter="\t").names == ("a,b",)


@pytest.mark.parametrize(
    ("text", "newline", "first_line"),
    [
        ("a,b\n1,2\n", b"\n", 2),
        ("a,b\r\n1,2\r\n", b"\n", 2),
        ("a,b\r1,2\r", b"\r", 2),
        ("\n\na,b\n1,2", b"\n", 4),
    ],
)
def test_line_ends(text, newline, first_line):
    found = dialect(text)
    assert (found.newline, found.first_line) == (newline, first_line)
    assert text.encode()[found.start :].startswith(b"1,2")


def test_byte_order_mark():
    found = dialect("\ufeffa,b\n1,2\n")
    assert found.names == ("a", "b")
    assert found.start == 7


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\nx,y\n", ("a", "b")),
        (" a , b\n1,2\n", ("a", "b")),
        ("a,,c\n1,2,3\n", ("a", "column1", "c")),
        ('"a ""b""","c\nd"\n1,2\n', ('a "b"', "c\nd")),
        ("a\n1\n", ("a",)),
    ],
)
def test_header(text, names):
    assert dialect(text).names == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,x\n2,y\n", ("column0", "column1")),
        (",".join("0123456789a") + "\n", tuple(f"column{i:02}" for i in range(11))),
    ],
)
def test_no_header(text, names):
    found = dialect(text, header=False)
    assert (found.names, found.first_line, found.start) == (names, 1, 0)
    assert found.first == tuple(text.splitlines()[0].split(","))


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("a,a,A", ("a", "a_1", "A_2")),
        ("a,a,a_1", ("a", "a_1", "a_1_1")),
        ("a,a_1,A,a_1", ("a", "a_1", "A_1_1", "a_1_2")),
        ("x,x,x_2,x", ("x", "x_1", "x_2", "x_2_1")),
        ("column1,,x", ("column1", "column1_1", "x")),
    ],
)
def test_names_that_come_again_get_numbers(header, names):
    text = f"{header}\n{','.join('1' * len(names))}\n"
    assert dialect(text).names == names


def test_fields_the_header_does_not_name():
    found = dialect("a,b\r\n\r\n1,2,,\r\n3,4,,\r\n")
    assert found.names == ("a", "b", "column2", "column3")
    assert found.unnamed == 2


@pytest.mark.parametrize(
    ("comments", "rest", "names", "first_line"),
    [
        ("# hello\n", "a,b\n1,2\n", ("a", "b"), 3),
        ("# hello, x, y\r\n", "a,b\r\n1,2\r\n", ("a", "b"), 3),
        ("\n# it's \"quoted\n\n#\n\n", "a;b\n1;2\n", ("a", "b"), 7),
        ("#one\n", "#id,b\n1,2\n", ("#id", "b"), 3),
        ("", "#a,b\n1,2\n", ("#a", "b"), 2),
        ("", "# one\na\n1\n", ("# one",), 2),
        ("", "# one\n", ("# one",), 2),
    ],
)
def test_comments_before_the_header(comments, rest, names, first_line):
    found = dialect(comments + rest)
    assert (found.names, found.first_line) == (names, first_line)
    data = rest.partition("\n")[2]
    assert (comments + rest)[found.start :].lstrip("\n") == data
    assert dialect("# " * 100, is_all=False) is None


def test_a_header_longer_than_the_rows():
    assert dialect("a,b,\n1,2\n3,4\n").names == ("a", "b")


def test_one_odd_row_does_not_change_the_width():
    assert dialect("a,b\n1,2\n3,4,5\n").names == ("a", "b")


def test_a_sample_too_short_for_the_header_asks_for_more():
    assert dialect("a,b,c", is_all=False) is None
    assert dialect('a,"b\nc', is_all=False) is None
    assert dialect("a,b\n1,2", is_all=False).names == ("a", "b")


def test_what_is_no_csv():
    with pytest.raises(IngestError, match=r"trips\.csv: is UTF-16.*iconv"):
        dialect("a,b\n".encode("utf-16"))
    with pytest.raises(IngestError, match="is not text"):
        dialect(b"a,b\n\0\0")
    with pytest.raises(IngestError, match="only blank lines"):
        dialect("\n\r\n")
    with pytest.raises(IngestError, match="line 1: the header is not UTF-8"):
        dialect("naïve,b\n1,2\n".encode("latin-1"))
