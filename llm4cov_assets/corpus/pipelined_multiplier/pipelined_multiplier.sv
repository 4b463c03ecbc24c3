// Three-stage multiplier: signed or unsigned, stall and flush, rounding, and a saturating sum of tagged products.
module pipelined_multiplier (
    input  logic        clk,
    input  logic        rst,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [7:0]  a,
    input  logic [7:0]  b,
    input  logic        is_signed,
    input  logic [1:0]  mode,
    input  logic [2:0]  tag,
    input  logic        flush,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [15:0] product,
    output logic [2:0]  out_tag,
    output logic        saturated,
    output logic        dropped,
    output logic        out_of_order,
    output logic        square_seen
);
    typedef enum logic [1:0] {PLAIN, ROUND, SUM, CLEAR_SUM} mode_t;

    typedef struct packed {
        logic       valid;
        logic       negative;
        mode_t      mode;
        logic [2:0] tag;
    } control_t;

    control_t    c1;
    control_t    c2;
    logic [7:0]  a1;
    logic [7:0]  b1;
    logic [11:0] low2;
    logic [11:0] high2;
    logic [15:0] sum;
    logic [2:0]  expected;
    logic [15:0] full;
    logic [16:0] total;
    wire         stall    = out_valid && !out_ready;
    wire         negate_a = is_signed && a[7];
    wire         negate_b = is_signed && b[7];

    assign in_ready = !stall && !flush;

    always_comb begin
        full  = {4'd0, low2} + {high2, 4'd0};
        if (c2.negative) full = -full;
        total = {sum[15], sum} + {full[15], full};
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            c1           <= '0;
            c2           <= '0;
            a1           <= 8'd0;
            b1           <= 8'd0;
            low2         <= 12'd0;
            high2        <= 12'd0;
            sum          <= 16'd0;
            expected     <= 3'd0;
            out_valid    <= 1'b0;
            product      <= 16'd0;
            out_tag      <= 3'd0;
            saturated    <= 1'b0;
            dropped      <= 1'b0;
            out_of_order <= 1'b0;
            square_seen  <= 1'b0;
        end else if (flush) begin
            // what waits at the output stays; what is on its way is lost
            if (c1.valid && c2.valid) dropped <= 1'b1;
            c1.valid <= 1'b0;
            c2.valid <= 1'b0;
            if (out_ready) out_valid <= 1'b0;
        end else if (!stall) begin
            c1 <= '{valid: in_valid, negative: negate_a != negate_b, mode: mode_t'(mode), tag: tag};
            a1 <= negate_a ? -a : a;
            b1 <= negate_b ? -b : b;
            if (in_valid && a == b && a[7:4] == 4'hB) square_seen <= 1'b1;

            c2    <= c1;
            low2  <= {4'd0, a1} * {8'd0, b1[3:0]};
            high2 <= {4'd0, a1} * {8'd0, b1[7:4]};

            out_valid <= c2.valid;
            if (c2.valid) begin
                out_tag  <= c2.tag;
                expected <= c2.tag + 3'd1;
                if (c2.tag != expected && expected != 3'd0) out_of_order <= 1'b1;
                case (c2.mode)
                    PLAIN: product <= full;
                    ROUND: begin
                        // to the upper byte; half goes up
                        if (full[15:7] == 9'h0FF) begin
                            product   <= 16'h7F00;
                            saturated <= 1'b1;
                        end else product <= {full[15:8] + {7'd0, full[7]}, 8'd0};
                    end
                    SUM: begin
                        if (total[16] != total[15]) begin
                            sum       <= total[16] ? 16'h8000 : 16'h7FFF;
                            product   <= total[16] ? 16'h8000 : 16'h7FFF;
                            saturated <= 1'b1;
                        end else begin
                            sum     <= total[15:0];
                            product <= total[15:0];
                        end
                    end
                    default: begin
                        sum     <= 16'd0;
                        product <= sum;
                        if (full == 16'h4000) {saturated, dropped, out_of_order} <= 3'b000;
                    end
                endcase
            end
        end
    end
endmodule
