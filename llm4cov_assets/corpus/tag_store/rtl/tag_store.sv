// Tags of a four-way cache with least-recently-used replacement, locked ways, and a flush that walks the sets.
module tag_store
    import tag_store_pkg::*;
#(
    parameter int unsigned SETS = 4
) (
    input  logic                    clk,
    input  logic                    rst_n,
    input  logic [2:0]              op,
    input  logic [$clog2(SETS)-1:0] set,
    input  logic [TAG-1:0]          tag,
    output logic                    busy,
    output logic                    hit,
    output logic                    miss,
    output logic [1:0]              way,
    output logic                    evicted,
    output logic [TAG-1:0]          victim,
    output logic                    all_locked,
    output logic                    duplicate
);
    localparam int unsigned SW = $clog2(SETS);

    entry_t          entries [SETS][WAYS];
    logic [WAYS-1:0] match;
    logic [WAYS-1:0] free;
    logic [WAYS-1:0] usable;
    logic [1:0]      found;
    logic [1:0]      place;
    logic [1:0]      oldest [SETS];
    logic [SETS-1:0] use_set;
    logic [SW-1:0]   walk;
    logic            flushing;
    wire             present = |match;
    wire             full    = free == '0;
    wire             filling = op == FILL && !flushing && !present && |usable;
    wire             looking = op == LOOKUP && !flushing && present;

    assign busy = flushing;

    always_comb begin
        found = 2'd0;
        place = oldest[set];
        for (int i = 0; i < int'(WAYS); i++) begin
            match[i]  = entries[set][i].valid && entries[set][i].tag == tag;
            free[i]   = !entries[set][i].valid;
            usable[i] = !(entries[set][i].valid && entries[set][i].locked);
            if (match[i]) found = 2'(i);
        end
        for (int i = int'(WAYS) - 1; i >= 0; i--) if (free[i]) place = 2'(i);
        use_set      = '0;
        use_set[set] = filling || looking;
    end

    for (genvar s = 0; s < SETS; s++) begin : g_set
        lru_order u_order (
            .clk, .rst_n, .use_way(use_set[s]), .way(filling ? place : found), .usable, .oldest(oldest[s])
        );
    end

    always_ff @(posedge clk) begin
        if (!rst_n) begin
            for (int s = 0; s < int'(SETS); s++) for (int i = 0; i < int'(WAYS); i++) entries[s][i] <= '0;
            hit        <= 1'b0;
            miss       <= 1'b0;
            way        <= 2'd0;
            evicted    <= 1'b0;
            victim     <= '0;
            all_locked <= 1'b0;
            duplicate  <= 1'b0;
            walk       <= '0;
            flushing   <= 1'b0;
        end else begin
            hit     <= 1'b0;
            miss    <= 1'b0;
            evicted <= 1'b0;
            if (flushing) begin
                for (int i = 0; i < int'(WAYS); i++) begin
                    if (!entries[walk][i].locked) entries[walk][i].valid <= 1'b0;
                end
                walk <= walk + 1'b1;
                if (walk == SW'(SETS - 1)) flushing <= 1'b0;
            end else begin
                case (op)
                    LOOKUP: begin
                        hit  <= present;
                        miss <= !present;
                        way  <= found;
                    end
                    FILL: begin
                        if (present) duplicate <= 1'b1;
                        else if (filling) begin
                            entries[set][place] <= '{valid: 1'b1, locked: 1'b0, tag: tag};
                            way                 <= place;
                            if (full) begin
                                evicted <= 1'b1;
                                victim  <= entries[set][place].tag;
                            end
                        end else all_locked <= 1'b1;
                    end
                    INVALIDATE: begin
                        if (present) entries[set][found] <= '0;
                        else miss <= 1'b1;
                    end
                    LOCK: begin
                        if (present) entries[set][found].locked <= 1'b1;
                        else miss <= 1'b1;
                    end
                    UNLOCK_ALL: begin
                        for (int i = 0; i < int'(WAYS); i++) entries[set][i].locked <= 1'b0;
                        all_locked <= 1'b0;
                    end
                    FLUSH: begin
                        if (tag == 6'h2D) flushing <= 1'b1;
                        else if (tag == 6'h12) duplicate <= 1'b0;
                    end
                    default: ;
                endcase
            end
        end
    end
endmodule
