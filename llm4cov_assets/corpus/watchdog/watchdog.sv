// Window watchdog: must be kicked with two keys in order, not too early and not too late.
module watchdog (
    input  logic       clk,
    input  logic       rst,
    input  logic       kick,
    input  logic [7:0] key,
    output logic       bark,
    output logic       bite,
    output logic       early,
    output logic       armed,
    output logic [1:0] barks
);
    typedef enum logic [1:0] {OFF, FIRST, SECOND, BITTEN} state_t;
    localparam logic [7:0] ARM = 8'hC0, KEY1 = 8'h5C, KEY2 = 8'hA3, DISARM = 8'h0F, RELEASE = 8'hE7;
    localparam logic [5:0] OPEN_AT = 6'd10, BARK_AT = 6'd36, BITE_AT = 6'd48;

    state_t     state;
    logic [5:0] count;

    assign armed = state == FIRST || state == SECOND;
    assign bite  = state == BITTEN;
    assign bark  = armed && count >= BARK_AT;

    always_ff @(posedge clk) begin
        if (rst) begin
            state <= OFF;
            count <= 6'd0;
            early <= 1'b0;
            barks <= 2'd0;
        end else begin
            if (armed) begin
                count <= count + 6'd1;
                if (count == BARK_AT && barks != 2'd3) barks <= barks + 2'd1;
            end
            if (armed && count == BITE_AT) state <= BITTEN;
            else if (kick) begin
                case (state)
                    OFF: begin
                        if (key == ARM) begin
                            state <= FIRST;
                            count <= 6'd0;
                        end
                    end
                    FIRST: begin
                        if (key == KEY1) state <= SECOND;
                        else if (key == DISARM && barks == 2'd0) state <= OFF;
                        else if (key == KEY2) state <= BITTEN;
                    end
                    SECOND: begin
                        if (key != KEY2) state <= FIRST;
                        else if (count < OPEN_AT) begin
                            early <= 1'b1;
                            state <= BITTEN;
                        end else begin
                            count <= 6'd0;
                            state <= FIRST;
                        end
                    end
                    default: begin
                        if (key == RELEASE) begin
                            state <= OFF;
                            early <= 1'b0;
                            barks <= 2'd0;
                        end
                    end
                endcase
            end
        end
    end
endmodule
