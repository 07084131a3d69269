"""What is said of work under way."""

import pytest

from veiltab.common.observe.progress import Progress, Stage


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("done", "seconds", "said"),
    [
        (0, 0.0, "aligning: 0 %"),
        (0, 50.0, "aligning: 0 %"),
        (370, 1.9, "aligning: 37 %"),
        (370, 2.0, "aligning: 37 %, less than a minute left"),
        (370, 141.0, "aligning: 37 %, about 4 minutes left"),
        (500, 59.9, "aligning: 50 %, less than a minute left"),
        (500, 60.0, "aligning: 50 %, about 1 minute left"),
        (100, 799.0, "aligning: 10 %, about 120 minutes left"),
        (100, 800.0, "aligning: 10 %, about 2 hours left"),
        (1000, 50.0, "aligning: 100 %, less than a minute left"),
        (1003, 50.0, "aligning: 100 %, less than a minute left"),
    ],
)
def test_the_rest_takes_as_long_as_what_is_done(done: int, seconds: float, said: str) -> None:
    clock = Clock()
    progress = Progress("aligning", 1000, clock=clock)
    progress.advance(done)
    clock.now += seconds
    assert str(progress) == said


@pytest.mark.parametrize("total", [None, 0])
def test_without_a_total_it_is_counted(total: int | None) -> None:
    progress = Progress("reading", total)
    for _ in range(3):
        progress.advance(1000)
    assert str(progress) == "reading: 3,000 so far"


def test_it_is_told_now_and_then() -> None:
    clock, told = Clock(), list[str]()
    progress = Progress("reading", 100, tell=told.append, clock=clock)
    for _ in range(50):
        clock.now += 1
        progress.advance(2)
    assert told == [f"reading: {2 * at} %, less than a minute left" for at in (10, 20, 30, 40, 50)]


def test_a_stage_is_empty_between_two_pieces_of_work() -> None:
    stage = Stage()
    assert not str(stage)
    with stage.of("sorting", 4) as progress:
        progress.advance(1)
        assert str(stage) == "sorting: 25 %"
    assert not str(stage)
    with pytest.raises(ValueError, match="x"), stage.of("sorting", 4):
        raise ValueError("x")
    assert not str(stage)
