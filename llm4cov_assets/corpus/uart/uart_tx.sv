// UART transmitter: one start bit, eight data bits, optional parity, one stop bit.
module uart_tx #(
    parameter int unsigned DIVISOR = 4
) (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       send,
    input  logic [7:0] data,
    input  logic       parity_on,
    output logic       tx,
    output logic       ready
);
    typedef enum logic [2:0] {IDLE, START, DATA, PARITY, STOP} state_t;
    localparam int unsigned BW = $clog2(DIVISOR);
    state_t     state;
    logic [7:0] shift;
    logic [2:0] index;
    logic [BW-1:0] baud;
    logic       parity;
    logic       tick;

    assign tick  = baud == BW'(DIVISOR - 1);
    assign ready = state == IDLE;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state  <= IDLE;
            shift  <= 8'd0;
            index  <= 3'd0;
            baud   <= '0;
            parity <= 1'b0;
            tx     <= 1'b1;
        end else begin
            if (state == IDLE || tick) baud <= '0;
            else baud <= baud + 1'b1;
            case (state)
                IDLE: begin
                    if (send) begin
                        shift  <= data;
                        parity <= ^data;
                        index  <= 3'd0;
                        tx     <= 1'b0;
                        state  <= START;
                    end
                end
                START: begin
                    if (tick) begin
                        tx    <= shift[0];
                        shift <= shift >> 1;
                        state <= DATA;
                    end
                end
                DATA: begin
                    if (tick) begin
                        if (index == 3'd7) begin
                            tx    <= parity_on ? parity : 1'b1;
                            state <= parity_on ? PARITY : STOP;
                        end else begin
                            tx    <= shift[0];
                            shift <= shift >> 1;
                            index <= index + 3'd1;
                        end
                    end
                end
                PARITY: begin
                    if (tick) begin
                        tx    <= 1'b1;
                        state <= STOP;
                    end
                end
                default: if (tick) state <= IDLE;
            endcase
        end
    end
endmodule
