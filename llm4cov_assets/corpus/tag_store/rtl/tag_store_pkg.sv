// Operations and sizes of the tag store.
package tag_store_pkg;
    localparam int unsigned WAYS = 4;
    localparam int unsigned TAG  = 6;

    typedef enum logic [2:0] {
        NOTHING = 3'd0, LOOKUP = 3'd1, FILL = 3'd2, INVALIDATE = 3'd3, LOCK = 3'd4, UNLOCK_ALL = 3'd5, FLUSH = 3'd6
    } op_t;

    typedef struct packed {
        logic           valid;
        logic           locked;
        logic [TAG-1:0] tag;
    } entry_t;
endpackage
