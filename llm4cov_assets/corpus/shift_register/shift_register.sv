// Universal shift register with a pattern detector and a shift counter.
module shift_register (
    input  logic       clk,
    input  logic       rst_n,
    input  logic [2:0] op,
    input  logic       serial_in,
    input  logic [7:0] parallel_in,
    output logic [7:0] q,
    output logic       serial_out,
    output logic       pattern,
    output logic       palindrome,
    output logic       full,
    output logic       locked
);
    logic [3:0] shifts;
    logic [1:0] patterns;

    assign serial_out = q[7];
    assign palindrome = q == {q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]} && q != 8'h00 && q != 8'hFF;
    assign full       = shifts == 4'd12;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            q        <= 8'd0;
            shifts   <= 4'd0;
            patterns <= 2'd0;
            pattern  <= 1'b0;
            locked   <= 1'b0;
        end else begin
            pattern <= 1'b0;
            if (locked) begin
                if (op == 3'd7 && parallel_in == 8'h3E) begin
                    locked   <= 1'b0;
                    patterns <= 2'd0;
                end
            end else begin
                case (op)
                    3'd1: begin
                        q <= {q[6:0], serial_in};
                        if (!full) shifts <= shifts + 4'd1;
                    end
                    3'd2: begin
                        q <= {serial_in, q[7:1]};
                        if (!full) shifts <= shifts + 4'd1;
                    end
                    3'd3: q <= {q[6:0], q[7]};
                    3'd4: begin
                        q      <= parallel_in;
                        shifts <= 4'd0;
                    end
                    3'd5: begin
                        if (full) q <= {q[3:0], q[7:4]};
                    end
                    3'd6: begin
                        if (q == 8'hD2 && full) begin
                            pattern <= 1'b1;
                            if (patterns == 2'd2) locked <= 1'b1;
                            else patterns <= patterns + 2'd1;
                        end else if (q == 8'h2D) pattern <= 1'b1;
                    end
                    default: ;
                endcase
            end
        end
    end
endmodule
