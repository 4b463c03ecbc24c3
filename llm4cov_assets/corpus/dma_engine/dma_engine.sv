// DMA engine: checked descriptors, bursts that stop at boundaries, retries after read errors, stop with a key.
module dma_engine #(
    parameter int unsigned BURST = 4
) (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       desc_valid,
    output logic       desc_ready,
    input  logic [7:0] source,
    input  logic [7:0] target,
    input  logic [3:0] length,
    input  logic       chained,
    output logic       rd_request,
    output logic [7:0] rd_address,
    input  logic       rd_valid,
    input  logic       rd_error,
    input  logic [7:0] rd_data,
    output logic       wr_valid,
    input  logic       wr_ready,
    input  logic       wr_error,
    output logic [7:0] wr_address,
    output logic [7:0] wr_data,
    input  logic       stop,
    input  logic [7:0] stop_key,
    output logic       finished,
    output logic       bad_descriptor,
    output logic       failed,
    output logic [2:0] reason
);
    typedef enum logic [2:0] {IDLE, CHECK, READ, WRITE, NEXT, FAILED} state_t;
    typedef enum logic [2:0] {
        NONE = 3'd0, NO_LENGTH = 3'd1, OVERLAP = 3'd2, READ_ERROR = 3'd3, WRITE_ERROR = 3'd4, STALLED = 3'd5,
        ABORTED = 3'd6
    } reason_t;
    localparam int unsigned BW = $clog2(BURST);

    state_t        state;
    logic [7:0]    from;
    logic [7:0]    to;
    logic [3:0]    left;
    logic          more;
    logic [7:0]    buffer [BURST];
    logic [BW-1:0] filled;
    logic [BW-1:0] sent;
    logic [1:0]    retries;
    logic [3:0]    stalled;
    wire           at_boundary = from[1:0] == 2'b11;
    wire           burst_full  = filled == BW'(BURST - 1);
    wire           last_word   = 4'(filled) + 4'd1 == left;
    wire [7:0]     gap         = to - from;

    assign desc_ready = state == IDLE || (state == NEXT && more && left == 4'd0);
    assign rd_request = state == READ;
    assign rd_address = from;
    assign wr_valid   = state == WRITE;
    assign wr_address = to;
    assign wr_data    = buffer[sent];

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state          <= IDLE;
            from           <= 8'd0;
            to             <= 8'd0;
            left           <= 4'd0;
            more           <= 1'b0;
            filled         <= '0;
            sent           <= '0;
            retries        <= 2'd0;
            stalled        <= 4'd0;
            finished       <= 1'b0;
            bad_descriptor <= 1'b0;
            failed         <= 1'b0;
            reason         <= NONE;
        end else begin
            finished <= 1'b0;
            if (desc_valid && desc_ready) begin
                from           <= source;
                to             <= target;
                left           <= length;
                more           <= chained;
                filled         <= '0;
                sent           <= '0;
                retries        <= 2'd0;
                stalled        <= 4'd0;
                bad_descriptor <= 1'b0;
                state          <= CHECK;
            end else if (stop && stop_key == 8'hDA && state != IDLE && state != FAILED) begin
                state  <= FAILED;
                failed <= 1'b1;
                reason <= ABORTED;
            end else begin
                case (state)
                    CHECK: begin
                        if (left == 4'd0 || gap < 8'(left)) begin
                            bad_descriptor <= 1'b1;
                            reason         <= (left == 4'd0) ? NO_LENGTH : OVERLAP;
                            state          <= IDLE;
                        end else state <= READ;
                    end
                    READ: begin
                        if (rd_valid && rd_error) begin
                            retries <= retries + 2'd1;
                            if (retries == 2'd2) begin
                                failed <= 1'b1;
                                reason <= READ_ERROR;
                                state  <= FAILED;
                            end
                        end else if (rd_valid) begin
                            buffer[filled] <= rd_data;
                            from           <= from + 8'd1;
                            filled         <= filled + 1'b1;
                            stalled        <= 4'd0;
                            if (burst_full || last_word || at_boundary) state <= WRITE;
                        end else if (stalled == 4'd15) begin
                            failed <= 1'b1;
                            reason <= STALLED;
                            state  <= FAILED;
                        end else stalled <= stalled + 4'd1;
                    end
                    WRITE: begin
                        if (wr_ready) begin
                            to   <= to + 8'd1;
                            left <= left - 4'd1;
                            sent <= sent + 1'b1;
                            if (wr_error) begin
                                failed <= 1'b1;
                                reason <= WRITE_ERROR;
                                state  <= FAILED;
                            end else if (sent + 1'b1 == filled) state <= NEXT;
                        end
                    end
                    NEXT: begin
                        filled  <= '0;
                        sent    <= '0;
                        retries <= 2'd0;
                        if (left != 4'd0) state <= READ;
                        else if (!more) begin
                            finished <= 1'b1;
                            state    <= IDLE;
                        end
                    end
                    FAILED: begin
                        if (!stop && stop_key == 8'h00) begin
                            failed <= 1'b0;
                            state  <= IDLE;
                        end
                    end
                    default: ;
                endcase
            end
        end
    end
endmodule
