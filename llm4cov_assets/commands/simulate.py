"""`llm4cov sim` and `llm4cov close`: simulation from the command line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm4cov_assets.commands.sandboxing import UnsandboxedOption
from llm4cov_assets.errors import UserError

if TYPE_CHECKING:
    from sim.design import Design
    from sim.simulation import Limits, Simulation, Testbench
    from sim.simulator import Simulator

DesignArgument = Annotated[str, typer.Argument(metavar="DESIGN", help="name in the warehouse, folder or RTL file")]
TopOption = Annotated[str | None, typer.Option("--top", help="top module")]
DefineOption = Annotated[list[str] | None, typer.Option("--define", "-D", help="NAME or NAME=VALUE", metavar="NAME=V")]
IncludeOption = Annotated[list[Path] | None, typer.Option("--include", "-I", help="include folder")]
ParamOption = Annotated[list[str] | None, typer.Option("--param", help="NAME=VALUE of the top", metavar="NAME=V")]
JsonOption = Annotated[bool, typer.Option("--json", help="one JSON object on stdout")]


MOST_SECONDS = 7 * 24 * 3600


def mount(app: typer.Typer) -> None:
    """Register the commands of this module."""
    from llm4cov_assets.commands import doctor

    app.command("sim")(simulate)
    app.command("close")(close)
    app.command("doctor")(doctor.doctor)


def simulate(
    design: DesignArgument,
    testbench: Annotated[
        Path, typer.Argument(metavar="TESTBENCH", help="cocotb (.py) or SystemVerilog (.sv, .v; also a folder) file")
    ],
    timeout: Annotated[float | None, typer.Option(help="wall-clock limit of the run, s (the build has none)")] = None,
    seed: Annotated[int, typer.Option(min=-(2**63), max=2**63 - 1, help="random seed of the simulation")] = 0,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="simulate even if the result is known")] = False,
    retry_faults: Annotated[bool, typer.Option("--retry-faults", help="run stored machine faults again")] = False,
    waves: Annotated[Path | None, typer.Option(help="write the waveforms to this file (.vcd or .fst)")] = None,
    fsm: Annotated[
        bool, typer.Option("--fsm", help="coverage of state machines too, from a second build (beside the score)")
    ] = False,
    lcov: Annotated[
        Path | None, typer.Option(help="write lines and branches as an LCOV tracefile, for genhtml")
    ] = None,
    dat: Annotated[
        Path | None, typer.Option(help="write a coverage.dat for verilator_coverage --annotate-min 1")
    ] = None,
    language: Annotated[str | None, typer.Option(help="cocotb or systemverilog; by the file's name")] = None,
    top: TopOption = None,
    define: DefineOption = None,
    include: IncludeOption = None,
    param: ParamOption = None,
    unsandboxed: UnsandboxedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Simulate one testbench on one design and show its coverage. Exit code 0 only when it passed.

    Counts in --lcov and --dat are 1 for what was reached and 0 for what was not; file names are relative to the
    design's folder. Exclusions (waivers) do not change them.
    """
    from llm4cov_assets.commands import adhoc, show
    from llm4cov_assets.home import home
    from sim.coverage import files
    from sim.simulator import Simulator

    bench = read_bench(testbench, language)
    exports = {"--waves": waves, "--lcov": lcov, "--dat": dat}
    for option, path in exports.items():
        _refuse_unwritable(option, path)
    if waves is not None and waves.suffix not in (".vcd", ".fst"):
        raise UserError(f"--waves {waves}: give the file a name that ends with .vcd or .fst")
    subject = find(design, top, define, include, param)
    limits = limits_of(timeout)
    with Simulator(home(), workers=1, retry_faults=retry_faults, read_cache=not no_cache) as simulator:
        if not simulator.toolchain.is_ready:
            show.say("compiling the simulator's runtime, once for this home: a minute or two")
        with show.working(f"simulating {testbench.name} on {subject.name}"):
            if waves is None and not fsm:
                [result] = simulator.run_many(subject, [bench], limits=limits, seed=seed)
            else:
                result = _examined(simulator, subject, bench, waves, fsm, limits=limits, seed=seed)
        adhoc.record_simulations(home(), subject, [bench], [result], simulator.points)
        found = files(simulator.points(result.build_id), result.hits) if result.hits else ()
        deterministic = simulator.finished_build(result.build_id).deterministic if result.hits else None
        _export(simulator, result, bench, lcov, dat)
    if as_json:
        more = {"files": found, "deterministic": deterministic}
        print(json.dumps(result.as_json() | more, ensure_ascii=False))
    else:
        log = home() / "reports" / "logs" / f"{result.simulation_id}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(result.log, encoding="utf-8")
        written = {option.lstrip("-"): path for option, path in exports.items()}
        show.simulation(subject, testbench, result, log, written, found)
        if deterministic is False:
            show.say(f"{subject.name} is not a function of its inputs ($random, files): no run of it is called forged")
    raise typer.Exit(0 if result.status == "passed" else 1)


def limits_of(timeout: float | None) -> Limits:
    """The limits of a simulation that may take `timeout` seconds; None is the default. UserError for a wrong one."""
    from dataclasses import replace

    from sim.simulation import Limits

    if timeout is None:
        return Limits()
    if not 0 < timeout <= MOST_SECONDS:
        raise UserError(f"--timeout {timeout:g}: must be more than 0 and at most {MOST_SECONDS} seconds")
    return replace(Limits(), wall_s=timeout, cpu_s=timeout)


def _examined(
    simulator: Simulator, design: Design, bench: Testbench, waves: Path | None, fsm: bool, *, limits: Limits, seed: int
) -> Simulation:
    from sim.build import BuildError
    from sim.toolchain import ToolError

    try:
        return simulator.run_examined(design, bench, waves=waves, fsm=fsm, limits=limits, seed=seed)
    except (BuildError, ToolError) as error:
        raise UserError(f"no waveforms of {design.name}: {error}") from None


def _refuse_unwritable(option: str, path: Path | None) -> None:
    """Before anything is simulated: a place that cannot be written must not cost the results."""
    if path is not None and (path.is_dir() or not os.access(path.absolute().parent, os.W_OK)):
        raise UserError(f"{option} {path}: give a file in a folder that exists and can be written")


def _export(simulator: Simulator, result: Simulation, bench: Testbench, lcov: Path | None, dat: Path | None) -> None:
    from sim import export

    wanted = [("--lcov", lcov), ("--dat", dat)]
    if not result.hits:
        for option, path in wanted:
            if path is not None:
                print(f"llm4cov: {option} {path}: not written, {result.status} gives no coverage", file=sys.stderr)
        return
    build = simulator.finished_build(result.build_id)
    for option, path in wanted:
        if path is None:
            continue
        if option == "--lcov":
            content = export.lcov(build.points, result.hits, bench.testbench_id).encode()
        else:
            content = export.verilator_data(build.raw_points, build.coverage_data, result.hits)
        try:
            path.write_bytes(content)
        except OSError as error:
            raise UserError(f"{option} {path}: {error.strerror or error}; name a file that can be written") from error


def close(
    design: DesignArgument,
    rounds: Annotated[int, typer.Option(min=0, help="repair rounds after the drafts")] = 8,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="policy, repeatable; default: newest student and the scripted partners"),
    ] = None,
    budget_sims: Annotated[int, typer.Option(min=1, help="logical simulations, at most")] = 64,
    samples: Annotated[int, typer.Option(min=1, help="proposals of each policy in a round")] = 4,
    target: Annotated[float, typer.Option(min=0.0, max=1.0, help="merged coverage that is enough")] = 1.0,
    seed: Annotated[int, typer.Option(min=-(2**63), max=2**63 - 1, help="seed of the policies")] = 0,
    out: Annotated[Path | None, typer.Option(help="folder for the testbenches and the summary")] = None,
    top: TopOption = None,
    define: DefineOption = None,
    include: IncludeOption = None,
    param: ParamOption = None,
    unsandboxed: UnsandboxedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the best testbenches for one design. Ctrl-C keeps what there is. Exit code 1 when no testbench runs."""
    from functools import partial

    from llm4cov_assets.commands import adhoc, show
    from llm4cov_assets.home import home
    from llm4cov_assets.learning import closure
    from llm4cov_assets.policy.portfolio import portfolio
    from llm4cov_assets.report.closure import closure_summary, write_closure
    from sim.simulation import Limits
    from sim.simulator import Simulator

    subject = find(design, top, define, include, param)
    policies = portfolio(policy or (), home())
    if out is not None:
        _make_folder(out)
    names = [f"{p.name} (checkpoint {p.checkpoint_id[:8]})" if p.checkpoint_id else p.name for p in policies]
    show.say(f"{subject.name}: closing with {', '.join(names)}")
    with Simulator(home()) as simulator, show.closing(budget_sims) as progress:
        result = closure.close_coverage(
            subject,
            policies,
            partial(simulator.run_batches, limits=Limits(), seed=seed),
            points=simulator.points,
            rounds=rounds,
            budget_sims=budget_sims,
            seed=seed,
            target=target,
            samples=samples,
            progress=progress,
        )
        adhoc.record_closure(home(), result, policies, simulator.points)
    summary = closure_summary(result)
    if out is not None:
        write_closure(result, summary, out)
    if as_json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        show.closure(summary, out)
    raise typer.Exit(0 if result.best is not None else 1)


def find(
    design: str,
    top: str | None = None,
    define: Sequence[str] | None = None,
    include: Sequence[Path] | None = None,
    param: Sequence[str] | None = None,
) -> Design:
    """The design that a DESIGN argument and its options name; DesignError or UserError if there is none."""
    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.registry import find_design, overlooked

    folder = overlooked(design, home())
    if folder is not None:
        print(f"llm4cov: {design} is a design of that name; ./{folder} names the folder", file=sys.stderr)
    found = find_design(
        design,
        home(),
        top=top,
        defines=pairs("--define", define, "1"),
        include_dirs=list(include or ()),
        parameters=pairs("--param", param, None),
    )
    if param:
        refuse_parameters(found)
    return found


def refuse_parameters(design: Design) -> None:
    """Raise UserError for a parameter that the top does not have, or a value that means nothing."""
    from sim.survey import survey

    values = {p.name: p.value for p in survey(design).parameters if p.overridable}
    for name, value in design.parameters:
        if name not in values:
            having = f"it has {', '.join(values)}" if values else "it has none"
            raise UserError(f"{design.name}: {design.top} has no parameter {name!r} to override; {having}")
        if values[name] == "<unset>":
            raise UserError(
                f"{design.name}: {name}={value} is no value; write a number such as 8 or 8'hff, or a string"
            )


def pairs(option: str, texts: Sequence[str] | None, default: str | None) -> dict[str, str]:
    """NAME=VALUE as a person gave them with `option`; a NAME alone has the value `default`, if there is one."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name.strip() or (not equals and default is None):
            raise UserError(f"{option} {text}: write NAME=VALUE")
        found[name.strip()] = value if equals else default
    return found


def _make_folder(out: Path) -> None:
    """Before anything is simulated: a place that cannot be written must not cost the results."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror or error}; name a folder that can be written") from error


def read_bench(path: Path, language: str | None) -> Testbench:
    """The testbench that a TESTBENCH argument names; UserError if there is none."""
    from sim.reading import TestbenchError, read_testbench

    if language not in (None, "cocotb", "systemverilog"):
        raise UserError(f"--language {language}: must be cocotb or systemverilog")
    try:
        return read_testbench(path, language)  # type: ignore[arg-type]  # checked above
    except TestbenchError as error:
        raise UserError(str(error)) from None
