// Wishbone target that carries single accesses into another clock domain, with a time-out and a guarded window.
module wishbone_bridge (
    input  logic       wb_clk,
    input  logic       wb_rst,
    input  logic       cyc,
    input  logic       stb,
    input  logic       we,
    input  logic [5:0] adr,
    input  logic [7:0] dat_w,
    output logic [7:0] dat_r,
    output logic       ack,
    output logic       err,
    output logic       rty,
    input  logic       dev_clk,
    input  logic       dev_rst_n,
    output logic       dev_request,
    output logic       dev_write,
    output logic [5:0] dev_address,
    output logic [7:0] dev_wdata,
    input  logic       dev_done,
    input  logic       dev_fault,
    input  logic [7:0] dev_rdata
);
    typedef enum logic [1:0] {IDLE, CROSSING, ANSWER, DRAIN} state_t;
    typedef enum logic [1:0] {REST, ASK, REPLY} device_t;
    localparam logic [5:0] PATIENCE = 6'd48;
    localparam logic [5:0] OWN      = 6'h3F;

    // bus side
    state_t     state;
    logic       send;
    logic       reply_q1;
    logic       reply_q2;
    logic [5:0] patience;
    logic       open_window;
    logic       write;
    logic [5:0] address;
    logic [7:0] value;
    // device side
    device_t    device;
    logic       send_q1;
    logic       send_q2;
    logic       reply;
    logic       fault;
    logic [7:0] data;
    wire        active   = cyc && stb && !(ack || err || rty);
    wire        guarded  = adr[5:4] == 2'b10 && !open_window;
    wire        answered = reply_q2 == send;

    assign dev_request = device == ASK;
    assign dev_write   = write;
    assign dev_address = address;
    assign dev_wdata   = value;

    always_ff @(posedge wb_clk) begin
        if (wb_rst) begin
            state       <= IDLE;
            send        <= 1'b0;
            reply_q1    <= 1'b0;
            reply_q2    <= 1'b0;
            patience    <= 6'd0;
            open_window <= 1'b0;
            write       <= 1'b0;
            address     <= 6'd0;
            value       <= 8'd0;
            dat_r       <= 8'd0;
            ack         <= 1'b0;
            err         <= 1'b0;
            rty         <= 1'b0;
        end else begin
            reply_q1 <= reply;
            reply_q2 <= reply_q1;
            ack      <= 1'b0;
            err      <= 1'b0;
            rty      <= 1'b0;
            case (state)
                IDLE: begin
                    patience <= 6'd0;
                    if (active && adr == OWN) begin
                        // the bridge's own register opens and closes the guarded window
                        ack <= 1'b1;
                        if (we) open_window <= dat_w == 8'h6E;
                        else dat_r <= {7'd0, open_window};
                    end else if (active && guarded) err <= 1'b1;
                    else if (active) begin
                        write   <= we;
                        address <= adr;
                        value   <= dat_w;
                        send    <= !send;
                        state   <= CROSSING;
                    end
                end
                CROSSING: begin
                    patience <= patience + 6'd1;
                    if (answered) state <= ANSWER;
                    else if (patience == PATIENCE) begin
                        rty   <= cyc;
                        state <= DRAIN;
                    end else if (!cyc) state <= DRAIN;
                end
                ANSWER: begin
                    state <= IDLE;
                    if (cyc) begin
                        if (fault) err <= 1'b1;
                        else begin
                            ack <= 1'b1;
                            if (!write) dat_r <= data;
                        end
                    end
                end
                default: begin
                    // the access was given up here, but the device still has it
                    if (active) rty <= 1'b1;
                    if (answered) state <= IDLE;
                end
            endcase
        end
    end

    always_ff @(posedge dev_clk or negedge dev_rst_n) begin
        if (!dev_rst_n) begin
            device  <= REST;
            send_q1 <= 1'b0;
            send_q2 <= 1'b0;
            reply   <= 1'b0;
            fault   <= 1'b0;
            data    <= 8'd0;
        end else begin
            send_q1 <= send;
            send_q2 <= send_q1;
            case (device)
                REST: if (send_q2 != reply) device <= ASK;
                ASK: begin
                    if (dev_done) begin
                        fault  <= dev_fault;
                        device <= REPLY;
                        if (!write) data <= dev_fault ? 8'hEE : dev_rdata;
                    end
                end
                default: begin
                    reply  <= send_q2;
                    device <= REST;
                end
            endcase
        end
    end
endmodule
