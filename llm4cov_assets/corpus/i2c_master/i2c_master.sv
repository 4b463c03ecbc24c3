// I2C master for single commands: start, write, read, stop; clock stretching, lost arbitration, time-out.
module i2c_master #(
    parameter int unsigned QUARTER = 2
) (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       valid,
    output logic       ready,
    input  logic [1:0] command,
    input  logic [7:0] data,
    input  logic       last,
    input  logic       scl_in,
    input  logic       sda_in,
    output logic       scl_low,
    output logic       sda_low,
    output logic [7:0] received,
    output logic       done,
    output logic       refused,
    output logic       nacked,
    output logic       lost,
    output logic       timed_out
);
    typedef enum logic [2:0] {IDLE, HELD, START, BITS, ACK, STOP, FAULT} state_t;
    typedef enum logic [1:0] {DO_START, DO_WRITE, DO_READ, DO_STOP} command_t;
    localparam int unsigned DW = $clog2(QUARTER);

    state_t        state;
    logic [DW-1:0] divider;
    logic [1:0]    phase;
    logic [2:0]    index;
    logic [3:0]    patience;
    logic [2:0]    quiet;
    logic [7:0]    shift;
    logic          reading;
    logic          final_byte;
    wire           tick = divider == DW'(QUARTER - 1);

    assign ready = state == IDLE || state == HELD;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state      <= IDLE;
            divider    <= '0;
            phase      <= 2'd0;
            index      <= 3'd0;
            patience   <= 4'd0;
            quiet      <= 3'd0;
            shift      <= 8'd0;
            reading    <= 1'b0;
            final_byte <= 1'b0;
            scl_low    <= 1'b0;
            sda_low    <= 1'b0;
            received   <= 8'd0;
            done       <= 1'b0;
            refused    <= 1'b0;
            nacked     <= 1'b0;
            lost       <= 1'b0;
            timed_out  <= 1'b0;
        end else begin
            done    <= 1'b0;
            divider <= (tick || ready) ? '0 : divider + 1'b1;
            if (ready) begin
                phase    <= 2'd0;
                index    <= 3'd0;
                patience <= 4'd0;
                quiet    <= 3'd0;
                if (valid) begin
                    if (command == DO_START) begin
                        state     <= START;
                        refused   <= 1'b0;
                        nacked    <= 1'b0;
                        lost      <= 1'b0;
                        timed_out <= 1'b0;
                    end else if (state == IDLE) refused <= 1'b1;
                    else if (command == DO_STOP) state <= STOP;
                    else begin
                        state      <= BITS;
                        reading    <= command == DO_READ;
                        final_byte <= last;
                        shift      <= data;
                    end
                end
            end else if (state == FAULT) begin
                scl_low <= 1'b0;
                sda_low <= 1'b0;
                quiet   <= (scl_in && sda_in) ? quiet + 3'd1 : 3'd0;
                if (quiet == 3'd7) state <= IDLE;
            end else if (tick) begin
                if (phase == 2'd2 && !scl_in) begin
                    // somebody stretches the clock
                    patience <= patience + 4'd1;
                    if (patience == 4'd15) begin
                        timed_out <= 1'b1;
                        state     <= FAULT;
                    end
                end else begin
                    phase    <= phase + 2'd1;
                    patience <= 4'd0;
                    if (phase == 2'd1) scl_low <= 1'b0;
                    if (phase == 2'd3 && state != STOP) scl_low <= 1'b1;
                    case (state)
                        START: begin
                            if (phase == 2'd0) sda_low <= 1'b0;
                            else if (phase == 2'd2) sda_low <= 1'b1;
                            else if (phase == 2'd3) state <= HELD;
                        end
                        BITS: begin
                            if (phase == 2'd0) sda_low <= !reading && !shift[7];
                            else if (phase == 2'd2) begin
                                shift <= {shift[6:0], sda_in};
                                if (!reading && !sda_low && !sda_in) begin
                                    lost  <= 1'b1;
                                    state <= FAULT;
                                end
                            end else if (phase == 2'd3) begin
                                index <= index + 3'd1;
                                if (index == 3'd7) state <= ACK;
                            end
                        end
                        ACK: begin
                            if (phase == 2'd0) sda_low <= reading && !final_byte;
                            else if (phase == 2'd2) begin
                                if (!reading && sda_in) nacked <= 1'b1;
                            end else if (phase == 2'd3) begin
                                state <= HELD;
                                done  <= 1'b1;
                                if (reading) received <= shift;
                            end
                        end
                        default: begin
                            if (phase == 2'd0) sda_low <= 1'b1;
                            else if (phase == 2'd2) sda_low <= 1'b0;
                            else if (phase == 2'd3) begin
                                if (sda_in) state <= IDLE;
                                else begin
                                    lost  <= 1'b1;
                                    state <= FAULT;
                                end
                            end
                        end
                    endcase
                end
            end
        end
    end
endmodule
