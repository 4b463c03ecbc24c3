// PS/2 keyboard receiver: filtered lines, frames with parity and time-out, key codes with release and extension.
module ps2_receiver (
    input  logic       clk,
    input  logic       rst,
    input  logic       ps2_clk,
    input  logic       ps2_data,
    input  logic       take,
    output logic       key_valid,
    output logic [7:0] key_code,
    output logic       released,
    output logic       extended,
    output logic       shift_down,
    output logic       caps_lock,
    output logic       overrun,
    output logic       parity_error,
    output logic       frame_error,
    output logic       timed_out
);
    typedef enum logic [1:0] {WAITING, DATA, PARITY, STOP} state_t;
    localparam logic [7:0] EXTENDED = 8'hE0, RELEASED = 8'hF0, SELF_TEST = 8'hAA, LEFT_SHIFT = 8'h12, CAPS = 8'h58;
    localparam logic [5:0] PATIENCE = 6'd60;

    state_t     state;
    logic [2:0] clk_samples;
    logic       clk_level;
    logic       clk_q;
    logic [7:0] shift;
    logic [2:0] index;
    logic       odd;
    logic [5:0] patience;
    logic       got_byte;
    logic       is_release;
    logic       is_extended;
    wire        fall = clk_q && !clk_level;

    always_ff @(posedge clk) begin
        if (rst) begin
            clk_samples  <= 3'b111;
            clk_level    <= 1'b1;
            clk_q        <= 1'b1;
            state        <= WAITING;
            shift        <= 8'd0;
            index        <= 3'd0;
            odd          <= 1'b0;
            patience     <= 6'd0;
            got_byte     <= 1'b0;
            parity_error <= 1'b0;
            frame_error  <= 1'b0;
            timed_out    <= 1'b0;
        end else begin
            clk_samples <= {clk_samples[1:0], ps2_clk};
            if (clk_samples == 3'b000) clk_level <= 1'b0;
            else if (clk_samples == 3'b111) clk_level <= 1'b1;
            clk_q    <= clk_level;
            got_byte <= 1'b0;
            if (fall) begin
                patience <= 6'd0;
                case (state)
                    WAITING: begin
                        index <= 3'd0;
                        odd   <= 1'b0;
                        if (ps2_data) frame_error <= 1'b1;
                        else begin
                            state        <= DATA;
                            parity_error <= 1'b0;
                            frame_error  <= 1'b0;
                            timed_out    <= 1'b0;
                        end
                    end
                    DATA: begin
                        shift <= {ps2_data, shift[7:1]};
                        odd   <= odd ^ ps2_data;
                        index <= index + 3'd1;
                        if (index == 3'd7) state <= PARITY;
                    end
                    PARITY: begin
                        state <= STOP;
                        if (odd == ps2_data) parity_error <= 1'b1;
                    end
                    default: begin
                        state <= WAITING;
                        if (!ps2_data) frame_error <= 1'b1;
                        else got_byte <= !parity_error;
                    end
                endcase
            end else if (state != WAITING) begin
                patience <= patience + 6'd1;
                if (patience == PATIENCE) begin
                    timed_out <= 1'b1;
                    patience  <= 6'd0;
                    state     <= WAITING;
                end
            end
        end
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            key_valid   <= 1'b0;
            key_code    <= 8'd0;
            released    <= 1'b0;
            extended    <= 1'b0;
            shift_down  <= 1'b0;
            caps_lock   <= 1'b0;
            overrun     <= 1'b0;
            is_release  <= 1'b0;
            is_extended <= 1'b0;
        end else begin
            if (take) begin
                key_valid <= 1'b0;
                if (!key_valid) overrun <= 1'b0;
            end
            if (got_byte) begin
                if (shift == EXTENDED) is_extended <= 1'b1;
                else if (shift == RELEASED) is_release <= 1'b1;
                else begin
                    is_release  <= 1'b0;
                    is_extended <= 1'b0;
                    if (shift == SELF_TEST) begin
                        shift_down <= 1'b0;
                        caps_lock  <= 1'b0;
                    end else if (shift == LEFT_SHIFT && !is_extended) shift_down <= !is_release;
                    else if (key_valid && !take) overrun <= 1'b1;
                    else begin
                        key_valid <= 1'b1;
                        key_code  <= shift;
                        released  <= is_release;
                        extended  <= is_extended;
                        if (shift == CAPS && is_release && !shift_down) caps_lock <= !caps_lock;
                    end
                end
            end
        end
    end
endmodule
