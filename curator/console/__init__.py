"""The console of a curator: pages for the persons who decide.

Each module with `page` in its name has one page or two: what it shows comes from the state that the commands read too
(`books`), and what a person decides goes through `veiltab.curator.officer.verdicts`.
"""
