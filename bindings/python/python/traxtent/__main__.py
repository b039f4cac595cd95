"""Runs the command as `python -m traxtent`."""

from traxtent._command import main

if __name__ == "__main__":
    main()
