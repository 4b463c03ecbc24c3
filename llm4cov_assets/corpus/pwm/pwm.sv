// Pulse-width modulator with double buffering, dead time, fault input and a soft start.
module pwm (
    input  logic       clk,
    input  logic       rst,
    input  logic       load,
    input  logic [3:0] period,
    input  logic [3:0] duty,
    input  logic       center,
    input  logic       fault,
    input  logic [3:0] restart_key,
    output logic       high_side,
    output logic       low_side,
    output logic       update,
    output logic       tripped,
    output logic       ramping
);
    logic [3:0] top;
    logic [3:0] high;
    logic [3:0] count;
    logic       falling;
    logic       last_level;
    logic [1:0] dead;
    logic [2:0] ramp;
    logic       pending;
    logic [1:0] faults;
    wire        level = count < high && !tripped;

    assign ramping = ramp != 3'd7;

    always_ff @(posedge clk) begin
        if (rst) begin
            top        <= 4'd9;
            high       <= 4'd0;
            count      <= 4'd0;
            falling    <= 1'b0;
            last_level <= 1'b0;
            dead       <= 2'd0;
            ramp       <= 3'd0;
            pending    <= 1'b0;
            faults     <= 2'd0;
            tripped    <= 1'b0;
            update     <= 1'b0;
            high_side  <= 1'b0;
            low_side   <= 1'b0;
        end else begin
            update <= 1'b0;
            if (load) pending <= 1'b1;
            if (falling) begin
                if (count == 4'd0) falling <= 1'b0;
                else count <= count - 4'd1;
            end else if (count >= top) begin
                if (center) falling <= 1'b1;
                else count <= 4'd0;
                if (ramping) ramp <= ramp + 3'd1;
                if (pending && !ramping) begin
                    // new values take effect between periods, never inside one
                    pending <= 1'b0;
                    update  <= 1'b1;
                    if (period > 4'd2) top <= period;
                    high <= (duty > period) ? period : duty;
                end
            end else count <= count + 4'd1;

            last_level <= level;
            if (level != last_level) dead <= 2'd2;
            else if (dead != 2'd0) dead <= dead - 2'd1;
            high_side <= level && dead == 2'd0 && level == last_level;
            low_side  <= !level && dead == 2'd0 && level == last_level && !tripped;

            if (fault) begin
                if (faults == 2'd3) tripped <= 1'b1;
                else faults <= faults + 2'd1;
            end else if (tripped) begin
                if (restart_key == 4'h6 && !ramping) begin
                    tripped <= 1'b0;
                    ramp    <= 3'd0;
                end
            end else faults <= 2'd0;
        end
    end
endmodule
