// Interrupt controller: eight sources, mask, two priority levels, nesting, spurious acknowledges, commands.
module irq_controller (
    input  logic       clk,
    input  logic       rst_n,
    input  logic [7:0] source,
    input  logic       write_mask,
    input  logic       write_level,
    input  logic [7:0] wdata,
    input  logic       acknowledge,
    input  logic       finish,
    output logic       irq,
    output logic [2:0] vector,
    output logic       spurious,
    output logic [1:0] depth,
    output logic       nested_twice,
    output logic       sealed,
    output logic       paused
);
    logic [7:0] mask;
    logic [7:0] high;
    logic [7:0] pending;
    logic       in_high;
    logic       candidate_high;
    logic       any;

    wire [7:0] urgent = pending & mask & high;
    wire [7:0] normal = pending & mask & ~high;

    always_comb begin
        vector         = 3'd0;
        any            = 1'b1;
        candidate_high = 1'b0;
        if (urgent != 8'd0) begin
            candidate_high = 1'b1;
            for (int i = 7; i >= 0; i--) if (urgent[i]) vector = 3'(i);
        end else if (normal != 8'd0) begin
            for (int i = 7; i >= 0; i--) if (normal[i]) vector = 3'(i);
        end else any = 1'b0;
    end

    assign irq = any && !paused && (depth == 2'd0 || (candidate_high && !in_high));

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            mask         <= 8'd0;
            high         <= 8'd0;
            pending      <= 8'd0;
            depth        <= 2'd0;
            in_high      <= 1'b0;
            spurious     <= 1'b0;
            nested_twice <= 1'b0;
            sealed       <= 1'b0;
            paused       <= 1'b0;
        end else begin
            pending <= pending | source;
            if (write_mask && write_level) begin
                case (wdata)
                    8'h0D: paused <= 1'b1;
                    8'hD0: begin
                        if (pending != 8'd0) paused <= 1'b0;
                    end
                    8'hC1: begin
                        if (depth == 2'd0 && !paused) spurious <= 1'b0;
                    end
                    default: spurious <= 1'b1;
                endcase
            end else if (write_mask) mask <= wdata;
            else if (write_level) begin
                // changing levels inside a handler is refused
                if (depth != 2'd0) spurious <= 1'b1;
                else if (wdata == 8'hE7) sealed <= 1'b1;
                else if (!sealed) high <= wdata;
                else if (wdata == 8'h18 && mask == 8'd0) sealed <= 1'b0;
            end
            if (acknowledge) begin
                if (irq) begin
                    pending[vector] <= source[vector];
                    depth           <= depth + 2'd1;
                    if (candidate_high) in_high <= 1'b1;
                    if (depth == 2'd1 && candidate_high && mask == 8'hFF) nested_twice <= 1'b1;
                end else spurious <= 1'b1;
            end else if (finish) begin
                if (depth == 2'd0) spurious <= 1'b1;
                else begin
                    depth <= depth - 2'd1;
                    if (in_high) in_high <= 1'b0;
                end
            end
        end
    end
endmodule
