// CRC-8 over a byte stream, with frame start and end, comparison, length check and control frames.
module crc8 (
    input  logic       clk,
    input  logic       rst,
    input  logic       valid,
    input  logic       first,
    input  logic       last,
    input  logic [7:0] data,
    input  logic       poly_select,
    output logic [7:0] crc,
    output logic       good,
    output logic       bad,
    output logic       too_long,
    output logic [1:0] streak,
    output logic       zero_seed,
    output logic       refused
);
    logic [3:0] length;
    logic       in_frame;
    logic       control;
    logic [7:0] next;

    always_comb begin
        next = (first ? (zero_seed ? 8'h00 : 8'hFF) : crc) ^ data;
        for (int i = 0; i < 8; i++) begin
            if (next[7]) next = {next[6:0], 1'b0} ^ (poly_select ? 8'h31 : 8'h07);
            else next = {next[6:0], 1'b0};
        end
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            crc      <= 8'hFF;
            length   <= 4'd0;
            in_frame <= 1'b0;
            control  <= 1'b0;
            good     <= 1'b0;
            bad      <= 1'b0;
            too_long <= 1'b0;
            streak   <= 2'd0;
            refused  <= 1'b0;
            zero_seed <= 1'b0;
        end else if (valid) begin
            good <= 1'b0;
            bad  <= 1'b0;
            if (first) begin
                in_frame <= 1'b1;
                control  <= data == 8'h7E;
                length   <= 4'd1;
                too_long <= 1'b0;
                crc      <= next;
            end else if (in_frame) begin
                crc <= next;
                if (length == 4'd9) begin
                    too_long <= 1'b1;
                    in_frame <= 1'b0;
                end else length <= length + 4'd1;
                if (control && length == 4'd1) begin
                    case (data)
                        8'h0F: zero_seed <= 1'b1;
                        8'hF0: zero_seed <= 1'b0;
                        8'h3C: begin
                            // only a link that works may forget its refusals
                            if (streak == 2'd3) refused <= 1'b0;
                        end
                        default: refused <= 1'b1;
                    endcase
                end
            end
            if (last && in_frame) begin
                in_frame <= 1'b0;
                if (next == 8'h00) begin
                    good <= 1'b1;
                    if (streak != 2'd3) streak <= streak + 2'd1;
                end else begin
                    bad    <= 1'b1;
                    streak <= 2'd0;
                end
            end
        end
    end
endmodule
