// Direct-mapped cache controller for four lines: hits, misses, write-back, flush, and a bus that may fail.
module cache_controller (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       request,
    input  logic       write,
    input  logic [5:0] address,
    input  logic       flush,
    input  logic       bus_ready,
    input  logic       bus_error,
    output logic       ready,
    output logic       hit,
    output logic       bus_read,
    output logic       bus_write,
    output logic [3:0] bus_tag,
    output logic       failed,
    output logic       all_dirty
);
    typedef enum logic [2:0] {IDLE, EVICT, FILL, FLUSH, DEAD} state_t;
    state_t     state;
    logic [3:0] tags [4];
    logic [3:0] valid;
    logic [3:0] dirty;
    logic [1:0] line;
    logic [3:0] wanted;
    logic       writing;
    logic [3:0] patience;

    wire [1:0] index = address[1:0];
    wire [3:0] tag   = address[5:2];
    wire       match = valid[index] && tags[index] == tag;

    assign ready     = state == IDLE;
    assign hit       = ready && request && match;
    assign bus_read  = state == FILL;
    assign bus_write = state == EVICT || (state == FLUSH && dirty[line]);
    assign bus_tag   = bus_read ? wanted : tags[line];
    assign failed    = state == DEAD;
    assign all_dirty = dirty == 4'hF;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state    <= IDLE;
            valid    <= 4'd0;
            dirty    <= 4'd0;
            line     <= 2'd0;
            wanted   <= 4'd0;
            writing  <= 1'b0;
            patience <= 4'd0;
            for (int i = 0; i < 4; i++) tags[i] <= 4'd0;
        end else begin
            case (state)
                IDLE: begin
                    patience <= 4'd0;
                    if (flush) begin
                        line  <= 2'd0;
                        state <= FLUSH;
                    end else if (request) begin
                        line    <= index;
                        wanted  <= tag;
                        writing <= write;
                        if (match) begin
                            if (write) dirty[index] <= 1'b1;
                        end else if (valid[index] && dirty[index]) state <= EVICT;
                        else state <= FILL;
                    end
                end
                EVICT: begin
                    if (bus_ready) begin
                        dirty[line] <= 1'b0;
                        patience    <= 4'd0;
                        state       <= bus_error ? DEAD : FILL;
                    end else if (patience == 4'd9) state <= DEAD;
                    else patience <= patience + 4'd1;
                end
                FILL: begin
                    if (bus_ready) begin
                        if (bus_error) begin
                            valid[line] <= 1'b0;
                            state       <= IDLE;
                        end else begin
                            valid[line] <= 1'b1;
                            tags[line]  <= wanted;
                            dirty[line] <= writing;
                            state       <= IDLE;
                        end
                    end else if (patience == 4'd9) state <= DEAD;
                    else patience <= patience + 4'd1;
                end
                FLUSH: begin
                    if (!dirty[line] || bus_ready) begin
                        dirty[line] <= 1'b0;
                        valid[line] <= 1'b0;
                        line        <= line + 2'd1;
                        if (line == 2'd3) state <= IDLE;
                    end
                end
                default: if (flush && address == 6'h2A) state <= IDLE;
            endcase
        end
    end
endmodule
