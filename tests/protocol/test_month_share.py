"""A study asked month by month: the releases of one month take a part of the budget, over processes."""

from pathlib import Path

from tests.protocol.village import Rules
from tests.protocol.world import made_world


def test_a_month_takes_no_more_than_its_part_of_the_budget(tmp_path: Path) -> None:
    world = made_world(tmp_path, people=300, rules=Rules(budget="10\nmonth_share = 0.25"))
    world.local.start_all()
    with world.local:
        first = world.ask(("region", "income"), "--wait", "--timeout", "30", "--label", "first", epsilon="2")
        assert first.code == 0, first.errors
        second = world.ask(("region", "income"), "--wait", "--timeout", "30", "--label", "second", epsilon="2")
        assert second.code == 3, second.errors
        assert "(UTC) may take 25.00% of its budget" in second.errors
        assert "ask again next month" in second.errors
        assert len(world.charges("alice")) == 1
        small = world.ask(("region", "income"), "--wait", "--timeout", "30", "--label", "small", epsilon="0.4")
        assert small.code == 0, small.errors
