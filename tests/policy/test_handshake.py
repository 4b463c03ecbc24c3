"""Transfers: what they know of a design, how they are written down, and that they keep to the protocol."""

from __future__ import annotations

from random import Random

import pytest

from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.handshake import traffic
from llm4cov_assets.policy.scripted import BASELINES, scripted
from llm4cov_assets.policy.stimulus import Burst, Program, Segment, combine, parse, render
from llm4cov_assets.policy.traffic import Offer, Traffic, Transfers
from sim.design import Design, SourceFile
from sim.elaborate import analyse

CORPUS = {design.name: design for design in corpus_designs()}

WATCHED = """
module watched(
  input logic clk, input logic rst_n,
  input logic in_valid, input logic [7:0] in_data, input logic in_last, output logic in_ready,
  output logic out_valid, output logic [7:0] out_data, input logic out_ready,
  input logic wr_en, input logic [3:0] wr_data, output logic wr_full, input logic [1:0] mode
);
  logic [7:0] held; logic last, waiting; logic [2:0] level; logic [9:0] busy;
  assign in_ready = !out_valid && busy[1:0] == 3;
  assign wr_full = level == 4;
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin out_valid <= 0; out_data <= 0; level <= 0; busy <= 0; waiting <= 0; end
    else begin
      busy <= busy + 1;
      if (waiting && !(in_valid && in_data == held && in_last == last)) $display("BROKEN in");
      waiting <= in_valid && !in_ready; held <= in_data; last <= in_last;
      if (in_valid && in_ready) begin out_valid <= 1; out_data <= in_data; $display("TAKEN %h", in_data); end
      else if (out_valid && out_ready) begin out_valid <= 0; $display("GIVEN"); end
      if (wr_en && !wr_full) level <= level + 1; else if (mode == 2 && level != 0) level <= level - 1;
      if (in_valid && in_ready && in_data == 8'hC3) $display("RARE");
    end
endmodule
"""
DESIGN = Design(name="watched", sources=(SourceFile("watched.sv", WATCHED.encode()),), top="watched")


def program(design: Design, seed: int = 0) -> tuple[str, Program]:
    [generation] = scripted("scripted/handshake").propose([State(design)], 1, seed)
    found = parse(generation.answer)
    assert found is not None, generation.error
    return generation.answer, found


def test_traffic_is_what_elaboration_tells_of_the_interface() -> None:
    found = traffic(DESIGN, analyse(DESIGN))
    assert found.offers == (
        Offer("in_valid", "in_ready", 1, ("in_data", "in_last")), Offer("wr_en", "wr_full", 0, ("wr_data",)),
    )  # fmt: skip
    assert found.receivers == ("out_ready",)
    values = dict(found.values)
    assert (0xC3, 0xFF) in values["in_data"] and (2, 3) in values["mode"]
    assert "in_valid" not in values and "out_ready" not in values


def test_values_are_those_on_both_sides_of_what_is_compared() -> None:
    text = """package p; typedef enum logic [2:0] {A = 1, B = 6} kind_t; endpackage
    module m import p::*; (input logic clk, input logic [7:0] a, input logic [11:0] b, input kind_t k, output logic y);
      always_ff @(posedge clk) if (a < 100) y <= 0; else if (b[11:8] == 4'd5) y <= 1; else if (k == B) y <= 0;
    endmodule"""
    design = Design(name="m", sources=(SourceFile("m.sv", text.encode()),), top="m")
    values = {port: set(pairs) for port, pairs in traffic(design, analyse(design)).values}
    assert {(99, 255), (100, 255)} <= values["a"]
    assert (0x500, 0xF00) in values["b"]
    assert {(1, 7), (6, 7)} <= values["k"]


@pytest.mark.parametrize("name", ["axi_lite_regs", "sync_fifo", "alu", "hamming"])
def test_a_file_with_transfers_is_read_back_whole(name: str) -> None:
    text, found = program(CORPUS[name])
    compile(text, "testbench.py", "exec")
    assert max(map(len, text.splitlines())) <= 120
    assert [type(a) for s in found.segments for a in s.actions] == [Transfers] * 4
    assert render(found, CORPUS[name], analyse(CORPUS[name]).interface) == text
    assert parse(text.replace("OFFERS = {", "OFFERS = {**{},")) is None
    assert parse(text.replace("seed=", "seed=0+", 1)) is None


def test_only_files_with_transfers_know_of_them() -> None:
    interface = analyse(DESIGN).interface
    text = render(Program((Segment("a", (Burst(1, 9),)),)), DESIGN, interface)
    assert not any(word in text for word in ("OFFERS", "VALUES", "transfers", "FallingEdge", "pick"))


def test_a_design_without_clock_gets_values_alone() -> None:
    text = """module m(input logic in_valid, input logic [7:0] in_data, output logic in_ready);
      assign in_ready = in_valid && in_data == 8'd77; endmodule"""
    design = Design(name="m", sources=(SourceFile("m.sv", text.encode()),), top="m")
    text, found = program(design)
    assert found.traffic == Traffic((), (), (("in_data", ((77, 255),)),))
    assert "FallingEdge" not in text


def test_unpacked_arrays_are_no_offers() -> None:
    text = """module m(input logic clk, input logic valid [2], input logic [7:0] data, output logic ready [2]);
      always_ff @(posedge clk) ready[0] <= valid[1] && data == 9; endmodule"""
    design = Design(name="m", sources=(SourceFile("m.sv", text.encode()),), top="m")
    assert program(design)[1].traffic == Traffic((), (), (("data", ((9, 255),)),))


def test_files_with_and_without_transfers_are_combined() -> None:
    interface = analyse(DESIGN).interface
    text, with_transfers = program(DESIGN)
    burst = Program((Segment("a", (Burst(1, 9),)),))
    plain = render(burst, DESIGN, interface)
    both = Program((*burst.segments, *with_transfers.segments))
    assert combine([plain, text, plain]) == render(both, DESIGN, interface)
    odd = Transfers(1, 2, Traffic((), ("out_ready",), ()))
    other = render(Program((Segment("odd", (odd,)),)), DESIGN, interface)
    assert combine([text, other, plain]) == render(
        Program((*with_transfers.segments, *burst.segments)), DESIGN, interface
    )
    with pytest.raises(ValueError, match="several interfaces"):
        render(Program((*with_transfers.segments, Segment("odd", (odd,)))), DESIGN, interface)


def test_directed_stimulus_goes_on_from_transfers() -> None:
    from test_scripted import observed

    text, found = program(DESIGN)
    [repair] = scripted("scripted/directed").propose([observed(DESIGN, text)], 1, 3)
    repaired = parse(repair.answer)
    assert repaired is not None and repaired.segments[:4] == found.segments


def test_it_is_no_baseline_of_the_demo() -> None:
    assert BASELINES == ("scripted/reset", "scripted/random", "scripted/directed")


@pytest.mark.slow
def test_offers_hold_until_they_are_accepted_and_receivers_press_back(tmp_path) -> None:
    from sim.simulation import Testbench
    from sim.simulator import Simulator

    rng = Random(0)
    texts = [program(DESIGN, rng.getrandbits(16))[0] for _ in range(3)]
    with Simulator(tmp_path, workers=1) as simulator:
        results = list(simulator.run_many(DESIGN, [Testbench(text) for text in texts]))
    assert [r.status for r in results] == ["passed"] * 3
    log = "\n".join(r.log for r in results)
    assert "BROKEN" not in log
    taken, given = log.count("TAKEN"), log.count("GIVEN")
    assert taken > 30 and log.count("RARE") > 5
    assert taken - given > 0  # some of it was never accepted: a receiver without any patience
