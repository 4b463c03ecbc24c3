// UART: transmitter and receiver with a loop-back switch and a one-byte echo mode.
module uart (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       send,
    input  logic [7:0] tx_data,
    input  logic       parity_on,
    input  logic       loopback,
    input  logic       echo,
    input  logic       rx,
    output logic       tx,
    output logic       ready,
    output logic [7:0] rx_data,
    output logic       rx_valid,
    output logic       frame_error,
    output logic       parity_error,
    output logic       break_seen
);
    logic       line;
    logic       go;
    logic [7:0] byte_out;

    assign line = loopback ? tx : rx;

    always_comb begin
        go       = send;
        byte_out = tx_data;
        if (echo && rx_valid && ready) begin
            go       = 1'b1;
            byte_out = (rx_data == 8'h0D) ? 8'h0A : rx_data;
        end
    end

    uart_tx u_tx (.clk, .rst_n, .send(go), .data(byte_out), .parity_on, .tx, .ready);
    uart_rx u_rx (
        .clk, .rst_n, .rx(line), .parity_on, .data(rx_data), .valid(rx_valid), .frame_error, .parity_error, .break_seen
    );
endmodule
