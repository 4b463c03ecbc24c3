// UART receiver for the format of uart_tx; reports framing and parity errors and break conditions.
module uart_rx #(
    parameter int unsigned DIVISOR = 4
) (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       rx,
    input  logic       parity_on,
    output logic [7:0] data,
    output logic       valid,
    output logic       frame_error,
    output logic       parity_error,
    output logic       break_seen
);
    typedef enum logic [2:0] {IDLE, START, DATA, PARITY, STOP} state_t;
    localparam int unsigned BW = $clog2(DIVISOR);
    state_t     state;
    logic [2:0] index;
    logic [BW-1:0] baud;
    logic [5:0] low_time;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state        <= IDLE;
            index        <= 3'd0;
            baud         <= '0;
            data         <= 8'd0;
            valid        <= 1'b0;
            frame_error  <= 1'b0;
            parity_error <= 1'b0;
            low_time     <= 6'd0;
            break_seen   <= 1'b0;
        end else begin
            valid <= 1'b0;
            if (rx) low_time <= 6'd0;
            else if (low_time == 6'd50) break_seen <= 1'b1;
            else low_time <= low_time + 6'd1;

            baud <= baud + 1'b1;
            case (state)
                IDLE: begin
                    baud  <= '0;
                    index <= 3'd0;
                    if (!rx) state <= START;
                end
                START: begin
                    if (baud == BW'(DIVISOR / 2 - 1)) begin
                        baud <= '0;
                        if (rx) state <= IDLE;
                        else begin
                            state        <= DATA;
                            frame_error  <= 1'b0;
                            parity_error <= 1'b0;
                        end
                    end
                end
                DATA: begin
                    if (baud == BW'(DIVISOR - 1)) begin
                        baud <= '0;
                        data <= {rx, data[7:1]};
                        index <= index + 3'd1;
                        if (index == 3'd7) state <= parity_on ? PARITY : STOP;
                    end
                end
                PARITY: begin
                    if (baud == BW'(DIVISOR - 1)) begin
                        baud  <= '0;
                        state <= STOP;
                        if (rx != ^data) parity_error <= 1'b1;
                    end
                end
                default: begin
                    if (baud == BW'(DIVISOR - 1)) begin
                        state <= IDLE;
                        if (!rx) frame_error <= 1'b1;
                        else valid <= 1'b1;
                    end
                end
            endcase
        end
    end
endmodule
