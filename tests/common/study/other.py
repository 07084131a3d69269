"""A study file in which every field is used, and each of its fields changed."""

_HOURS = b"""[[attribute]]
name = "hours"
owner = "bob"
integers = [1, 12]
"""
_SALARY = b"""[[attribute]]
name = "salary"
owner = "bob"
column = "pay"
categories = ["low", "high"]
missing_values = ["NA"]
"""
_CURATORS = b"""[[curator]]
name = "alice"
endpoint = "localhost:7401"
id_columns = ["id"]
normalise = ["strip"]
[[curator]]
name = "bob"
endpoint = "localhost:7402"
complete = true
id_columns = ["id"]
"""
_LINKED = b"""[identity]
fields = ["given", "family", "birth"]
[[curator]]
name = "alice"
endpoint = "localhost:7401"
identity = { given = "first", family = "last", birth = ["year", "month", "day"] }
[[curator]]
name = "bob"
endpoint = "localhost:7402"
complete = true
identity = { given = "first", family = "last", birth = "born" }
date_order = "dmy"
"""
FULL = (
    b"""
[study]
id = "survey"
title = "A survey"
hub = "alice"
minimum_population = 2
maximum_cells = 1000
maximum_tables = 9
maximum_respondents = 8000
alignment = "tokens"
left_out = "stated"
noise_split = 0.25
canaries = 50
[budget]
epsilon = 1
delta = 1e-6
[release]
sampling = "seed"
pad = "chacha20"
[server]
name = "cloud"
endpoint = "localhost:7400"
"""
    + _CURATORS
    + b"""[[researcher]]
name = "rosa"
endpoint = "localhost:7410"
[[researcher]]
name = "rita"
endpoint = "localhost:7411"
[[analyst]]
name = "ana"
researcher = "rosa"
[[analyst]]
name = "ari"
researcher = "rosa"
[[attribute]]
name = "sex"
owner = "alice"
categories = ["f", "m"]
recode = { "1" = "f", "2" = "m" }
[[attribute]]
name = "age"
owner = "alice"
bins = [0, 30, 60, 120]
missing = "unknown"
"""
    + _HOURS
    + _SALARY
    + b"""[nodes]
name = "fleet"
budget_epsilon = 4
strata = ["north", "south"]
[[question]]
name = "commute"
categories = ["bus", "car"]
recode = { "b" = "bus" }
"""
)

_HUB = FULL[FULL.index(b"hub = ") : FULL.index(b"complete = true\n") + 16]

CHANGES: dict[str, tuple[bytes, bytes, str]] = {
    "relay": (b"[server]", b'[relay]\nendpoint = "relay:443"\n\n[server]', "gives another relay"),
    "order of categories": (b'["low", "high"]', b'["high", "low"]', "categories high, low of salary in another order"),
    "a category's label": (b'["low", "high"]', b'["low", "top"]', "lists other categories of salary, with top and "),
    "a category more": (b'["low", "high"]', b'["low", "mid", "high"]', "lists other categories of salary, with mid"),
    "an edge of a bin": (b"[0, 30, 60,", b"[0, 31, 60,", "with [0, 31), [31, 60) and without [0, 30), [30, 60)"),
    "a bin fewer": (b"[0, 30, 60, 120]", b"[0, 30, 120]", "of age, with [30, 120] and without [30, 60), [60, 120]"),
    "category of missing values": (b'missing = "unknown"', b'missing = "none"', "with none and without unknown"),
    "whole numbers": (b"[1, 12]", b"[1, 11]", "lists other categories of hours, without 12"),
    "a recoded value": (b'"2" = "m"', b'"2" = "f"', "gives attribute sex another recode"),
    "missing values": (b'["NA"]', b'["NA", "-"]', "gives attribute salary another missing values"),
    "column of an attribute": (b'"pay"', b'"wage"', "gives attribute salary another column"),
    "owner of an attribute": (b'"bob"\ninteg', b'"alice"\ninteg', "gives attribute hours another owner"),
    "name of an attribute": (b'"hours"', b'"shifts"', "has attribute shifts more, lacks attribute hours"),
    "order of attributes": (_HOURS + _SALARY, _SALARY + _HOURS, "attributes sex, age, salary, hours in another order"),
    "title": (b"A survey", b"The survey", "gives another title"),
    "minimum population": (b"minimum_population = 2", b"minimum_population = 3", "gives another minimum population"),
    "hub": (
        _HUB,
        _HUB.replace(b"complete = true\n", b"")
        .replace(b'hub = "alice"', b'hub = "bob"')
        .replace(b'name = "alice"\n', b'name = "alice"\ncomplete = true\n'),
        "gives another hub",
    ),
    "whom a curator may lack": (b"complete = true\n", b"", "gives curator bob another complete"),
    "maximum of cells": (b"maximum_cells = 1000", b"maximum_cells = 999", "gives another maximum cells"),
    "maximum of tables": (b"maximum_tables = 9", b"maximum_tables = 10", "gives another maximum tables"),
    "maximum of respondents": (b"respondents = 8000", b"respondents = 9000", "gives another maximum respondents"),
    "budget's epsilon": (b"\nepsilon = 1\n", b"\nepsilon = 2\n", "gives another budget epsilon"),
    "budget's delta": (b"delta = 1e-6", b"delta = 1e-5", "gives another budget delta"),
    "a month's share": (b"delta = 1e-6", b"delta = 1e-6\nmonth_share = 0.1", "gives another month share"),
    "sampling": (b'sampling = "seed"', b'sampling = "indices"', "gives another sampling"),
    "alignment": (b'alignment = "tokens"\n', b"", "gives another alignment"),
    "rows left out": (b'left_out = "stated"\n', b"", "gives another left out"),
    "curators' part of the noise": (b"noise_split = 0.25", b"noise_split = 0.5", "gives another noise split"),
    **{
        f"floor {name}": (
            b"canaries = 50\n",
            f"canaries = 50\n{name} = {value}\n".encode(),
            f"another {name}".replace("_", " "),
        )
        for name, value in {
            "minimum_noise_split": "0.1",
            "minimum_tested": '"too little"',
            "maximum_pair_epsilon": "4",
            "maximum_row_epsilon": "40",
        }.items()
    },
    "canaries": (b"canaries = 50\n", b"", "gives another canaries"),
    "pad": (b'"chacha20"', b'"otp"', "gives another pad"),
    "server's name": (b'"cloud"', b'"sky"', "gives another server"),
    "server's endpoint": (b"localhost:7400", b"localhost:7500", "gives another server"),
    "curator's endpoint": (b"localhost:7401", b"localhost:7501", "gives curator alice another endpoint"),
    "id columns": (b'["id"]\nnorm', b'["id", "year"]\nnorm', "gives curator alice another id columns"),
    "forms": (b'["strip"]', b'["strip"]\nforms = { id = { "9+" = 70 } }', "gives curator alice another forms"),
    "most ids": (b'["strip"]', b'["strip"]\nmost_ids = 9', "gives curator alice another most ids"),
    "normalisation": (b'["strip"]', b'["strip", "nfc"]', "gives curator alice another normalise"),
    "first year": (b'["strip"]', b'["strip"]\nfirst_year = 1926', "gives curator alice another first year"),
    "order of dates": (b'["strip"]', b'["strip"]\ndate_order = "dmy"', "gives curator alice another date order"),
    "identity in the place of ids": (_CURATORS, _LINKED, "gives another identity"),
    "a curator more": (
        b'[[researcher]]\nname = "rosa"',
        b'[[curator]]\nname = "carol"\nendpoint = "localhost:7403"\nid_columns = ["id"]\n[[researcher]]\nname = "rosa"',
        "has curator carol more",
    ),
    "researcher's endpoint": (b"localhost:7410", b"localhost:7510", "gives researcher rosa another endpoint"),
    "researcher's name": (b'"rita"', b'"rika"', "has researcher rika more, lacks researcher rita"),
    "analyst's researcher": (b'a"\nresearcher = "rosa"', b'a"\nresearcher = "rita"', "analyst ana another researcher"),
    "analyst's name": (b'"ana"', b'"ina"', "has analyst ina more, lacks analyst ana"),
    "an analyst fewer": (b'[[analyst]]\nname = "ari"\nresearcher = "rosa"\n', b"", "lacks analyst ari"),
    "nodes' name": (b'"fleet"', b'"crowd"', "gives another nodes"),
    "nodes' budget": (b"budget_epsilon = 4", b"budget_epsilon = 5", "gives another nodes"),
    "shares": (b"budget_epsilon = 4", b"budget_epsilon = 4\nshares = { rosa = 1 }", "gives another nodes"),
    "strata": (b'["north", "south"]', b'["south", "north"]', "gives another nodes"),
    "order of a question's categories": (b'["bus", "car"]', b'["car", "bus"]', "car, bus of commute in another order"),
    "a question's recoded value": (b'"b" = "bus"', b'"b" = "car"', "gives question commute another recode"),
    "a question's name": (b'"commute"', b'"travel"', "has question travel more, lacks question commute"),
    "study's id": (b'id = "survey"', b'id = "poll"', "gives another id"),
    "nothing but a comment": (b"\n[study]", b"\n# Ours.\n[study]", "differs in comments, spacing or spelling alone"),
}
"""What is changed -> the bytes of FULL that are, what they become, and what is said of the changed file."""
