"""`python -m bayesring`, the same as the command `bayesring`."""

from bayesring.command.cli import main

if __name__ == "__main__":
    main()
