// Hamming (8,4) codec: encodes a nibble, corrects one wrong bit, detects two, counts both; can inject errors.
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
    output logic       worn_out,
    output logic       bypass,
    output logic       armed
);
    logic [2:0] syndrome;
    logic       parity;
    logic [3:0] fixed;
    logic [7:0] code_word;
    logic [7:0] injected;

    assign syndrome = {word[3] ^ word[4] ^ word[5] ^ word[6], word[1] ^ word[2] ^ word[5] ^ word[6],
                       word[0] ^ word[2] ^ word[4] ^ word[6]};
    assign parity = ^word;

    assign code_word = {word[0] ^ word[1] ^ word[2], word[3], word[2], word[1], word[1] ^ word[2] ^ word[3], word[0],
                        word[0] ^ word[2] ^ word[3], word[0] ^ word[1] ^ word[3]};
    assign armed = injected != 8'd0;

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
            bypass        <= 1'b0;
            injected      <= 8'd0;
        end else begin
            corrected     <= 1'b0;
            uncorrectable <= 1'b0;
            if (encode && decode) begin
                case (clear_code)
                    4'hA: begin
                        if (word == 8'h00) begin
                            corrections <= 2'd0;
                            worn_out    <= 1'b0;
                        end
                    end
                    4'h5: begin
                        // errors may be injected only while the decoder corrects
                        if (word == 8'h96) bypass <= 1'b1;
                        else if (word == 8'h69) bypass <= 1'b0;
                        else if (!bypass) injected <= word;
                    end
                    default: ;
                endcase
            end else if (encode) begin
                coded    <= code_word ^ injected;
                injected <= 8'd0;
            end else if (decode && !worn_out) begin
                if (bypass) nibble <= {word[6:4], word[2]};
                else if (syndrome == 3'd0 && !parity) nibble <= {word[6:4], word[2]};
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
