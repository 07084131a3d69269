"""A study with every way of coding a column, for rehearsals of it."""

STUDY = b"""
[study]
id = "wages"
title = "Wages and schools"
hub = "alice"
minimum_population = 50
alignment = "tokens"
left_out = "stated"

[budget]
epsilon = 3.0
delta = 1e-5

[release]
pad = "otp"

[server]
name = "cloud"
endpoint = "cloud.example.org:7400"

[[curator]]
name = "alice"
endpoint = "alice.example.org:7401"
id_columns = ["pid", "part"]
normalise = ["strip"]

[[curator]]
name = "bob"
endpoint = "bob.example.org:7402"
id_columns = ["person", "number"]

[[researcher]]
name = "rosa"
endpoint = "rosa.example.org:7410"

[[analyst]]
name = "ana"
researcher = "rosa"

[[attribute]]
name = "school"
owner = "alice"
categories = ["none", "some", "unknown"]
recode = { "HS" = "some", "BA, or more" = "some" }
missing = "unknown"

[[attribute]]
name = "age"
owner = "alice"
column = "Age in years"
bins = [0, 30, 50.5, 120]
missing = "category"

[[attribute]]
name = "is-old"
owner = "alice"
column = "Age in years"
bins = [0, 30, 120]
categories = ["no", "yes"]
missing = "category"
missing_category = "not said"

[[attribute]]
name = "born"
owner = "alice"
dates = ["1930", "1960-07", "2000"]
date_format = "%d.%m.%Y"

[[attribute]]
name = "wage"
owner = "bob"
bins = [0, 2000, 4000, 1000000]

[[attribute]]
name = "children"
owner = "bob"
integers = [0, 3]
missing_values = []
"""
