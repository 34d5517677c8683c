"""`python -m longtake` is the program `longtake`."""

from longtake.cli import main

if __name__ == "__main__":
    main()
