// Iterative CORDIC: rotates a vector by an angle, or turns it onto the x axis to find angle and length.
module cordic #(
    parameter int unsigned STEPS = 7
) (
    input  logic              clk,
    input  logic              rst_n,
    input  logic              start,
    input  logic              vectoring,
    input  logic signed [7:0] x_in,
    input  logic signed [7:0] y_in,
    input  logic signed [7:0] angle_in,
    input  logic              cancel,
    output logic              ready,
    output logic              done,
    output logic signed [9:0] x_out,
    output logic signed [9:0] y_out,
    output logic signed [7:0] angle_out,
    output logic              exact,
    output logic              no_vector,
    output logic              overflow
);
    typedef enum logic [1:0] {IDLE, TURN, ITERATE, FINISH} state_t;

    state_t            state;
    logic              finding;
    logic signed [9:0] x;
    logic signed [9:0] y;
    logic signed [7:0] angle;
    logic [2:0]        step;
    logic signed [7:0] part;
    logic              clockwise;
    wire signed [9:0]  x_part = x >>> step;
    wire signed [9:0]  y_part = y >>> step;

    assign ready = state == IDLE;

    // arctangents of 2^-step, where 128 is half a turn
    always_comb begin
        case (step)
            3'd0:    part = 8'sd32;
            3'd1:    part = 8'sd19;
            3'd2:    part = 8'sd10;
            3'd3:    part = 8'sd5;
            3'd4:    part = 8'sd3;
            default: part = 8'sd1;
        endcase
        clockwise = finding ? !y[9] : angle[7];
    end

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state     <= IDLE;
            finding   <= 1'b0;
            x         <= 10'sd0;
            y         <= 10'sd0;
            angle     <= 8'sd0;
            step      <= 3'd0;
            done      <= 1'b0;
            x_out     <= 10'sd0;
            y_out     <= 10'sd0;
            angle_out <= 8'sd0;
            exact     <= 1'b0;
            no_vector <= 1'b0;
            overflow  <= 1'b0;
        end else begin
            done <= 1'b0;
            case (state)
                IDLE: begin
                    if (start) begin
                        step      <= 3'd0;
                        finding   <= vectoring;
                        x         <= {{2{x_in[7]}}, x_in};
                        y         <= {{2{y_in[7]}}, y_in};
                        angle     <= angle_in;
                        exact     <= 1'b0;
                        no_vector <= vectoring && x_in == 8'sd0 && y_in == 8'sd0;
                        state     <= TURN;
                    end
                end
                TURN: begin
                    // half a turn first when the rest would be more than a quarter
                    if (no_vector) state <= IDLE;
                    else begin
                        state <= ITERATE;
                        if (finding ? x[9] : (angle > 8'sd64 || angle < -8'sd64)) begin
                            x     <= -x;
                            y     <= -y;
                            angle <= angle ^ 8'sh80;
                        end
                    end
                end
                ITERATE: begin
                    if (cancel) state <= IDLE;
                    else if (finding ? y == 10'sd0 : angle == 8'sd0) begin
                        exact <= step < 3'd4;
                        state <= FINISH;
                    end else begin
                        x     <= clockwise ? x + y_part : x - y_part;
                        y     <= clockwise ? y - x_part : y + x_part;
                        angle <= clockwise ? angle + part : angle - part;
                        step  <= step + 3'd1;
                        if (step == 3'(STEPS - 1)) state <= FINISH;
                    end
                end
                default: begin
                    state     <= IDLE;
                    done      <= 1'b1;
                    x_out     <= x;
                    y_out     <= y;
                    angle_out <= angle;
                    if (x > 10'sd250 || x < -10'sd250) overflow <= 1'b1;
                    else if (x == 10'sd0 && !finding) overflow <= 1'b0;
                end
            endcase
        end
    end
endmodule
