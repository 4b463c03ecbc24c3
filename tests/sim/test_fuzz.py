"""Readers of what others wrote meet bytes that nobody meant: they answer or refuse, they never raise and never hang.

`LLM4COV_FUZZ=N` tries N times as many examples, drawn anew (`script/soak fuzz`); without it they are few and always
the same.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.cache import SimulationCache
from sim.coverage import CoverageError, parse_coverage, summarise
from sim.engine import LOG_BYTES, Tests, _read_log, _read_tests, untold_errors
from sim.identity import canonical
from sim.simulation import Simulation, Testbench
from sim.simulator import Simulator
from tests.sim.conftest import COUNTER, design, test_body

TIMES = int(os.environ.get("LLM4COV_FUZZ", "1"))
HANG_S = 120
"""A reader that takes this long for one small input hangs."""

CORPUS = Path(__file__).resolve().parents[2] / "llm4cov_assets" / "corpus"


def fuzz(examples: int) -> settings:
    return settings(
        max_examples=examples * TIMES,
        derandomize=TIMES == 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@contextlib.contextmanager
def watched(what: object) -> Iterator[None]:
    """Fail, naming the input, when the block hangs."""

    def late(signum: int, frame: object) -> None:
        raise AssertionError(f"hangs on {what!r}"[:500])

    before = signal.signal(signal.SIGALRM, late)
    left = signal.alarm(HANG_S)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.alarm(left)


def mutated(originals: list[bytes], tokens: list[bytes]) -> st.SearchStrategy[bytes]:
    """One of `originals` after a few edits: pieces cut out, doubled, swapped, overwritten, or tokens put in."""
    place = st.integers(0, max(map(len, originals)))
    edit = st.tuples(
        st.sampled_from(["cut", "double", "move", "write", "put"]),
        place,
        st.integers(0, 200),
        place,
        st.one_of(st.sampled_from(tokens), st.binary(max_size=8)),
    )

    def apply(original: bytes, edits: list[tuple[str, int, int, int, bytes]]) -> bytes:
        data = original
        for kind, at, size, to, piece in edits:
            at, to = at % (len(data) + 1), to % (len(data) + 1)
            part = data[at : at + size]
            if kind == "cut":
                data = data[:at] + data[at + size :]
            elif kind == "double":
                data = data[:at] + part * 2 + data[at + size :]
            elif kind == "move":
                data = data[:to] + part + data[to:]
            elif kind == "write":
                data = data[:at] + piece + data[at + len(piece) :]
            else:
                data = data[:at] + piece + data[at:]
        return data

    return st.builds(apply, st.sampled_from(originals), st.lists(edit, min_size=1, max_size=6))


# ---- coverage data files


def point(comment: str, count: int, page: str = "v_line/top", hier: str = "TOP.top.u") -> str:
    place = f"\x01f\x02a%20b.sv\x01l\x02{len(comment)}\x01n\x025\x01t\x02x\x01page\x02{page}"
    return f"C '{place}\x01o\x02{comment}\x01h\x02{hier}' {count}\n"


VALID = (
    "# SystemC::Coverage-3\n"
    + "".join(point(c, n) for n, c in enumerate(["block", "if", "a %22b%22 'sh7", "%FFFFFFC3%FFFFFFA9", "block"]))
    + "".join(point("q[3]:0->1", 7, f"v_{kind}/top") for kind in ("toggle", "branch", "expr", "user", "covergroup"))
    + point("st::IDLE\x01Fv\x02top.u.st\x01Ft\x02IDLE", 2, "v_fsm_state/$root", "TOP.TOP")
).encode()
PIECES = [
    b"C '", b"' 1\n", b"\n", b"\r", b"#", b"\x01", b"\x02", b"\x01o\x02", b"\x01h\x02", b"\x01f\x02", b"\x01l\x02",
    b"\x01Fv\x02", b"%", b"%FF", b"%FFFFFFFF", b"'", b"9" * 30, b"-1", b"\x00", b"\xff", "\u2028".encode(), b"TOP.top",
]  # fmt: skip


def read_coverage(data: bytes) -> None:
    with watched(data):
        try:
            found = parse_coverage(data, top="top", sources={"a b.sv": "x\ny"})
        except CoverageError as error:
            assert "\n" not in str(error)
            return
        summarise(found.points, found.hits)
    assert len(found.points) == len(found.counts) <= len(found.rows)


@fuzz(400)
@given(st.one_of(st.binary(max_size=2000), mutated([VALID], PIECES)))
def test_any_bytes_are_coverage_or_a_coverage_error(data: bytes) -> None:
    read_coverage(data)


@pytest.mark.parametrize("piece", PIECES, ids=repr)
@pytest.mark.parametrize("tail", [b"' 1\n", b"\n", b""], ids=["point", "line", "cut"])
def test_endless_lines_of_coverage_are_read_in_time(piece: bytes, tail: bytes) -> None:
    read_coverage(b"C '\x01f\x02x" + piece * 100_000 + tail)


# ---- what a testbench leaves behind

json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.integers(10**300, 10**301), st.floats(), st.text(max_size=20),
        st.sampled_from(["\ud800", "\x00", "passed", "00", "zz"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)  # fmt: skip
KEYS = ["loaded", "total", "passed", "failed", "skipped", "errors", "line", "message", "type"]
claims = st.fixed_dictionaries(
    {},
    optional={
        **{key: json_values for key in KEYS},
        "loaded": st.one_of(st.just(True), json_values),
        **{key: st.one_of(st.integers(0, 5), json_values) for key in ("total", "passed", "failed", "skipped")},
        "errors": st.one_of(st.lists(st.dictionaries(st.sampled_from(KEYS), json_values, max_size=4)), json_values),
    },
)


def dumps(value: object) -> bytes:
    """JSON as Python writes it: NaN and Infinity too."""
    return json.dumps(value).encode()


DEEP = [b"[" * 100_000, b'{"a":' * 100_000, b'{"errors": [' + b'{"message": [' * 5000, b"9" * 100_000, b"-1e999999"]
HONEST = dumps({"loaded": True, "total": 2, "passed": 1, "failed": 1, "skipped": 0,
                "errors": [{"type": "ValueError", "message": "x", "line": 2}]})  # fmt: skip


def read_claims(path: Path) -> None:
    with watched(path):
        tests = _read_tests(path)
        log = _read_log(path)
        assert isinstance(tests, Tests) and len(log) <= LOG_BYTES
        for line in untold_errors(tests, "a = 1\nb = 2\n", log):
            line.encode()


@fuzz(200)
@given(
    st.one_of(st.binary(max_size=300), st.one_of(claims, json_values).map(dumps), mutated([HONEST], [b"1e999", b"["]))
)
def test_whatever_a_testbench_writes_is_a_claim_or_nothing(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        read_claims(Path(file.name))


@pytest.mark.parametrize("data", DEEP, ids=lambda data: repr(data[:8]))
def test_deep_and_huge_json_is_nothing_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "tests.json").write_bytes(data)
    read_claims(tmp_path / "tests.json")


def odd_files(folder: Path) -> list[Path]:
    """What can stand where a file is expected: nothing, a folder, a pipe, links to files, devices and themselves."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    for name, target in {"loop": "loop", "zero": "/dev/zero", "secret": "/etc/passwd", "to_pipe": "pipe"}.items():
        (folder / name).symlink_to(target)
    (folder / "unreadable").write_bytes(HONEST)
    (folder / "unreadable").chmod(0)
    return [folder / name for name in ("nothing", "folder", "pipe", "loop", "zero", "secret", "to_pipe", "unreadable")]


def test_what_is_no_ordinary_file_is_nothing_said(tmp_path: Path) -> None:
    for path in odd_files(tmp_path):
        read_claims(path)
    for path in odd_files(tmp_path / "x" if (tmp_path / "x").mkdir() is None else tmp_path)[:7]:
        assert (_read_tests(path), _read_log(path)) == (Tests(), "")


# ---- results in the cache


@pytest.fixture(scope="module")
def stored(simulator: Simulator) -> tuple[Simulator, Path, dict[str, Any]]:
    """A simulation that is in the cache: its file and entry."""
    subject, bench = design(COUNTER), Testbench(test_body("await ClockCycles(dut.clk, 3)"))
    [result] = simulator.run_many(subject, [bench])
    assert result.status == "passed"
    [path] = [p for p in simulator.home.rglob("*.json.gz") if p.name.startswith(result.simulation_id)]
    return simulator, path, json.loads(gzip.decompress(path.read_bytes()))


def from_cache(stored: tuple[Simulator, Path, dict[str, Any]], data: bytes | None) -> Simulation | None:
    """What the simulator makes of `data` (None: of what lies there) where the result of its entry is expected."""
    simulator, path, entry = stored
    if data is not None:
        path.unlink(missing_ok=True)
        path.write_bytes(data)
    with watched(data):
        found = simulator._from_cache(entry["key"], path.name[:32], design(COUNTER))
    assert found is None or json.dumps(found.as_json(), ensure_ascii=True)
    return found


@fuzz(200)
@given(data=st.data())
def test_any_entry_of_the_cache_is_a_result_or_missing(stored: Any, data: st.DataObject) -> None:
    _, _, entry = stored
    result = dict(entry["result"])
    for name in data.draw(st.lists(st.sampled_from([*result, "other"]), max_size=3)):
        if data.draw(st.booleans()):
            result.pop(name, None)
        else:
            result[name] = data.draw(json_values)
    packed = gzip.compress(dumps({"key": entry["key"], "result": result}), compresslevel=1)
    torn = mutated([packed], [b"\x00", b"\xff"])
    from_cache(stored, data.draw(st.one_of(st.just(packed), torn, st.binary(max_size=99))))


@pytest.mark.parametrize("value", [*DEEP, b"null", b"NaN", b"[]"], ids=lambda data: repr(data[:8]))
def test_a_result_that_is_no_result_is_missing(stored: Any, value: bytes) -> None:
    key = canonical(stored[2]["key"])
    assert from_cache(stored, gzip.compress(b'{"key":' + key + b',"result":' + value + b"}")) is None
    assert from_cache(stored, gzip.compress(value)) is None


def test_what_is_no_ordinary_file_is_no_entry(stored: Any, tmp_path: Path) -> None:
    _, path, entry = stored
    for odd in odd_files(tmp_path)[:7]:
        path.unlink(missing_ok=True)
        if odd.exists() or odd.is_symlink():
            path.symlink_to(odd)
        assert from_cache(stored, None) is None
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert from_cache(stored, None) is None
    path.unlink()
    SimulationCache(path.parents[1]).put(entry["key"], entry["result"])
    assert from_cache(stored, None) is not None


# ---- designs

LOADER = """
import sys, traceback
from pathlib import Path
from sim.design import DesignError
from sim.load import load_design
for line in sys.stdin:
    try:
        load_design(Path(line.rstrip("\\n")))
        said = "read"
    except DesignError as error:
        said = "refused" if str(error).replace("\\t", " ").isprintable() else f"refused unprintably: {error!r}"
    except BaseException:
        said = repr(traceback.format_exc())
    print(said, flush=True)
"""


class Loader:
    """Loads designs in a process of its own: the parser is C++ and could take this one down."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def load(self, path: Path) -> str:
        """`read`, `refused`, or what went wrong."""
        process = self._process
        if process is None:
            command = [sys.executable, "-c", LOADER]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._process = process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], HANG_S)
        said = process.stdout.readline().strip() if ready else "hangs"
        if not ready or not said:
            self.close()
            return said or f"died, exit code {process.returncode}"
        return said

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def loader() -> Iterator[Loader]:
    opened = Loader()
    yield opened
    opened.close()


def load(loader: Loader, files: dict[str, bytes]) -> str:
    """Load a folder of `files`, or its one RTL file; fails unless it is read or refused."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "box"
        root.mkdir()
        for name, content in files.items():
            with contextlib.suppress(OSError, ValueError):  # a name that cannot be one, or that is a folder already
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(content)
        said = loader.load(root)
    assert said in ("read", "refused"), (said, files)
    return said


RTL = [
    *(path.read_bytes() for path in sorted(CORPUS.glob("*/*.sv"))[:12]),
    COUNTER.encode(),
    b'`include "w.svh"\n`ifdef X\n`define Y(a) a+`W\n`endif\nmodule m(input logic a); endmodule\n',
    b"package p; parameter int W = 3; typedef enum logic [1:0] {A, B} e; endpackage\n"
    b"module m import p::*; #(parameter type T = logic)(input T a, output e y); n #(.W(W)) u(.*); endmodule\n"
    b"module n #(parameter W = 1)(input a); generate if (W > 2) n #(W - 1) u(.a); endgenerate endmodule\n",
    b"interface i(input c); logic d; modport s(input d); endinterface\nmodule m(i.s x, input c); endmodule\n",
]
WORDS = [
    b"module ", b"endmodule\n", b"begin ", b"end ", b"generate ", b"for (genvar i=0;i<100000;i++) ", b"#(", b"(", b")",
    b"[", b"]", b"{", b"}", b"'", b'"', b";", b"`define A `A\n", b"`A", b'`include "box.sv"\n', b"`include <w.svh>\n",
    b"`ifdef ", b"`endif\n", b"/*", b"*/", b"//", b"\\", b"32'hx", b"999999999999", b"1'b", b"import p::*;", b"$",
    b"function automatic ", b"class c; endclass ", b"program ", b"config ", b"bind ", b"\x00", b"\xff", b"\xef\xbb\xbf",
    b"\r", b"parameter W = ", b"W ** W ** W", b"localparam [2147483647:0] x = 1;", b"m u(.*);", b"always_comb ",
    b"while (1) ", b"`line 1 \"/etc/passwd\" 1\n", b"`begin_keywords \"1364-1995\"\n", b"`pragma protect begin\n",
    b"{4294967295{1'b1}}", b"+:", b"?:", b"e::A", b"typedef ", b"typedef T;", b"struct packed {",
]  # fmt: skip
TOML = (
    b'name = "box"\ntop = "counter"\nsplit = "train"\nsources = ["*.sv"]\ninclude_dirs = ["inc"]\nclock = "clk"\n'
    b'reset = "!rst_n"\nspec = "spec.md"\n[defines]\nX = 1\n[parameters]\nW = 8\n[targets]\nline = 0.9\n'
    b'[[exclude]]\nfile = "box.sv"\nlines = "1-2"\ninstance = "counter.*"\nmetric = "line"\nreason = "x"\n'
)
SETTING_WORDS = [
    b'"/etc/*"', b'"../*"', b'"**"', b'""', b'"\\u0000"', b'"."', b'".."', b'"/"', b"[", b"]", b"[[exclude]]\n", b"nan",
    b"inf", b"1e999", b"9" * 5000, b"-1", b"true", b"1979-05-27", b"{", b"}", b'"' + b"a" * 300 + b'"', b"'''", b"=",
    b"\n", b"lines = 3\n", b'lines = "9-1"\n', b'"~root"', b'"\\n"', b"a.b.c = 1\n", b"reason = ''\n", b"\xff",
]  # fmt: skip
toml_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.booleans(), st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=12),
        st.sampled_from(["/etc/*", "../*", "**", "", "\0", ".", "..", "/", "box.sv", "../box", "1-2", "3-", "*"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip
SETTINGS = ["name", "top", "split", "sources", "include_dirs", "defines", "parameters", "clock", "reset", "targets",
            "spec", "exclude"]  # fmt: skip


def toml(value: Any) -> str:
    """A value in TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    return json.dumps(value) if isinstance(value, bool | str) else repr(value)


@fuzz(120)
@given(
    st.one_of(st.binary(max_size=400), mutated(RTL, WORDS)), st.one_of(st.just(b""), mutated([b"`define W 3\n"], WORDS))
)
def test_any_rtl_is_a_design_or_refused(loader: Loader, rtl: bytes, header: bytes) -> None:
    load(loader, {"box.sv": rtl, "w.svh": header})


@fuzz(40)
@given(st.lists(mutated(RTL, WORDS), min_size=2, max_size=3))
def test_any_files_of_rtl_together_are_a_design_or_refused(loader: Loader, files: list[bytes]) -> None:
    load(loader, {f"f{i}.sv": content for i, content in enumerate(files)})


@fuzz(120)
@given(
    st.one_of(
        mutated([TOML], SETTING_WORDS),
        st.binary(max_size=200),
        st.dictionaries(st.sampled_from(SETTINGS), toml_values, max_size=3).map(
            lambda found: "".join(f"{key} = {toml(value)}\n" for key, value in found.items()).encode("utf-8", "replace")
        ),
    ),
    st.sampled_from(["design.toml", "exclusions.toml"]),
)
def test_any_settings_are_a_design_or_refused(loader: Loader, text: bytes, name: str) -> None:
    load(loader, {"box.sv": COUNTER.encode(), "inc/w.svh": b"", "spec.md": b"It counts.\n", name: text})


@fuzz(60)
@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=3), st.sampled_from([".sv", ".v", ".svh", ""]))
def test_any_names_are_a_design_or_refused(loader: Loader, names: list[bytes], suffix: str) -> None:
    load(loader, {os.fsdecode(name) + suffix: COUNTER.encode() for name in names})


def test_the_settings_that_are_mutated_are_good_ones(loader: Loader) -> None:
    tomllib.loads(TOML.decode())
    assert load(loader, {"box.sv": COUNTER.encode(), "inc/w.svh": b"", "spec.md": b"", "design.toml": TOML}) == "read"
    assert parse_coverage(VALID, top="top").points


@pytest.mark.parametrize(
    "rtl",
    [
        b"module m(input a); assign b = " + b"(" * 20_000 + b"a" + b")" * 20_000 + b"; endmodule\n",
        b"module m(input a);" + b" begin" * 20_000 + b" end" * 20_000 + b" endmodule\n",
        b"module m(input a); assign b = " + b"~" * 20_000 + b"a; endmodule\n",
        b"module m(input a); assign b = a" + b"+a" * 50_000 + b"; endmodule\n",
        b"module m(input a); assign b = " + b"a?a:" * 20_000 + b"a; endmodule\n",
        b"`define A `A `A\nmodule m(input a); `A endmodule\n",
        b'`include "box.sv"\nmodule m(input a); endmodule\n',
        b"module m #(parameter N = 1)(input a); m #(N + 1) u(.a); endmodule\n",
        b"module m(input a); for (genvar i = 0; i < 1000000000; i++) begin logic x; end endmodule\n",
        b"module m(input a); localparam x = {2147483647{1'b1}}; endmodule\n",
        b"module m(input a); function automatic int f(int n); return f(n + 1); endfunction\n"
        b"localparam x = f(0); endmodule\n",
        b"module m(input a); function automatic int f(); while (1); endfunction localparam x = f(); endmodule\n",
        b"module m(input [2**62:0] a, input [999999999999:0] b); endmodule\n",
        b"`ifdef A\n" * 20_000 + b"module m(input a); endmodule\n",
        b"module m(input a); if (1) " * 5000,
        b"\x00" * 100_000,
        b"module m(input a); wire " + b"x" * 500_000 + b"; endmodule\n",
    ],
    ids=lambda rtl: repr(rtl[:48]),
)
def test_rtl_made_to_exhaust_a_reader_is_a_design_or_refused(loader: Loader, rtl: bytes) -> None:
    load(loader, {"box.sv": rtl})


@pytest.mark.slow
@pytest.mark.parametrize(
    "rtl",
    [
        b"".join(b"`define A%d `A%d `A%d\n" % (i, i + 1, i + 1) for i in range(40)) + b"`define A40 ;\n`A0\n",
        b'`include "box.sv"\n`include "box.sv"\nmodule m(input a); endmodule\n',
        b"`define D(x) x x\nmodule m(input a); " + b"`D(" * 40 + b"wire a;" + b")" * 40 + b" endmodule\n",
    ],
    ids=["macros", "includes", "arguments"],
)
def test_rtl_that_doubles_itself_without_end_is_refused(loader: Loader, rtl: bytes) -> None:
    assert load(loader, {"box.sv": rtl}) == "refused"


def test_pipes_and_links_in_a_folder_of_rtl_are_no_sources(loader: Loader, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    odd = [path for path in odd_files(tmp_path / "odd") if path.name != "unreadable"]
    for n, path in enumerate(odd):
        for name in ("a.sv", "w.svh", "design.toml", "exclusions.toml", "spec.md", ""):
            box = tmp_path / f"box{n}{name}"
            if not name:
                box.symlink_to(path)
            else:
                box.mkdir()
                (box / "counter.sv").write_text(COUNTER)
                (box / name).symlink_to(path)
            assert loader.load(box) in ("read", "refused"), (path, name)
