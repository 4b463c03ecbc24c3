// Classifies a half-precision number and compares it with a second one; purely combinational.
module float_class (
    input  logic [15:0] x,
    input  logic [15:0] y,
    input  logic [1:0]  mode,
    output logic [2:0]  kind,
    output logic        less,
    output logic        equal,
    output logic        unordered,
    output logic        special
);
    localparam logic [2:0] ZERO = 3'd0, SUBNORMAL = 3'd1, NORMAL = 3'd2, INFINITE = 3'd3, QUIET = 3'd4, SIGNALLING = 3'd5,
        ONE = 3'd6, LARGEST = 3'd7;

    wire [4:0] exponent = x[14:10];
    wire [9:0] fraction = x[9:0];
    wire x_nan  = (x[14:10] == 5'h1F) && (x[9:0] != 10'd0);
    wire y_nan  = (y[14:10] == 5'h1F) && (y[9:0] != 10'd0);
    wire x_zero = x[14:0] == 15'd0;
    wire y_zero = y[14:0] == 15'd0;

    always_comb begin
        if (exponent == 5'h1F) begin
            if (fraction == 10'd0) kind = INFINITE;
            else if (fraction[9]) kind = QUIET;
            else kind = SIGNALLING;
        end else if (exponent == 5'd0) begin
            if (fraction == 10'd0) kind = ZERO;
            else kind = SUBNORMAL;
        end else if (x[14:0] == 15'h3C00) kind = ONE;
        else if (x[14:0] == 15'h7BFF) kind = LARGEST;
        else kind = NORMAL;
    end

    always_comb begin
        less      = 1'b0;
        equal     = 1'b0;
        unordered = 1'b0;
        if (x_nan || y_nan) unordered = 1'b1;
        else if (x_zero && y_zero) equal = 1'b1;
        else if (x == y) equal = 1'b1;
        else if (x[15] != y[15]) less = x[15];
        else if (x[15]) less = x[14:0] > y[14:0];
        else less = x[14:0] < y[14:0];
    end

    always_comb begin
        case (mode)
            2'd0:    special = (kind == INFINITE) || unordered;
            2'd1:    special = (kind == ONE) && equal;
            2'd2:    special = (kind == SUBNORMAL) && less;
            default: special = (x == 16'hFBFF) && (y == 16'h0001);
        endcase
    end
endmodule
