"""The command line `llm4cov`. Commands live in `commands/`; this module mounts them and turns errors into one line."""

from __future__ import annotations

import sys

import typer

from llm4cov_assets.commands import designs, pipeline, query, simulate
from llm4cov_assets.errors import UserError
from sim.design import DesignError

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
    except (UserError, DesignError) as error:
        print(f"llm4cov: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("llm4cov: interrupted; what was finished is stored, the same command goes on from there", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
