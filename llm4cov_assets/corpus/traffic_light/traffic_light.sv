// Traffic light at a crossing of a main road and a side road, with a pedestrian button and a night mode.
module traffic_light (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       car_waiting,
    input  logic       walk_button,
    input  logic       night,
    input  logic [3:0] emergency,
    output logic [2:0] main_light,
    output logic [2:0] side_light,
    output logic       walk
);
    typedef enum logic [2:0] {MAIN_GREEN, MAIN_YELLOW, SIDE_GREEN, SIDE_YELLOW, WALK, BLINK, ALL_RED} state_t;

    localparam logic [2:0] RED = 3'b100, YELLOW = 3'b010, GREEN = 3'b001, DARK = 3'b000;
    localparam logic [4:0] MIN_MAIN = 5'd12, SIDE_TIME = 5'd9, WALK_TIME = 5'd7, YELLOW_TIME = 5'd2, NIGHT_WAIT = 5'd20;

    state_t     state;
    logic [4:0] timer;
    logic       walk_request;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state        <= MAIN_GREEN;
            timer        <= 5'd0;
            walk_request <= 1'b0;
        end else begin
            if (walk_button) walk_request <= 1'b1;
            timer <= timer + 5'd1;
            if (emergency == 4'b1011 && state != ALL_RED) begin
                state <= ALL_RED;
                timer <= 5'd0;
            end else begin
                case (state)
                    MAIN_GREEN: begin
                        if (night && !car_waiting && timer >= NIGHT_WAIT) begin
                            state <= BLINK;
                            timer <= 5'd0;
                        end else if ((car_waiting || walk_request) && timer >= MIN_MAIN) begin
                            state <= MAIN_YELLOW;
                            timer <= 5'd0;
                        end else if (timer == 5'd30) begin
                            timer <= 5'd30;
                        end
                    end
                    MAIN_YELLOW: begin
                        if (timer == YELLOW_TIME) begin
                            timer <= 5'd0;
                            if (walk_request) state <= WALK;
                            else state <= SIDE_GREEN;
                        end
                    end
                    SIDE_GREEN: begin
                        if (timer == SIDE_TIME || !car_waiting) begin
                            state <= SIDE_YELLOW;
                            timer <= 5'd0;
                        end
                    end
                    SIDE_YELLOW: begin
                        if (timer == YELLOW_TIME) begin
                            state <= MAIN_GREEN;
                            timer <= 5'd0;
                        end
                    end
                    WALK: begin
                        if (timer == WALK_TIME) begin
                            walk_request <= 1'b0;
                            timer        <= 5'd0;
                            if (car_waiting) state <= SIDE_GREEN;
                            else state <= MAIN_GREEN;
                        end
                    end
                    BLINK: begin
                        if (!night || walk_request) begin
                            state <= MAIN_YELLOW;
                            timer <= 5'd0;
                        end
                    end
                    default: begin
                        if (emergency == 4'b0110) begin
                            state <= MAIN_GREEN;
                            timer <= 5'd0;
                        end
                    end
                endcase
            end
        end
    end

    always_comb begin
        main_light = RED;
        side_light = RED;
        walk       = 1'b0;
        case (state)
            MAIN_GREEN:  main_light = GREEN;
            MAIN_YELLOW: main_light = YELLOW;
            SIDE_GREEN:  side_light = GREEN;
            SIDE_YELLOW: side_light = YELLOW;
            WALK:        walk = 1'b1;
            BLINK: begin
                main_light = timer[0] ? YELLOW : DARK;
                side_light = timer[0] ? RED : DARK;
            end
            default: ;
        endcase
    end
endmodule
