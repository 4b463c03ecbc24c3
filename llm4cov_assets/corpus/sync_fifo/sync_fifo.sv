// Synchronous first-in first-out buffer with levels, sticky errors and a flush that needs a key.
module sync_fifo #(
    parameter int unsigned WIDTH = 8,
    parameter int unsigned DEPTH = 16,
    localparam int unsigned AW = $clog2(DEPTH)
) (
    input  logic             clk,
    input  logic             rst_n,
    input  logic             push,
    input  logic             pop,
    input  logic [WIDTH-1:0] din,
    input  logic [7:0]       flush_key,
    output logic [WIDTH-1:0] dout,
    output logic             full,
    output logic             empty,
    output logic             almost_full,
    output logic             almost_empty,
    output logic             overflow,
    output logic             underflow,
    output logic             marked,
    output logic             draining
);
    logic [WIDTH-1:0] memory [DEPTH];
    logic [AW-1:0]    wr_ptr;
    logic [AW-1:0]    rd_ptr;
    logic [AW:0]      level;

    assign full         = level == (AW + 1)'(DEPTH);
    assign empty        = level == '0;
    assign almost_full  = level >= (AW + 1)'(DEPTH - 2);
    assign almost_empty = level <= (AW + 1)'(1);
    assign dout         = empty ? '0 : memory[rd_ptr];

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            wr_ptr    <= '0;
            rd_ptr    <= '0;
            level     <= '0;
            overflow  <= 1'b0;
            underflow <= 1'b0;
            marked    <= 1'b0;
            draining  <= 1'b0;
        end else if (flush_key == 8'hB4 && !push && !pop) begin
            wr_ptr    <= '0;
            rd_ptr    <= '0;
            level     <= '0;
            overflow  <= 1'b0;
            underflow <= 1'b0;
            draining  <= 1'b0;
        end else begin
            if (flush_key == 8'hC7 && overflow && full) draining <= 1'b1;
            else if (draining && empty) draining <= 1'b0;
            if (flush_key == 8'h3D && marked && empty) marked <= 1'b0;
            if (push && pop && !empty && !draining) begin
                memory[wr_ptr] <= din;
                wr_ptr         <= wr_ptr + 1'b1;
                rd_ptr         <= rd_ptr + 1'b1;
            end else if (push && !draining) begin
                if (full) overflow <= 1'b1;
                else begin
                    memory[wr_ptr] <= din;
                    wr_ptr         <= wr_ptr + 1'b1;
                    level          <= level + 1'b1;
                end
            end else if (pop) begin
                if (empty) underflow <= 1'b1;
                else begin
                    if (almost_full && dout == WIDTH'(8'h1B)) marked <= 1'b1;
                    rd_ptr <= rd_ptr + 1'b1;
                    level  <= level - 1'b1;
                end
            end
        end
    end
endmodule
