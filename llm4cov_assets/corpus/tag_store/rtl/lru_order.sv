// Order of use of four ways: age 0 is the way used last, age 3 the one used longest ago.
module lru_order
    import tag_store_pkg::*;
(
    input  logic            clk,
    input  logic            rst_n,
    input  logic            use_way,
    input  logic [1:0]      way,
    input  logic [WAYS-1:0] usable,
    output logic [1:0]      oldest
);
    logic [1:0] age [WAYS];

    // the oldest usable way; way 0 when none is
    always_comb begin
        oldest = 2'd0;
        for (int a = 0; a < int'(WAYS); a++) begin
            for (int i = 0; i < int'(WAYS); i++) begin
                if (usable[i] && age[i] == 2'(a)) oldest = 2'(i);
            end
        end
    end

    always_ff @(posedge clk) begin
        if (!rst_n) begin
            for (int i = 0; i < int'(WAYS); i++) age[i] <= 2'(i);
        end else if (use_way) begin
            for (int i = 0; i < int'(WAYS); i++) begin
                if (2'(i) == way) age[i] <= 2'd0;
                else if (age[i] < age[way]) age[i] <= age[i] + 2'd1;
            end
        end
    end
endmodule
