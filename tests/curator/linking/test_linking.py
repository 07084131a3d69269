"""Linking in one process: what is linked is what the rule links, by tokens and privately, with two and three curators."""

from pathlib import Path

import pytest

from tests.curator.linking.registers import align, identity, people, registers, wanted_links, with_errors

COMMON, ALONE = people(300, 1), people(200, 2)


@pytest.mark.parametrize("is_private", [False, True], ids=["tokens", "private"])
def test_two_curators_link_what_the_rule_links(tmp_path: Path, is_private: bool) -> None:
    hub, spoke = [*COMMON, *ALONE[:100]], [*with_errors(COMMON, 3)[::-1], *ALONE[100:]]
    rule = identity()
    with registers(tmp_path, [hub, spoke], rule, is_private=is_private) as (alice, bob):
        align(alice, bob)
        links = wanted_links(rule, hub, spoke)
        assert 280 <= len(links) <= 300
        seen = sorted(zip(alice.column, bob.column, strict=True))
        symbols = [[sum(map(ord, row[2])) % 251 for row in rows] for rows in (hub, spoke)]
        assert seen == sorted((symbols[0][mine], symbols[1][theirs]) for mine, theirs in links.items())
        assert alice.alignment.result() == bob.alignment.result()
