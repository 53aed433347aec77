from bamquery.queries.trips.csv_lines import sift


def lines(*texts: bytes) -> list[tuple[int, bytes]]:
    return list(enumerate(texts, 2))


def test_lines_are_brought_to_one_width() -> None:
    sifted = sift(lines(b"1,2,3\r", b"1,2,3,,", b'1,"a,b",3'), ",", 3, 4)
    assert sifted.data == b'1,2,3,\n1,2,3,\n1,"a,b",3,\n'
    assert sifted.lines == [2, 3, 4]
    assert sifted.set_aside == []


def test_blank_lines_are_neither_records_nor_set_aside() -> None:
    sifted = sift(lines(b"", b"\r", b"   ", b"1,2"), ",", 2, 2)
    assert sifted.lines == [5]
    assert sifted.set_aside == []


def test_lines_that_are_not_records_are_set_aside_with_the_reason() -> None:
    sifted = sift(lines(b"1,2", b"1,2,3,x", b'1,2,"3', b"1,\xff,3", b"1,2\r,3", b"1,2,3"), ",", 3, 3)
    assert [(found.line, found.reason) for found in sifted.set_aside] == [
        (2, "only 2 of the 3 fields that the header names"),
        (3, "field 4 holds 'x', the header names only 3"),
        (4, "a quote that does not close"),
        (5, "byte 3 is not UTF-8"),
        (6, "a carriage return inside the line"),
    ]
    assert sifted.set_aside[3].text == "1,\\xff,3"
    assert sifted.lines == [7]
