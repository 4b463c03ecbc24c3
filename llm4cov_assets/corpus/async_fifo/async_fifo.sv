// Two-clock FIFO with Gray-coded pointers and sticky errors on either side.
module async_fifo (
    input  logic       wr_clk,
    input  logic       wr_rst_n,
    input  logic       wr_en,
    input  logic [7:0] wr_data,
    output logic       wr_full,
    output logic       wr_error,
    input  logic       rd_clk,
    input  logic       rd_rst_n,
    input  logic       rd_en,
    input  logic [5:0] rd_clear,
    output logic [7:0] rd_data,
    output logic       rd_empty,
    output logic       rd_error,
    output logic       rd_marker
);
    logic [7:0] memory [16];
    logic [4:0] wr_bin, wr_gray, wr_gray_q1, wr_gray_q2;
    logic [4:0] rd_bin, rd_gray, rd_gray_q1, rd_gray_q2;
    wire  [4:0] wr_next = wr_bin + 5'd1;
    wire  [4:0] rd_next = rd_bin + 5'd1;

    assign wr_full  = wr_gray == {~rd_gray_q2[4:3], rd_gray_q2[2:0]};
    assign rd_empty = rd_gray == wr_gray_q2;

    always_ff @(posedge wr_clk or negedge wr_rst_n) begin
        if (!wr_rst_n) begin
            wr_bin     <= 5'd0;
            wr_gray    <= 5'd0;
            rd_gray_q1 <= 5'd0;
            rd_gray_q2 <= 5'd0;
            wr_error   <= 1'b0;
        end else begin
            rd_gray_q1 <= rd_gray;
            rd_gray_q2 <= rd_gray_q1;
            if (wr_en) begin
                if (wr_full && wr_data == 8'hEE) wr_error <= 1'b0;
                else if (wr_full) wr_error <= 1'b1;
                else begin
                    memory[wr_bin[3:0]] <= wr_data;
                    wr_bin              <= wr_next;
                    wr_gray             <= wr_next ^ (wr_next >> 1);
                end
            end
        end
    end

    always_ff @(posedge rd_clk or negedge rd_rst_n) begin
        if (!rd_rst_n) begin
            rd_bin     <= 5'd0;
            rd_gray    <= 5'd0;
            wr_gray_q1 <= 5'd0;
            wr_gray_q2 <= 5'd0;
            rd_data    <= 8'd0;
            rd_error   <= 1'b0;
            rd_marker  <= 1'b0;
        end else begin
            wr_gray_q1 <= wr_gray;
            wr_gray_q2 <= wr_gray_q1;
            if (rd_clear == 6'h25 && rd_error && rd_marker) rd_error <= 1'b0;
            if (rd_en) begin
                if (rd_empty) rd_error <= 1'b1;
                else begin
                    rd_data   <= memory[rd_bin[3:0]];
                    rd_bin    <= rd_next;
                    rd_gray   <= rd_next ^ (rd_next >> 1);
                    if (memory[rd_bin[3:0]] == 8'h7E) rd_marker <= 1'b1;
                    else if (rd_marker && memory[rd_bin[3:0]] == 8'h7F) rd_marker <= 1'b0;
                end
            end
        end
    end
endmodule
