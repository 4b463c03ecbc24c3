"""The command line `llm4cov`. Commands live in `commands/`; this module mounts them and turns errors into one line."""

from __future__ import annotations

import contextlib
import errno
import shutil
import sys
import tempfile

import typer
from typer._click.exceptions import NoArgsIsHelpError, UsageError

from llm4cov_assets.commands import cache, designs, export, inbox, pipeline, query, simulate
from llm4cov_assets.errors import UserError
from llm4cov_assets.home import home
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

_INTERRUPTED = 130
_LITTLE = 64 << 20  # bytes of free space that hint at the place where they ran out

app = typer.Typer(
    name="llm4cov",
    help="Teach a small language model to write high-coverage testbenches, and use it on new designs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
designs.mount(app)
inbox.mount(app)
simulate.mount(app)
cache.mount(app)
pipeline.mount(app)
query.mount(app)
export.mount(app)


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the answer is "failed", 2 wrong usage or unreadable input."""
    try:
        code = app(standalone_mode=False)
        if code == _INTERRUPTED:  # typer makes this of KeyboardInterrupt, without a word
            raise KeyboardInterrupt
        sys.exit(code)
    except NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except UsageError as error:
        fail(f"{error.format_message()} See: {error.ctx.command_path if error.ctx else app.info.name} --help")
    except (UserError, DesignError, WarehouseError, ToolError) as error:
        fail(str(error))
    except OSError as error:
        if error.errno in MACHINE:
            fail(f"{error.strerror}{_where(error)}: {MACHINE[error.errno]}; what is stored stays as it is")
        if error.filename is None:  # no file that a person named
            raise
        fail(f"{error.strerror}{_where(error)}: check this path")
    except (KeyboardInterrupt, typer.Abort):
        print("llm4cov: interrupted; what was finished is stored, the same command goes on from there", file=sys.stderr)
        sys.exit(_INTERRUPTED)


def _where(error: OSError) -> str:
    """The place that `error` is about. Of a copy it names the source, which is not where space is missing."""
    names = [error.filename2 or error.filename]
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        with contextlib.suppress(OSError):
            places = [str(home()), tempfile.gettempdir()]
            names = [p for p in places if shutil.disk_usage(p).free < _LITTLE] or places[:1]
    return f" ({', '.join(str(n) for n in names)})" if names[0] else ""


def fail(message: str) -> None:
    """Print one line on stderr and leave with 2."""
    print(f"llm4cov: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
