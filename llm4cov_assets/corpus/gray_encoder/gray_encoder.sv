// Quadrature decoder with position limits, an index mark, error detection and speed measurement.
module gray_encoder (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       a,
    input  logic       b,
    input  logic       index_mark,
    input  logic [3:0] command,
    output logic [4:0] position,
    output logic       direction,
    output logic       error,
    output logic       at_limit,
    output logic       stalled,
    output logic       homed
);
    logic [1:0] last;
    logic [4:0] quiet;
    logic [1:0] errors;
    wire  [1:0] now = {a, b};

    assign at_limit = position == 5'd20 || position == 5'd0;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            position  <= 5'd10;
            direction <= 1'b0;
            error     <= 1'b0;
            errors    <= 2'd0;
            stalled   <= 1'b0;
            homed     <= 1'b0;
            last      <= 2'd0;
            quiet     <= 5'd0;
        end else begin
            last <= now;
            if (now == last) begin
                if (quiet == 5'd24) stalled <= 1'b1;
                else quiet <= quiet + 5'd1;
            end else begin
                quiet   <= 5'd0;
                stalled <= 1'b0;
                case ({last, now})
                    4'b0001, 4'b0111, 4'b1110, 4'b1000: begin
                        direction <= 1'b1;
                        if (position != 5'd20) position <= position + 5'd1;
                    end
                    4'b0010, 4'b1011, 4'b1101, 4'b0100: begin
                        direction <= 1'b0;
                        if (position != 5'd0) position <= position - 5'd1;
                    end
                    default: begin
                        // both lines changed at once
                        if (errors == 2'd3) error <= 1'b1;
                        else errors <= errors + 2'd1;
                    end
                endcase
            end
            if (index_mark && direction && position == 5'd17) homed <= 1'b1;
            if (command == 4'h9 && error && at_limit) begin
                error  <= 1'b0;
                errors <= 2'd0;
            end else if (command == 4'h4 && stalled) position <= 5'd10;
        end
    end
endmodule
