// Four-entry stack calculator with error states and a conditional halt.
module stack_machine (
    input  logic       clk,
    input  logic       rst,
    input  logic       execute,
    input  logic [3:0] op,
    input  logic [7:0] literal,
    output logic [7:0] top,
    output logic [2:0] depth,
    output logic       overflow,
    output logic       underflow,
    output logic       halted,
    output logic       equal
);
    localparam logic [3:0] PUSH = 4'd0, DROP = 4'd1, ADD = 4'd2, SUB = 4'd3, DUP = 4'd4, SWAP = 4'd5, MAX = 4'd6,
        EQUAL = 4'd7, HALT = 4'd8, CLEAR = 4'd9, ROT = 4'd10;

    logic [7:0] second;
    logic [7:0] third;
    logic [7:0] fourth;

    always_ff @(posedge clk) begin
        if (rst) begin
            top       <= 8'd0;
            second    <= 8'd0;
            third     <= 8'd0;
            fourth    <= 8'd0;
            depth     <= 3'd0;
            overflow  <= 1'b0;
            underflow <= 1'b0;
            halted    <= 1'b0;
            equal     <= 1'b0;
        end else if (halted) begin
            if (execute && op == CLEAR && literal == 8'h99) halted <= 1'b0;
        end else if (execute) begin
            case (op)
                PUSH, DUP: begin
                    if (op == DUP && depth == 3'd0) underflow <= 1'b1;
                    else if (depth == 3'd4) overflow <= 1'b1;
                    else begin
                        fourth <= third;
                        third  <= second;
                        second <= top;
                        depth  <= depth + 3'd1;
                        if (op == PUSH) top <= literal;
                    end
                end
                DROP: begin
                    if (depth == 3'd0) underflow <= 1'b1;
                    else begin
                        top    <= second;
                        second <= third;
                        third  <= fourth;
                        depth  <= depth - 3'd1;
                    end
                end
                ADD, SUB, MAX: begin
                    if (depth < 3'd2) underflow <= 1'b1;
                    else begin
                        second <= third;
                        third  <= fourth;
                        depth  <= depth - 3'd1;
                        if (op == ADD) top <= second + top;
                        else if (op == SUB) top <= second - top;
                        else if (second > top) top <= second;
                    end
                end
                SWAP: begin
                    if (depth < 3'd2) underflow <= 1'b1;
                    else begin
                        top    <= second;
                        second <= top;
                    end
                end
                ROT: begin
                    if (depth < 3'd3) underflow <= 1'b1;
                    else begin
                        top    <= third;
                        second <= top;
                        third  <= second;
                    end
                end
                EQUAL: begin
                    if (depth >= 3'd2) equal <= top == second;
                end
                HALT: begin
                    if (top == 8'hB7 && depth == 3'd1) halted <= 1'b1;
                end
                CLEAR: begin
                    overflow  <= 1'b0;
                    underflow <= 1'b0;
                    if (literal == 8'hFF) depth <= 3'd0;
                end
                default: ;
            endcase
        end
    end
endmodule
