// Queue of bytes with a fill level; a full one takes nothing and an empty one gives nothing.
module byte_queue #(
    parameter int unsigned DEPTH = 4
) (
    input  logic                   clk,
    input  logic                   rst_n,
    input  logic                   clear,
    input  logic                   put,
    input  logic [7:0]             data_in,
    input  logic                   take,
    output logic [7:0]             data_out,
    output logic [$clog2(DEPTH):0] level
);
    localparam int unsigned AW = $clog2(DEPTH);
    logic [7:0]    bytes [DEPTH];
    logic [AW-1:0] head;
    logic [AW-1:0] tail;
    wire           puts  = put && level != (AW + 1)'(DEPTH);
    wire           takes = take && level != '0;

    assign data_out = bytes[head];

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            head  <= '0;
            tail  <= '0;
            level <= '0;
        end else if (clear) begin
            head  <= '0;
            tail  <= '0;
            level <= '0;
        end else begin
            if (puts) tail <= tail + 1'b1;
            if (takes) head <= head + 1'b1;
            if (puts && !takes) level <= level + 1'b1;
            else if (takes && !puts) level <= level - 1'b1;
        end
    end

    always_ff @(posedge clk) if (puts) bytes[tail] <= data_in;
endmodule
