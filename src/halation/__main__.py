"""`python -m halation`."""

from halation.cli import main

if __name__ == "__main__":
    main()
