"""`python -m deploy` is `veiltab`."""

from veiltab.deploy.cli import main

main()
