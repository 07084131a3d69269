"""A study with every way of coding a column, for rehearsals of it."""

from decimal import Decimal

from veiltab.common.study.toml_text import toml_text

STUDY = toml_text(
    {
        "study": {
            "id": "wages",
            "title": "Wages and schools",
            "hub": "alice",
            "minimum_population": 50,
            "alignment": "tokens",
            "left_out": "stated",
        },
        "budget": {"epsilon": Decimal("3.0"), "delta": Decimal("0.00001")},
        "release": {"pad": "otp"},
        "server": {"name": "cloud", "endpoint": "cloud.example.org:7400"},
        "curator": [
            {
                "name": "alice",
                "endpoint": "alice.example.org:7401",
                "id_columns": ["pid", "part"],
                "normalise": ["strip"],
            },
            {"name": "bob", "endpoint": "bob.example.org:7402", "id_columns": ["person", "number"]},
        ],
        "researcher": [{"name": "rosa", "endpoint": "rosa.example.org:7410"}],
        "analyst": [{"name": "ana", "researcher": "rosa"}],
        "attribute": [
            {
                "name": "school",
                "owner": "alice",
                "categories": ["none", "some", "unknown"],
                "recode": {"HS": "some", "BA, or more": "some"},
                "missing": "unknown",
            },
            {
                "name": "age",
                "owner": "alice",
                "column": "Age in years",
                "bins": [0, 30, Decimal("50.5"), 120],
                "missing": "category",
            },
            {
                "name": "is-old",
                "owner": "alice",
                "column": "Age in years",
                "bins": [0, 30, 120],
                "categories": ["no", "yes"],
                "missing": "category",
                "missing_category": "not said",
            },
            {"name": "born", "owner": "alice", "dates": ["1930", "1960-07", "2000"], "date_format": "%d.%m.%Y"},
            {"name": "wage", "owner": "bob", "bins": [0, 2000, 4000, 1000000]},
            {"name": "children", "owner": "bob", "integers": [0, 3], "missing_values": []},
        ],
    }
).encode()
