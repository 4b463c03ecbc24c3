// Counter with modes, programmable ends, a prescaler, a compare match that freezes it, and a one-shot.
module mode_counter (
    input  logic       clk,
    input  logic       rst,
    input  logic       enable,
    input  logic [2:0] mode,
    input  logic [7:0] value,
    output logic [7:0] count,
    output logic       wrapped,
    output logic       matched,
    output logic       frozen,
    output logic       direction,
    output logic       one_shot
);
    localparam logic [2:0] UP = 3'd1, DOWN = 3'd2, BOUNCE = 3'd3, LOAD = 3'd4, SET_TOP = 3'd5,
        SET_MATCH = 3'd6, THAW = 3'd7;

    logic [7:0] top;
    logic [7:0] match_at;
    logic [1:0] prescale;

    always_ff @(posedge clk) begin
        if (rst) begin
            count     <= 8'd0;
            top       <= 8'd40;
            match_at  <= 8'd25;
            prescale  <= 2'd0;
            wrapped   <= 1'b0;
            matched   <= 1'b0;
            frozen    <= 1'b0;
            direction <= 1'b1;
            one_shot  <= 1'b0;
        end else if (frozen) begin
            if (mode == THAW && value == 8'h69) begin
                frozen  <= 1'b0;
                matched <= 1'b0;
            end
        end else if (enable) begin
            wrapped <= 1'b0;
            if (count == match_at && matched) frozen <= 1'b1;
            else if (count == match_at) matched <= 1'b1;
            case (mode)
                UP: begin
                    prescale <= prescale + 2'd1;
                    if (prescale[0]) begin
                        if (count >= top) begin
                            count   <= 8'd0;
                            wrapped <= 1'b1;
                            if (one_shot) begin
                                // a one-shot stops where it began
                                frozen   <= 1'b1;
                                one_shot <= 1'b0;
                            end
                        end else count <= count + 8'd1;
                    end
                end
                DOWN: begin
                    if (count == 8'd0) begin
                        count   <= top;
                        wrapped <= 1'b1;
                    end else count <= count - 8'd1;
                end
                BOUNCE: begin
                    if (direction && count >= top) direction <= 1'b0;
                    else if (!direction && count == 8'd0) direction <= 1'b1;
                    else if (direction) count <= count + 8'd1;
                    else count <= count - 8'd1;
                end
                LOAD: if (value <= top) count <= value;
                SET_TOP: begin
                    if (value > 8'd3 && value < 8'd250) top <= value;
                end
                SET_MATCH: if (value != 8'd0) match_at <= value;
                default: begin
                    prescale <= 2'd0;
                    if (value == 8'h51 && count == 8'd0) one_shot <= 1'b1;
                    else if (value == 8'h15) one_shot <= 1'b0;
                end
            endcase
        end
    end
endmodule
