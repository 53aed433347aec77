"""What a guest said, line by line."""

from __future__ import annotations

import pytest

from tests.guests.results import Result, parse

TEXT = """\
guest: kernel 6.12, modules loaded at 5.00 s
ok outside: no step has begun
begin reads 5.25
ok drive0/first-block: 512 bytes
some words, ok or not
 ok indented: no result
FAIL last_block: LBA 7: status 0x281
skip cmb:
ok no detail
end other 0 6.00
end reads 3 7.75
begin killed 8.00
ok before: so far
ok cut: of"""


def test_results_are_those_of_their_steps() -> None:
    steps = parse(TEXT)
    assert [*steps] == ["reads", "killed"]
    reads, killed = steps.values()
    assert reads.results == [
        Result("ok", "drive0/first-block", "512 bytes"),
        Result("FAIL", "last_block", "LBA 7: status 0x281"),
        Result("skip", "cmb", ""),
    ]
    assert (reads.status, reads.seconds) == (3, 2.5)
    assert "end other 0 6.00" in reads.lines
    assert (killed.status, killed.seconds) == (None, None)
    assert killed.results == [Result("ok", "before", "so far")]


def test_lines_may_end_as_terminals_have_them() -> None:
    assert parse(TEXT.replace("\n", "\r\n")) == parse(TEXT)


def test_no_step_begins_twice() -> None:
    with pytest.raises(ValueError, match="step a begins twice"):
        parse("begin a 1.0\nend a 0 1.1\nbegin a 1.2\n")
