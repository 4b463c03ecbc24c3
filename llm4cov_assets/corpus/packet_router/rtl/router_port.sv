// One output port: a small queue that fills when its consumer stalls.
module router_port #(
    parameter int unsigned DEPTH = 4
) (
    input  logic       clk,
    input  logic       rst,
    input  logic       put,
    input  logic [3:0] data_in,
    input  logic       take,
    output logic [3:0] data_out,
    output logic       valid,
    output logic       full
);
    localparam int unsigned AW = $clog2(DEPTH);
    logic [3:0]    queue [DEPTH];
    logic [AW-1:0] head;
    logic [AW-1:0] tail;
    logic [AW:0]   level;

    assign valid    = level != '0;
    assign full     = level == (AW + 1)'(DEPTH);
    assign data_out = queue[head];

    always_ff @(posedge clk) begin
        if (rst) begin
            head  <= '0;
            tail  <= '0;
            level <= '0;
        end else begin
            if (put && !full) begin
                queue[tail] <= data_in;
                tail        <= tail + 1'b1;
                if (!(take && valid)) level <= level + 1'b1;
            end
            if (take && valid) begin
                head <= head + 1'b1;
                if (!(put && !full)) level <= level - 1'b1;
            end
        end
    end
endmodule
