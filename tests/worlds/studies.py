"""Texts of studies: attributes, two curators who link their rows by identity fields, and a policy."""

FIELDS = ("given", "family", "birth", "sex", "postcode")
APPROVE_ALL = (
    '[[rule]]\nmaximum_pair_epsilon = "any"\nmaximum_row_epsilon = "any"\ntested = "not"\ndecision = "approve"\n'
)
"""A policy that approves everything."""


def attribute_text(name: str, owner: str, *rules: str) -> str:
    return "\n".join(["[[attribute]]", f'name = "{name}"', f'owner = "{owner}"', *rules, ""])


def linked_text(*attributes: str, identity: str = "", hub: str = "hub", spoke: str = "spoke") -> str:
    """Return a study of a hub and a spoke with the fields FIELDS, whose columns have these names."""
    columns = ", ".join(f'{name} = "{name}"' for name in FIELDS)
    curators = "".join(
        f'[[curator]]\nname = "{name}"\nendpoint = "{name}:7401"\nidentity = {{ {columns} }}\n' for name in (hub, spoke)
    )
    names = ", ".join(f'"{name}"' for name in FIELDS)
    return f"""[study]
id = "linked"
title = "Two registers"
hub = "{hub}"
minimum_population = 2
[budget]
epsilon = 3.0
[identity]
{identity}fields = [{names}]
[server]
name = "cloud"
endpoint = "cloud:7400"
[[researcher]]
name = "rosa"
endpoint = "rosa:7410"
{curators}{"".join(attributes)}"""
