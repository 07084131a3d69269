"""Every check of the containers, in the order in which they run.

A check is a function of the stack: it returns a remark, or raises what is broken, and leaves all parties running.
"""

from collections.abc import Callable

from veiltab.deploy.compose.releases import (
    curator_killed,
    network_cut,
    orderly_end,
    quiet,
    release,
    server_killed,
    switch_down,
)
from veiltab.deploy.compose.rounds import collection
from veiltab.deploy.compose.stack import Stack
from veiltab.deploy.compose.walls import cages, certificates, doors, ways_out

CHECKS: tuple[tuple[str, Callable[[Stack], str]], ...] = (
    ("containers are cages", cages),
    ("only the connections of the protocol", doors),
    ("no way out", ways_out),
    ("no certificate, no answer", certificates),
    ("a release gives the right answer", release),
    ("a curator killed in the middle", curator_killed),
    ("the server killed in the middle", server_killed),
    ("the server's network cut for ten seconds", network_cut),
    ("the curators' network down for ten seconds", switch_down),
    ("a round of collection", collection),
    ("nothing went wrong beside it", quiet),
    ("an orderly end, and a start again", orderly_end),
)
"""Every check with its name, in the order in which they run."""
