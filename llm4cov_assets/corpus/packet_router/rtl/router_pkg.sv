// Types of the packet router.
package router_pkg;
    typedef enum logic [1:0] {DATA = 2'd0, CONTROL = 2'd1, BROADCAST = 2'd2, DISCARD = 2'd3} kind_t;

    typedef struct packed {
        kind_t      kind;
        logic [1:0] destination;
        logic [3:0] payload;
    } flit_t;

    localparam logic [3:0] OPEN_PORT  = 4'h9;
    localparam logic [3:0] CLOSE_PORT = 4'h6;
    localparam logic [3:0] RESET_DROP = 4'hF;
endpackage
