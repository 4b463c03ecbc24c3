// Recovers bytes from Manchester code by the time between edges; finds the start marker and violations of the code.
module manchester_decoder #(
    parameter int unsigned HALF = 4
) (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       line,
    output logic       locked,
    output logic       got,
    output logic [7:0] data,
    output logic       glitch,
    output logic       torn
);
    typedef enum logic [1:0] {HUNT, TRAIN, MARKER, BYTES} state_t;
    localparam logic [3:0] SHORTEST = 4'(HALF - 1);
    localparam logic [3:0] LONG     = 4'(HALF + HALF / 2);
    localparam logic [3:0] LOST     = 4'(3 * HALF);
    localparam logic [7:0] START_MARKER = 8'hD5;

    state_t     state;
    logic       line_q1;
    logic       line_q2;
    logic [3:0] since;
    logic       half;
    logic [2:0] alternating;
    logic [2:0] index;
    logic [6:0] shift;
    wire        edge_seen = line_q1 != line_q2;
    wire        is_long   = since >= LONG;
    // edges in the middle of a bit carry it; a short time is half a bit, two of them a whole one
    wire        mid_bit   = edge_seen && (is_long || half);
    wire [7:0]  byte_in   = {shift, line_q1};

    assign locked = state == BYTES;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state       <= HUNT;
            line_q1     <= 1'b0;
            line_q2     <= 1'b0;
            since       <= 4'd0;
            half        <= 1'b0;
            alternating <= 3'd0;
            index       <= 3'd0;
            shift       <= 7'd0;
            got         <= 1'b0;
            data        <= 8'd0;
            glitch      <= 1'b0;
            torn        <= 1'b0;
        end else begin
            line_q1 <= line;
            line_q2 <= line_q1;
            got     <= 1'b0;
            if (edge_seen) since <= 4'd0;
            else if (since != LOST) since <= since + 4'd1;
            if (state == HUNT) begin
                half        <= 1'b0;
                alternating <= 3'd0;
                index       <= 3'd0;
                if (edge_seen) state <= TRAIN;
            end else if (!edge_seen) begin
                if (since == LOST) begin
                    state <= HUNT;
                    if (state == BYTES && index != 3'd0) torn <= 1'b1;
                end
            end else if (since < SHORTEST) begin
                glitch <= 1'b1;
                state  <= HUNT;
            end else if (is_long && half) state <= HUNT;
            else begin
                half <= !is_long && !half;
                if (mid_bit) begin
                    shift <= byte_in[6:0];
                    case (state)
                        TRAIN: begin
                            // bits that alternate have long times only
                            alternating <= is_long ? alternating + 3'd1 : 3'd0;
                            if (is_long && alternating == 3'd4) state <= MARKER;
                        end
                        MARKER: begin
                            index <= 3'd0;
                            if (byte_in == START_MARKER) state <= BYTES;
                            else if (byte_in[3:0] == 4'b0000) state <= HUNT;
                        end
                        default: begin
                            index <= index + 3'd1;
                            if (index == 3'd7) begin
                                got  <= 1'b1;
                                data <= byte_in;
                            end
                        end
                    endcase
                end
            end
        end
    end
endmodule
