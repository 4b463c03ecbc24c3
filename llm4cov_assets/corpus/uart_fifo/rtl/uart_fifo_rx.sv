// Receives frames with samples in the middle of each bit.
module uart_fifo_rx
    import uart_fifo_pkg::*;
#(
    parameter int unsigned DIVISOR = 4
) (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       parity_on,
    input  logic       parity_odd,
    input  logic       rx,
    output logic [7:0] data,
    output logic       got,
    output logic       bad_parity,
    output logic       bad_stop
);
    localparam int unsigned BW = $clog2(DIVISOR);
    line_state_t   state;
    logic [BW-1:0] baud;
    logic [2:0]    index;
    logic          parity;
    wire           tick = baud == BW'(DIVISOR - 1);

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state      <= QUIET;
            baud       <= '0;
            index      <= 3'd0;
            parity     <= 1'b0;
            data       <= 8'd0;
            got        <= 1'b0;
            bad_parity <= 1'b0;
            bad_stop   <= 1'b0;
        end else begin
            got        <= 1'b0;
            bad_parity <= 1'b0;
            bad_stop   <= 1'b0;
            baud       <= baud + 1'b1;
            case (state)
                QUIET: begin
                    // half a bit less, so that the next ticks are in the middle
                    baud   <= BW'(DIVISOR / 2);
                    index  <= 3'd0;
                    parity <= parity_odd;
                    if (!rx) state <= START;
                end
                START: if (tick) state <= rx ? QUIET : BITS;
                BITS: begin
                    if (tick) begin
                        data   <= {rx, data[7:1]};
                        parity <= parity ^ rx;
                        index  <= index + 3'd1;
                        if (index == 3'd7) state <= parity_on ? PARITY : STOP;
                    end
                end
                PARITY: begin
                    if (tick) begin
                        state <= STOP;
                        if (rx != parity) begin
                            bad_parity <= 1'b1;
                            state      <= QUIET;
                        end
                    end
                end
                default: begin
                    if (tick) begin
                        state    <= QUIET;
                        got      <= rx;
                        bad_stop <= !rx;
                    end
                end
            endcase
        end
    end
endmodule
