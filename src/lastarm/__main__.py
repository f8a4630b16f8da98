"""`python -m lastarm` is the `lastarm` command."""

from lastarm.cli import main

main()
