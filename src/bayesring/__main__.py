"""`python -m bayesring`, the same as the command `bayesring`."""

from bayesring.cli import main

if __name__ == "__main__":
    main()
