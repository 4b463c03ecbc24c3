// Elevator for eight floors: calls, doors, overload, fire service.
module elevator (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       call,
    input  logic [2:0] floor_call,
    input  logic       overload,
    input  logic       obstacle,
    input  logic [3:0] fire_key,
    output logic [2:0] position,
    output logic       moving,
    output logic       upward,
    output logic       door_open,
    output logic       alarm,
    output logic       fire_mode
);
    typedef enum logic [2:0] {IDLE, MOVE, OPENING, OPEN, FIRE} state_t;
    state_t     state;
    logic [7:0] calls;
    logic [1:0] travel;
    logic [2:0] wait_time;
    logic [2:0] blocked;
    logic       above;
    logic       below;

    assign moving    = state == MOVE;
    assign door_open = state == OPEN;
    assign fire_mode = state == FIRE;

    always_comb begin
        above = 1'b0;
        below = 1'b0;
        for (int i = 0; i < 8; i++) begin
            if (calls[i] && i > int'(position)) above = 1'b1;
            if (calls[i] && i < int'(position)) below = 1'b1;
        end
    end

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state     <= IDLE;
            calls     <= 8'd0;
            position  <= 3'd0;
            travel    <= 2'd0;
            wait_time <= 3'd0;
            blocked   <= 3'd0;
            upward    <= 1'b1;
            alarm     <= 1'b0;
        end else begin
            if (call && !fire_mode) calls[floor_call] <= 1'b1;
            case (state)
                IDLE: begin
                    if (fire_key == 4'hD) state <= FIRE;
                    else if (calls[position]) state <= OPENING;
                    else if (above && (upward || !below)) begin
                        upward <= 1'b1;
                        state  <= MOVE;
                    end else if (below) begin
                        upward <= 1'b0;
                        state  <= MOVE;
                    end
                end
                MOVE: begin
                    travel <= travel + 2'd1;
                    if (travel == 2'd3) begin
                        position <= upward ? position + 3'd1 : position - 3'd1;
                        state    <= IDLE;
                    end
                end
                OPENING: begin
                    calls[position] <= 1'b0;
                    wait_time       <= 3'd0;
                    blocked         <= 3'd0;
                    state           <= OPEN;
                end
                OPEN: begin
                    if (overload) alarm <= 1'b1;
                    else if (obstacle) begin
                        wait_time <= 3'd0;
                        blocked   <= blocked + 3'd1;
                        if (blocked == 3'd7) alarm <= 1'b1;
                    end else begin
                        alarm     <= 1'b0;
                        wait_time <= wait_time + 3'd1;
                        if (wait_time == 3'd5) state <= IDLE;
                    end
                end
                default: begin
                    calls <= 8'd0;
                    if (position != 3'd0) begin
                        travel <= travel + 2'd1;
                        if (travel == 2'd3) position <= position - 3'd1;
                    end else if (fire_key == 4'h2) begin
                        upward <= 1'b1;
                        state  <= IDLE;
                    end
                end
            endcase
        end
    end
endmodule
