"""Processors as people install them come in without settings: from a file, a core file and a file list."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm4cov_assets.ingest.importing import import_source
from sim.elaborate import analyse

pytestmark = pytest.mark.slow

IBEX_LIST = """\
{ibex}/rtl/ibex_top.sv
+libext+.sv
-y {ibex}/rtl
-y {ibex}/dv/uvm/core_ibex/common/prim
-y {prim}
-y {ibex}/vendor/lowrisc_ip/ip/prim_generic/rtl
+incdir+{prim}+{ibex}/vendor/lowrisc_ip/dv/sv/dv_utils
"""


def package(name: str, folder: str) -> Path:
    return Path(pytest.importorskip(f"pythondata_cpu_{name}").__file__).parent / folder


def test_processors_come_in_with_their_tops_ports_clocks_and_resets(tmp_path: Path, home: Path) -> None:
    ibex = package("ibex", "system_verilog")
    listed = tmp_path / "ibex.f"
    listed.write_text(IBEX_LIST.format(ibex=ibex, prim=ibex / "vendor/lowrisc_ip/ip/prim/rtl"))
    sources = [package("picorv32", "verilog") / "picorv32.v", package("serv", "verilog") / "serv.core", listed]
    found = {}
    for source in sources:
        report = import_source(source, home)
        assert report.rejected == []
        found |= {d.name: d.load().design for d in report.accepted}
    assert {name: d.top for name, d in found.items()} == {
        "picorv32": "picorv32", "serv": "serv_rf_top", "ibex": "ibex_top"
    }  # fmt: skip
    faces = {name: analyse(d).interface for name, d in found.items()}
    assert {name: (len(f.ports), f.clocks) for name, f in faces.items()} == {
        "picorv32": (27, ("clk",)), "serv": (20, ("clk",)), "ibex": (42, ("clk_i",))
    }  # fmt: skip
    resets = {name: [(r.port, r.active_low, r.synchronous) for r in f.resets] for name, f in faces.items()}
    assert resets == {
        "picorv32": [("resetn", True, True)], "serv": [("i_rst", False, True)], "ibex": [("rst_ni", True, False)]
    }  # fmt: skip
    names = [Path(f.path).stem for f in found["ibex"].sources]
    assert names.index("ibex_pkg") < names.index("ibex_core") and "ibex_top_tracing" not in names
