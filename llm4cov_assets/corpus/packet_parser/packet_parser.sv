// Parses a byte stream: preamble, address, type, length, payload, checksum.
module packet_parser (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       valid,
    input  logic [7:0] data,
    output logic       accepted,
    output logic       broadcast,
    output logic       ping,
    output logic [2:0] error,
    output logic [3:0] payload_xor
);
    typedef enum logic [2:0] {HUNT, SYNC, ADDRESS, KIND, LENGTH, PAYLOAD, CHECK} state_t;
    localparam logic [7:0] PREAMBLE = 8'h55, START = 8'hD5, OWN = 8'h2B, ALL = 8'hFF;
    localparam logic [2:0] NONE = 3'd0, BAD_KIND = 3'd1, BAD_LENGTH = 3'd2, BAD_CHECK = 3'd3, BAD_SYNC = 3'd4;

    state_t     state;
    logic [3:0] left;
    logic [7:0] sum;
    logic       mine;
    logic [1:0] preambles;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state       <= HUNT;
            left        <= 4'd0;
            sum         <= 8'd0;
            mine        <= 1'b0;
            preambles   <= 2'd0;
            accepted    <= 1'b0;
            broadcast   <= 1'b0;
            ping        <= 1'b0;
            error       <= NONE;
            payload_xor <= 4'd0;
        end else if (valid) begin
            accepted <= 1'b0;
            case (state)
                HUNT: begin
                    if (data == PREAMBLE) begin
                        if (preambles == 2'd2) state <= SYNC;
                        else preambles <= preambles + 2'd1;
                    end else preambles <= 2'd0;
                end
                SYNC: begin
                    preambles <= 2'd0;
                    if (data == START) state <= ADDRESS;
                    else if (data != PREAMBLE) begin
                        error <= BAD_SYNC;
                        state <= HUNT;
                    end
                end
                ADDRESS: begin
                    mine      <= data == OWN || data == ALL;
                    broadcast <= data == ALL;
                    sum       <= data;
                    state     <= KIND;
                end
                KIND: begin
                    sum   <= sum + data;
                    state <= LENGTH;
                    ping  <= 1'b0;
                    case (data)
                        8'h01: ;
                        8'h02: ping <= mine && !broadcast;
                        8'h7F: if (broadcast) error <= NONE;
                        default: begin
                            error <= BAD_KIND;
                            state <= HUNT;
                        end
                    endcase
                end
                LENGTH: begin
                    sum         <= sum + data;
                    payload_xor <= 4'd0;
                    if (data > 8'd12) begin
                        error <= BAD_LENGTH;
                        state <= HUNT;
                    end else if (data == 8'd0) state <= CHECK;
                    else begin
                        left  <= data[3:0] - 4'd1;
                        state <= PAYLOAD;
                    end
                end
                PAYLOAD: begin
                    sum         <= sum + data;
                    payload_xor <= payload_xor ^ data[3:0];
                    if (left == 4'd0) state <= CHECK;
                    else left <= left - 4'd1;
                end
                default: begin
                    state <= HUNT;
                    if (data != sum) error <= BAD_CHECK;
                    else if (mine) accepted <= 1'b1;
                end
            endcase
        end
    end
endmodule
