"""`python -m numalign.cli`: the command where it is not on the path."""

from numalign.cli.main import main

main()
