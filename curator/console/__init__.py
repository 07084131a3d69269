# Imported by cli; may import party and what is below.
"""The console of a curator: pages for the persons who decide.

Each module with `page` in its name has one page or two: what it shows comes from the state that the commands read too
(`state_reader`), and what a person decides goes through `veiltab.curator.officer.verdicts`.
"""
