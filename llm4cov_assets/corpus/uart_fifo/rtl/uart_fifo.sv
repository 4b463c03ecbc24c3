// UART with queues either way: parity, one or two stop bits, hardware and software flow control, a level interrupt.
module uart_fifo
    import uart_fifo_pkg::*;
#(
    parameter int unsigned DEPTH = 8
) (
    input  logic       clk,
    input  logic       rst_n,
    input  format_t    format,
    input  logic       clear,
    input  logic       write,
    input  logic [7:0] write_data,
    input  logic       read,
    output logic [7:0] read_data,
    output logic       tx,
    input  logic       rx,
    input  logic       cts_n,
    output logic       rts_n,
    output logic       tx_full,
    output logic       rx_ready,
    output logic       irq,
    output logic       paused,
    output logic       overrun,
    output logic       line_error
);
    localparam int unsigned LW = $clog2(DEPTH) + 1;
    localparam logic [5:0] OLD = 6'd56;

    logic [LW-1:0] tx_level;
    logic [LW-1:0] rx_level;
    logic [7:0]    tx_byte;
    logic [7:0]    rx_byte;
    logic          tx_take;
    logic          got;
    logic          bad_parity;
    logic          bad_stop;
    logic [5:0]    age;
    wire           flow = format.soft_flow && (rx_byte == XON || rx_byte == XOFF);
    wire           keep = got && !flow;

    assign tx_full  = tx_level == LW'(DEPTH);
    assign rx_ready = rx_level != '0;
    assign rts_n    = rx_level >= LW'(DEPTH - 1);
    // enough bytes, or some that nobody has fetched for a while
    assign irq      = rx_level >= LW'(DEPTH / 2) || age == OLD;

    byte_queue #(.DEPTH(DEPTH)) u_tx_queue (
        .clk, .rst_n, .clear, .put(write), .data_in(write_data), .take(tx_take), .data_out(tx_byte), .level(tx_level)
    );
    uart_fifo_tx u_tx (
        .clk, .rst_n, .parity_on(format.parity_on), .parity_odd(format.parity_odd), .two_stops(format.two_stops),
        .pause(cts_n || paused), .pending(tx_level != '0), .data(tx_byte), .take(tx_take), .tx
    );
    uart_fifo_rx u_rx (
        .clk, .rst_n, .parity_on(format.parity_on), .parity_odd(format.parity_odd), .rx, .data(rx_byte), .got,
        .bad_parity, .bad_stop
    );
    byte_queue #(.DEPTH(DEPTH)) u_rx_queue (
        .clk, .rst_n, .clear, .put(keep), .data_in(rx_byte), .take(read), .data_out(read_data), .level(rx_level)
    );

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            paused     <= 1'b0;
            overrun    <= 1'b0;
            line_error <= 1'b0;
            age        <= 6'd0;
        end else begin
            if (got && flow) paused <= rx_byte == XOFF;
            else if (!format.soft_flow) paused <= 1'b0;
            if (clear) {overrun, line_error} <= 2'b00;
            else begin
                if (keep && rx_level == LW'(DEPTH)) overrun <= 1'b1;
                if (bad_parity || bad_stop) line_error <= 1'b1;
            end
            if (read || keep || !rx_ready) age <= 6'd0;
            else if (age != OLD) age <= age + 6'd1;
        end
    end
endmodule
