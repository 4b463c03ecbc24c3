// Types and constants of the UART with queues.
package uart_fifo_pkg;
    typedef enum logic [2:0] {QUIET, START, BITS, PARITY, STOP} line_state_t;

    typedef struct packed {
        logic parity_on;
        logic parity_odd;
        logic two_stops;
        logic soft_flow;
    } format_t;

    localparam logic [7:0] XON  = 8'h11;
    localparam logic [7:0] XOFF = 8'h13;
endpackage
