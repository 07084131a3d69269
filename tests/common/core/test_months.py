from veiltab.common.core.texts.months import month_numbered


def test_the_first_word_may_name_a_month() -> None:
    assert month_numbered("8 janv. 1951") == ("8 ", "01", " 1951")
    assert month_numbered("8 soon 1951") is None
    assert month_numbered("8.1.1951") is None
