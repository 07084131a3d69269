"""What is said of work under way."""

import pytest

from veiltab.common.observe.progress import Progress, Stage, Stages, without_figures


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("done", "seconds", "said"),
    [
        (0, 50.0, "aligning: 0 %"),
        (370, 1.9, "aligning: 37 %"),
        (370, 2.0, "aligning: 37 %, less than a minute left"),
        (370, 141.0, "aligning: 37 %, about 4 minutes left"),
        (500, 60.0, "aligning: 50 %, about 1 minute left"),
        (100, 799.0, "aligning: 10 %, about 120 minutes left"),
        (100, 800.0, "aligning: 10 %, about 2 hours left"),
        (1000, 50.0, "aligning: 100 %, less than a minute left"),
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
    assert str(progress) == "reading"
    for _ in range(3):
        progress.advance(1000)
    assert str(progress) == "reading: 3,000 so far"


def test_what_was_done_before_says_nothing_of_the_rate() -> None:
    clock = Clock()
    progress = Progress("sending", None, done=500, clock=clock)
    progress.expect(1000)
    clock.now += 60
    assert str(progress) == "sending: 50 %"
    progress.advance(100)
    assert str(progress) == "sending: 60 %, about 4 minutes left"


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


def test_what_goes_on_in_a_stage_is_said_instead_of_it() -> None:
    stage = Stage()
    with stage.of("drawing", None):
        with stage.of("ordering", 4, done=1):
            assert str(stage) == "ordering: 25 %"
        assert str(stage) == "drawing"


def test_work_is_shown_once_it_has_taken_a_second() -> None:
    clock = Clock()
    stages = Stages(clock)
    with stages.stage("a") as first:
        clock.now += 0.9
        with stages.stage("b") as second, second.of("drawing", None), first.of("sending", None):
            assert stages.texts == {}
            clock.now += 0.1
            assert stages.texts == {"a": "sending"}
            clock.now += 0.9
            assert stages.texts == {"a": "sending", "b": "drawing"}
        assert stages.texts == {}, "nothing is done for a now, and b is over"
    with pytest.raises(ValueError, match="x"), stages.stage("a") as stage, stage.of("sending", None):
        raise ValueError("x")
    clock.now += 5
    assert stages.texts == {}


def test_lines_about_the_same_work_differ_in_figures_alone() -> None:
    clock = Clock()
    progress, lines = Progress("sending", 1000, clock=clock), set[str]()
    for seconds in (0, 1, 3, 100, 10_000):
        clock.now += seconds
        progress.advance(10)
        lines.add(f"charged; alice: {progress}; 1 of 5 tables")
    assert len(lines) == 5
    assert {without_figures(line) for line in lines} == {"charged; alice: sending: ; 1 of 5 tables"}
    assert without_figures("reading: 3,000 so far") == "reading: "
