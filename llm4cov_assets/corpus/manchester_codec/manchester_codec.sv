// Manchester codec: encoder and decoder with a loop-back switch, a jammed line, and addressed frames.
module manchester_codec #(
    parameter int unsigned HALF = 4
) (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       valid,
    output logic       ready,
    input  logic [7:0] data,
    input  logic       last,
    input  logic       loopback,
    input  logic       jam,
    input  logic       line_in,
    output logic       line_out,
    output logic       active,
    output logic       underrun,
    output logic       locked,
    output logic       got,
    output logic [7:0] received,
    output logic       glitch,
    output logic       torn,
    output logic       for_us,
    output logic       collision
);
    localparam logic [7:0] ADDRESS = 8'h3C, EVERYBODY = 8'hFF;

    logic line;
    logic encoded;
    logic first;
    logic locked_q;
    logic [2:0] differs;

    assign line     = loopback ? line_out : line_in;
    assign line_out = encoded ^ jam;

    manchester_encoder #(.HALF(HALF)) u_encoder (
        .clk, .rst_n, .valid, .ready, .data, .last, .line(encoded), .active, .underrun
    );
    manchester_decoder #(.HALF(HALF)) u_decoder (
        .clk, .rst_n, .line, .locked, .got, .data(received), .glitch, .torn
    );

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            first     <= 1'b0;
            locked_q  <= 1'b0;
            for_us    <= 1'b0;
            differs   <= 3'd0;
            collision <= 1'b0;
        end else begin
            locked_q <= locked;
            if (locked && !locked_q) first <= 1'b1;
            else if (got) first <= 1'b0;
            if (locked_q && !locked) for_us <= 1'b0;
            else if (got && first) for_us <= received == ADDRESS || received == EVERYBODY;
            // somebody else drives the line while this one sends
            if (!active || line == encoded) differs <= 3'd0;
            else if (differs == 3'd5) collision <= 1'b1;
            else differs <= differs + 3'd1;
        end
    end
endmodule
