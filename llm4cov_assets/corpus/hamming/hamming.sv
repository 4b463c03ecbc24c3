// Hamming (8,4) codec: encodes a nibble, corrects one wrong bit, detects two, counts both.
module hamming (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       encode,
    input  logic       decode,
    input  logic [7:0] word,
    input  logic [3:0] clear_code,
    output logic [7:0] coded,
    output logic [3:0] nibble,
    output logic       corrected,
    output logic       uncorrectable,
    output logic [1:0] corrections,
    output logic       worn_out
);
    logic [2:0] syndrome;
    logic       parity;
    logic [3:0] fixed;

    assign syndrome = {word[3] ^ word[4] ^ word[5] ^ word[6], word[1] ^ word[2] ^ word[5] ^ word[6],
                       word[0] ^ word[2] ^ word[4] ^ word[6]};
    assign parity = ^word;

    always_comb begin
        fixed = {word[6:4], word[2]};
        case (syndrome)
            3'd3:    fixed[0] = !word[2];
            3'd5:    fixed[1] = !word[4];
            3'd6:    fixed[2] = !word[5];
            3'd7:    fixed[3] = !word[6];
            default: ;
        endcase
    end

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            coded         <= 8'd0;
            nibble        <= 4'd0;
            corrected     <= 1'b0;
            uncorrectable <= 1'b0;
            corrections   <= 2'd0;
            worn_out      <= 1'b0;
        end else begin
            corrected     <= 1'b0;
            uncorrectable <= 1'b0;
            if (encode && decode) begin
                if (clear_code == 4'hA && word == 8'h00) begin
                    corrections <= 2'd0;
                    worn_out    <= 1'b0;
                end
            end else if (encode) begin
                coded[6:0] <= {word[3], word[2], word[1], word[1] ^ word[2] ^ word[3], word[0],
                               word[0] ^ word[2] ^ word[3], word[0] ^ word[1] ^ word[3]};
                coded[7]   <= word[0] ^ word[1] ^ word[2];
            end else if (decode && !worn_out) begin
                if (syndrome == 3'd0 && !parity) nibble <= {word[6:4], word[2]};
                else if (parity) begin
                    corrected <= 1'b1;
                    nibble    <= fixed;
                    if (corrections != 2'd3) corrections <= corrections + 2'd1;
                end else begin
                    uncorrectable <= 1'b1;
                    if (corrections == 2'd3 && syndrome == 3'd6) worn_out <= 1'b1;
                end
            end
        end
    end
endmodule
