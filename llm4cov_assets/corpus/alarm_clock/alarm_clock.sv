// Alarm clock with BCD minutes and hours, snooze and a set mode that checks its digits.
module alarm_clock (
    input  logic       clk,
    input  logic       rst,
    input  logic       tick,
    input  logic [2:0] button,
    input  logic [7:0] digits,
    output logic [5:0] hours,
    output logic [6:0] minutes,
    output logic       ringing,
    output logic       midnight,
    output logic       bad_digits,
    output logic       alarm_on
);
    localparam logic [2:0] SET_HOURS = 3'd1, SET_MINUTES = 3'd2, SET_ALARM = 3'd3, SNOOZE = 3'd4, STOP = 3'd5;

    logic [6:0] alarm_minutes;
    logic [1:0] snoozes;
    logic [2:0] snooze_left;
    logic       snoozing;
    wire        digits_ok = digits[3:0] <= 4'd9 && digits[7:4] <= 4'd5;

    always_ff @(posedge clk) begin
        if (rst) begin
            hours         <= 6'h23;
            minutes       <= 7'h50;
            alarm_minutes <= 7'h55;
            alarm_on      <= 1'b0;
            ringing       <= 1'b0;
            midnight      <= 1'b0;
            bad_digits    <= 1'b0;
            snoozes       <= 2'd0;
            snooze_left   <= 3'd0;
            snoozing      <= 1'b0;
        end else begin
            midnight <= 1'b0;
            if (tick) begin
                if (minutes == 7'h59) begin
                    minutes <= 7'h00;
                    if (hours == 6'h23) begin
                        hours    <= 6'h00;
                        midnight <= 1'b1;
                    end else if (hours[3:0] == 4'd9) hours <= {hours[5:4] + 2'd1, 4'd0};
                    else hours <= hours + 6'h01;
                end else if (minutes[3:0] == 4'd9) minutes <= {minutes[6:4] + 3'd1, 4'd0};
                else minutes <= minutes + 7'h01;

                if (alarm_on && minutes == alarm_minutes) ringing <= 1'b1;
                else if (snoozing) begin
                    snooze_left <= snooze_left - 3'd1;
                    if (snooze_left == 3'd0) begin
                        snoozing <= 1'b0;
                        ringing  <= 1'b1;
                    end
                end
            end
            case (button)
                SET_HOURS: begin
                    if (digits_ok && digits <= 8'h23) hours <= digits[5:0];
                    else bad_digits <= 1'b1;
                end
                SET_MINUTES: begin
                    if (digits_ok) minutes <= digits[6:0];
                    else bad_digits <= 1'b1;
                end
                SET_ALARM: begin
                    if (digits_ok) begin
                        alarm_minutes <= digits[6:0];
                        alarm_on      <= 1'b1;
                    end else if (digits == 8'hAA) alarm_on <= 1'b0;
                    else bad_digits <= 1'b1;
                end
                SNOOZE: begin
                    if (ringing && snoozes != 2'd3) begin
                        ringing     <= 1'b0;
                        snoozing    <= 1'b1;
                        snooze_left <= 3'd4;
                        snoozes     <= snoozes + 2'd1;
                    end
                end
                STOP: begin
                    ringing  <= 1'b0;
                    snoozing <= 1'b0;
                    snoozes  <= 2'd0;
                    if (digits == 8'h00) bad_digits <= 1'b0;
                end
                default: ;
            endcase
        end
    end
endmodule
