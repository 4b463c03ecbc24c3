// Safe with a four-digit code that can be changed, a lock-out after three failures and a master code.
module combination_lock (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       enter,
    input  logic [3:0] digit,
    input  logic       program_mode,
    input  logic       close,
    output logic       open,
    output logic       locked_out,
    output logic       reprogrammed,
    output logic [1:0] failures,
    output logic [1:0] place
);
    logic [3:0] code [4];
    logic       wrong;
    logic [3:0] penalty;
    logic [1:0] master;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            code[0]      <= 4'd7;
            code[1]      <= 4'd2;
            code[2]      <= 4'd9;
            code[3]      <= 4'd4;
            open         <= 1'b0;
            locked_out   <= 1'b0;
            reprogrammed <= 1'b0;
            failures     <= 2'd0;
            place        <= 2'd0;
            wrong        <= 1'b0;
            penalty      <= 4'd0;
            master       <= 2'd0;
        end else if (locked_out) begin
            if (penalty == 4'd15) begin
                locked_out <= 1'b0;
                failures   <= 2'd1;
                penalty    <= 4'd0;
            end else penalty <= penalty + 4'd1;
            if (enter) begin
                if (digit == 4'hE) begin
                    if (master == 2'd2) begin
                        locked_out <= 1'b0;
                        failures   <= 2'd0;
                        master     <= 2'd0;
                        penalty    <= 4'd0;
                    end else master <= master + 2'd1;
                end else master <= 2'd0;
            end
        end else if (open) begin
            if (enter && program_mode) begin
                code[place] <= digit;
                place       <= place + 2'd1;
                if (place == 2'd3) reprogrammed <= 1'b1;
            end else if (close) begin
                open  <= 1'b0;
                place <= 2'd0;
            end
        end else if (enter) begin
            place <= place + 2'd1;
            if (place == 2'd3) begin
                wrong <= 1'b0;
                if (!wrong && digit == code[3]) begin
                    open     <= 1'b1;
                    failures <= 2'd0;
                end else if (failures == 2'd2) begin
                    locked_out <= 1'b1;
                    failures   <= 2'd3;
                end else failures <= failures + 2'd1;
            end else if (digit != code[place]) wrong <= 1'b1;
        end
    end
endmodule
