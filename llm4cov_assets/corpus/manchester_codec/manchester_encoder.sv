// Sends a frame of bytes in Manchester code: preamble, start marker, bytes, and a line at rest.
module manchester_encoder #(
    parameter int unsigned HALF = 4
) (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       valid,
    output logic       ready,
    input  logic [7:0] data,
    input  logic       last,
    output logic       line,
    output logic       active,
    output logic       underrun
);
    typedef enum logic [2:0] {REST, PREAMBLE, MARKER, BYTES, GAP} state_t;
    localparam int unsigned HW = $clog2(HALF);
    localparam logic [7:0] START_MARKER = 8'hD5;

    state_t        state;
    logic [HW-1:0] time_left;
    logic          second;
    logic [2:0]    index;
    logic [7:0]    shift;
    logic          closing;
    wire           tick     = time_left == '0;
    wire           byte_end = tick && second && index == 3'd7;

    assign active = state != REST;
    assign ready  = state == REST || (byte_end && (state == MARKER || (state == BYTES && !closing)));
    // a one rises in the middle of its bit, a zero falls
    assign line   = active && state != GAP && (shift[7] == second);

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state     <= REST;
            time_left <= '0;
            second    <= 1'b0;
            index     <= 3'd0;
            shift     <= 8'd0;
            closing   <= 1'b0;
            underrun  <= 1'b0;
        end else if (state == REST) begin
            time_left <= HW'(HALF - 1);
            second    <= 1'b0;
            index     <= 3'd0;
            closing   <= 1'b0;
            shift     <= 8'hAA;
            // the first byte is asked for again behind the marker
            if (valid) state <= PREAMBLE;
        end else begin
            time_left <= tick ? HW'(HALF - 1) : time_left - 1'b1;
            if (tick) second <= !second;
            if (tick && second) begin
                index <= index + 3'd1;
                shift <= {shift[6:0], 1'b0};
            end
            if (byte_end) begin
                case (state)
                    PREAMBLE: begin
                        shift <= START_MARKER;
                        state <= MARKER;
                    end
                    MARKER, BYTES: begin
                        if (closing) state <= GAP;
                        else if (valid) begin
                            shift   <= data;
                            closing <= last;
                            state   <= BYTES;
                        end else begin
                            underrun <= 1'b1;
                            state    <= GAP;
                        end
                    end
                    default: state <= REST;
                endcase
            end
        end
    end
endmodule
