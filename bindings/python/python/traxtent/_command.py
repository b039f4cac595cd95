"""The `traxtent` command that the package installs."""

import os
import signal
import sys

from traxtent import _traxtent


def main() -> None:
    """Run the command with the arguments of the process, and exit with its status."""
    # Python's handlers would only note a signal until the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_traxtent.run_command(_program(), sys.argv[1:]))


def _program() -> list[str]:
    """Return the words that start the command again."""
    path = os.path.abspath(sys.argv[0])
    if os.path.basename(path) == "__main__.py":
        # As a script, it would find the modules of the package first, such as `typing`.
        return [sys.executable, "-m", "traxtent"]
    return [sys.executable, path]
