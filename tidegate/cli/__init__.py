"""The command line: `tidegate COMMAND ...`.

One module a command, listed in `group.COMMANDS` and imported when it is asked for, so that `tidegate --help` starts
without the sidecar, and importing this package imports nothing at all.
"""

from __future__ import annotations


def main() -> None:
    """Run the command that `sys.argv` names, then exit with a code of `exit_codes`."""
    from tidegate.cli.import_path import leave_out_working_directory

    leave_out_working_directory()

    from tidegate.cli.group import tidegate

    tidegate(prog_name="tidegate")
