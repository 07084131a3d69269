"""Texts of studies: attributes, and two curators who link their rows by identity fields."""

FIELDS = ("given", "family", "birth", "sex", "postcode")


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
