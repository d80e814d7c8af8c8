"""`python -m watersmeet` is the command line."""

from watersmeet.cli import main

main()
