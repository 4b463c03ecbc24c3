// Sends what the queue holds, unless the other side asks for a pause.
module uart_fifo_tx
    import uart_fifo_pkg::*;
#(
    parameter int unsigned DIVISOR = 4
) (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       parity_on,
    input  logic       parity_odd,
    input  logic       two_stops,
    input  logic       pause,
    input  logic       pending,
    input  logic [7:0] data,
    output logic       take,
    output logic       tx
);
    localparam int unsigned BW = $clog2(DIVISOR);
    line_state_t   state;
    logic [BW-1:0] baud;
    logic [2:0]    index;
    logic [7:0]    shift;
    logic          parity;
    wire           tick = baud == BW'(DIVISOR - 1);

    assign take = state == QUIET && pending && !pause;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state  <= QUIET;
            baud   <= '0;
            index  <= 3'd0;
            shift  <= 8'd0;
            parity <= 1'b0;
            tx     <= 1'b1;
        end else if (state == QUIET) begin
            baud  <= '0;
            index <= 3'd0;
            if (take) begin
                shift  <= data;
                parity <= parity_odd;
                tx     <= 1'b0;
                state  <= START;
            end
        end else if (!tick) baud <= baud + 1'b1;
        else begin
            baud <= '0;
            case (state)
                START, BITS: begin
                    tx     <= shift[0];
                    shift  <= {1'b1, shift[7:1]};
                    parity <= parity ^ shift[0];
                    index  <= index + 3'd1;
                    state  <= BITS;
                    if (state == BITS && index == 3'd0) begin
                        tx     <= parity_on ? parity : 1'b1;
                        state  <= parity_on ? PARITY : STOP;
                        index  <= {2'b00, !two_stops};
                        parity <= parity;
                    end
                end
                PARITY: begin
                    tx    <= 1'b1;
                    index <= {2'b00, !two_stops};
                    state <= STOP;
                end
                default: begin
                    if (index[0]) state <= QUIET;
                    else index <= 3'd1;
                end
            endcase
        end
    end
endmodule
