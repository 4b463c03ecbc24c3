// AXI-Stream width converter, one byte to four: drops null bytes, pads packets, limits their length, flushes late ones.
module stream_packer #(
    parameter int unsigned LONGEST = 20
) (
    input  logic        aclk,
    input  logic        aresetn,
    input  logic        s_tvalid,
    output logic        s_tready,
    input  logic [7:0]  s_tdata,
    input  logic        s_tkeep,
    input  logic        s_tlast,
    input  logic        s_tuser,
    output logic        m_tvalid,
    input  logic        m_tready,
    output logic [31:0] m_tdata,
    output logic [3:0]  m_tkeep,
    output logic        m_tlast,
    output logic        m_tuser,
    output logic        cut,
    output logic        empty_packet,
    output logic        late
);
    typedef enum logic [1:0] {START, COLLECT, EMPTY_END, SKIP} state_t;
    localparam int unsigned LW = $clog2(LONGEST + 1);
    localparam logic [4:0] PATIENCE = 5'd24;

    state_t        state;
    logic [31:0]   word;
    logic [3:0]    keep;
    logic [1:0]    place;
    logic [LW-1:0] length;
    logic [4:0]    idle;
    logic          bad;
    wire           take     = s_tvalid && s_tready;
    wire           longest  = length == LW'(LONGEST - 1);
    wire           complete = take && s_tkeep && (place == 2'd3 || s_tlast || longest);
    wire           overdue  = idle == PATIENCE && keep != 4'd0;

    assign s_tready = state == SKIP || (state != EMPTY_END && (!m_tvalid || m_tready));

    always_ff @(posedge aclk or negedge aresetn) begin
        if (!aresetn) begin
            state        <= START;
            word         <= 32'd0;
            keep         <= 4'd0;
            place        <= 2'd0;
            length       <= '0;
            idle         <= 5'd0;
            bad          <= 1'b0;
            m_tvalid     <= 1'b0;
            m_tdata      <= 32'd0;
            m_tkeep      <= 4'd0;
            m_tlast      <= 1'b0;
            m_tuser      <= 1'b0;
            cut          <= 1'b0;
            empty_packet <= 1'b0;
            late         <= 1'b0;
        end else begin
            if (m_tready) m_tvalid <= 1'b0;
            if (take || state != COLLECT) idle <= 5'd0;
            else if (idle != PATIENCE) idle <= idle + 5'd1;
            case (state)
                START, COLLECT: begin
                    if (take && s_tkeep) begin
                        state  <= COLLECT;
                        place  <= place + 2'd1;
                        length <= length + 1'b1;
                        bad    <= bad || s_tuser;
                        keep   <= keep | (4'd1 << place);
                        word   <= word | ({24'd0, s_tdata} << {place, 3'd0});
                    end
                    if (complete) begin
                        m_tvalid <= 1'b1;
                        m_tdata  <= word | ({24'd0, s_tdata} << {place, 3'd0});
                        m_tkeep  <= keep | (4'd1 << place);
                        m_tlast  <= s_tlast || longest;
                        m_tuser  <= bad || s_tuser;
                        word     <= 32'd0;
                        keep     <= 4'd0;
                        place    <= 2'd0;
                        if (s_tlast || longest) begin
                            length <= '0;
                            bad    <= 1'b0;
                            state  <= s_tlast ? START : SKIP;
                            if (!s_tlast) cut <= 1'b1;
                        end
                    end else if (take && s_tlast) begin
                        // the last byte is a null byte: what was collected ends the packet, or nothing does
                        if (state == START) empty_packet <= 1'b1;
                        else state <= EMPTY_END;
                    end else if (overdue && !take) begin
                        m_tvalid <= 1'b1;
                        m_tdata  <= word;
                        m_tkeep  <= keep;
                        m_tlast  <= 1'b0;
                        m_tuser  <= bad;
                        word     <= 32'd0;
                        keep     <= 4'd0;
                        place    <= 2'd0;
                        late     <= 1'b1;
                    end
                end
                EMPTY_END: begin
                    // no word waits: the null byte was taken when there was room
                    m_tvalid <= 1'b1;
                    m_tdata  <= word;
                    m_tkeep  <= keep;
                    m_tlast  <= 1'b1;
                    m_tuser  <= bad;
                    word     <= 32'd0;
                    keep     <= 4'd0;
                    place    <= 2'd0;
                    length   <= '0;
                    bad      <= 1'b0;
                    state    <= START;
                end
                default: begin
                    if (take && s_tlast) state <= START;
                    if (take && s_tlast && s_tuser && s_tdata == 8'hC1) {cut, empty_packet, late} <= 3'b000;
                end
            endcase
        end
    end
endmodule
