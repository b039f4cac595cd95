"""The `traxtent` command that the package installs."""

import os
import signal
import sys

from traxtent import _traxtent


def main() -> None:
    """Run the command with the arguments of the process, and exit with its status."""
    # Python's handlers would only note a signal until the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = [sys.executable, os.path.abspath(sys.argv[0])]
    sys.exit(_traxtent.run_command(program, sys.argv[1:]))
