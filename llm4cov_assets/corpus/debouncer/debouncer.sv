// Debounces a push button, tells short, long, double and triple presses apart, and has a child lock.
module debouncer (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       button,
    input  logic       fast,
    output logic       pressed,
    output logic       short_press,
    output logic       long_press,
    output logic       double_press,
    output logic       stuck,
    output logic       child_lock,
    output logic [2:0] glitches
);
    typedef enum logic [2:0] {IDLE, DOWN, WAIT, AGAIN, WAIT3, THIRD, LONG} state_t;
    state_t     state;
    logic       sync1;
    logic       sync2;
    logic [2:0] stable;
    logic [5:0] timer;
    wire  [2:0] limit = fast ? 3'd2 : 3'd5;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            sync1        <= 1'b0;
            sync2        <= 1'b0;
            stable       <= 3'd0;
            pressed      <= 1'b0;
            glitches     <= 3'd0;
            state        <= IDLE;
            timer        <= 6'd0;
            short_press  <= 1'b0;
            long_press   <= 1'b0;
            double_press <= 1'b0;
            stuck        <= 1'b0;
            child_lock   <= 1'b0;
        end else begin
            sync1 <= button;
            sync2 <= sync1;
            if (sync2 == pressed) begin
                if (stable != 3'd0 && glitches != 3'd7) glitches <= glitches + 3'd1;
                stable <= 3'd0;
            end else if (stable == limit) begin
                pressed <= sync2;
                stable  <= 3'd0;
            end else stable <= stable + 3'd1;

            short_press  <= 1'b0;
            long_press   <= 1'b0;
            double_press <= 1'b0;
            timer        <= timer + 6'd1;
            case (state)
                IDLE: begin
                    timer <= 6'd0;
                    stuck <= 1'b0;
                    if (pressed) state <= DOWN;
                end
                DOWN: begin
                    if (!pressed) begin
                        state <= WAIT;
                        timer <= 6'd0;
                    end else if (timer == 6'd20) begin
                        long_press <= !child_lock;
                        state      <= LONG;
                    end
                end
                WAIT: begin
                    if (pressed) state <= AGAIN;
                    else if (timer == 6'd16) begin
                        short_press <= !child_lock;
                        state       <= IDLE;
                    end
                end
                AGAIN: begin
                    if (!pressed) begin
                        state <= WAIT3;
                        timer <= 6'd0;
                    end
                end
                WAIT3: begin
                    if (pressed) begin
                        state <= THIRD;
                        timer <= 6'd0;
                    end else if (timer == 6'd16) begin
                        double_press <= !child_lock;
                        state        <= IDLE;
                    end
                end
                THIRD: begin
                    // a third press that is held changes the child lock
                    if (timer == 6'd20) begin
                        child_lock <= !child_lock;
                        state      <= LONG;
                    end else if (!pressed) state <= IDLE;
                end
                default: begin
                    if (!pressed) state <= IDLE;
                    else if (timer == 6'd50) stuck <= 1'b1;
                end
            endcase
        end
    end
endmodule
