import re

import pytest

from veiltab.common.core.texts.csv_cells import plain_cell


def test_no_part_of_a_cell_is_a_formula_wherever_a_spreadsheet_divides_it() -> None:
    for sign in list("=+-@") + [chr(code) for code in (0xFF1D, 0xFF0B, 0xFF0D, 0x2212, 0xFF20)]:
        for before in ("", ";", "|", "\t", "\n", "\r", "; ", ';"', "a;", "a | ", "a\t", "a\r\n", "1;b;"):
            written = plain_cell(f"{before}{sign}1+1")
            for part in re.split(r"[;|\t\r\n]", written):
                assert not part.strip(' "').startswith(sign)
            assert written.replace("'", "") == f"{before}{sign}1+1"


@pytest.mark.parametrize("text", ["a;b", "a|b", "1;2", "a=1", "x;'=1", "Rh-", "low; high", "-1", "+2.50"])
def test_a_cell_without_a_formula_stays_as_it_is(text: str) -> None:
    assert plain_cell(text) == text
