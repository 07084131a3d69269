"""`python -m deploy` is `veiltab`."""

from deploy.cli import main

main()
