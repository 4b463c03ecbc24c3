"""The command line `llm4cov`. Commands live in `commands/`; this module mounts them and turns errors into one line."""

from __future__ import annotations

import errno
import sys

import typer

from llm4cov_assets.commands import designs, pipeline, query, simulate
from llm4cov_assets.errors import UserError
from sim.design import DesignError
from sim.toolchain import ToolError
from warehouse.errors import WarehouseError

MACHINE = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "the disk quota is used up; free some space there",
    errno.EROFS: "choose a writable folder with LLM4COV_HOME",
    errno.EACCES: "give this user access, or choose another folder with LLM4COV_HOME",
    errno.EPERM: "give this user access, or choose another folder with LLM4COV_HOME",
}
"""What the machine may refuse, and the mend."""

app = typer.Typer(
    name="llm4cov",
    help="Teach a small language model to write high-coverage testbenches, and use it on new designs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
designs.mount(app)
simulate.mount(app)
pipeline.mount(app)
query.mount(app)


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the answer is "failed", 2 wrong usage or unreadable input."""
    try:
        app()
    except (UserError, DesignError, WarehouseError, ToolError) as error:
        fail(str(error))
    except OSError as error:
        if error.errno not in MACHINE:
            raise
        where = f" ({error.filename})" if error.filename else ""
        fail(f"{error.strerror}{where}: {MACHINE[error.errno]}; what is stored stays as it is")
    except KeyboardInterrupt:
        print("llm4cov: interrupted; what was finished is stored, the same command goes on from there", file=sys.stderr)
        sys.exit(130)


def fail(message: str) -> None:
    """Print one line on stderr and leave with 2."""
    print(f"llm4cov: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
