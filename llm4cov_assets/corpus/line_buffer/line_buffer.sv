// Image line buffer: windows of three by three pixels with replicated edges, filtered; broken frames are reported.
module line_buffer
    import line_buffer_pkg::*;
#(
    parameter int unsigned COLUMNS = 6,
    parameter int unsigned ROWS    = 5
) (
    input  logic    clk,
    input  logic    rst_n,
    input  logic    in_valid,
    output logic    in_ready,
    input  pixel_t  in_pixel,
    input  logic    in_first,
    input  logic    in_last,
    input  filter_t filter,
    output logic    out_valid,
    input  logic    out_ready,
    output pixel_t  out_pixel,
    output logic    out_edge,
    output logic    frame_done,
    output logic    short_line,
    output logic    long_line,
    output logic    bright
);
    localparam int unsigned CW = $clog2(COLUMNS);
    localparam int unsigned RW = $clog2(ROWS);

    state_t        state;
    pixel_t        above [COLUMNS];
    pixel_t        middle [COLUMNS];
    column_t       left;
    column_t       centre;
    logic [CW-1:0] column;
    logic [RW-1:0] row;
    logic [2:0]    bright_run;
    column_t       arriving;
    window_t       window;
    pixel_t        filtered;
    wire           take      = in_valid && in_ready;
    wire           begins    = take && in_first;
    wire           row_end   = column == CW'(COLUMNS - 1);
    wire           frame_end = row_end && row == RW'(ROWS - 1);
    wire           complete  = state == RUNNING && column != '0;

    assign in_ready = !out_valid || out_ready;

    // the row above the first one is the first one again
    assign arriving = {in_pixel, middle[column], (row == RW'(1)) ? middle[column] : above[column]};
    assign window   = {arriving, centre, (column == CW'(1)) ? centre : left};

    window_filter u_filter (.window, .filter, .pixel(filtered));

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state      <= WAITING;
            left       <= '0;
            centre     <= '0;
            column     <= '0;
            row        <= '0;
            bright_run <= 3'd0;
            out_valid  <= 1'b0;
            out_pixel  <= '0;
            out_edge   <= 1'b0;
            frame_done <= 1'b0;
            short_line <= 1'b0;
            long_line  <= 1'b0;
            bright     <= 1'b0;
            for (int i = 0; i < int'(COLUMNS); i++) begin
                above[i]  <= '0;
                middle[i] <= '0;
            end
        end else begin
            frame_done <= 1'b0;
            if (out_ready) out_valid <= 1'b0;
            if (begins) begin
                state      <= in_last ? BROKEN : FIRST;
                short_line <= in_last;
                long_line  <= 1'b0;
                column     <= CW'(1);
                row        <= '0;
                middle[0]  <= in_pixel;
            end else if (take && (state == FIRST || state == RUNNING)) begin
                above[column]  <= middle[column];
                middle[column] <= in_pixel;
                left           <= centre;
                centre         <= arriving;
                if (in_last != row_end) begin
                    state <= BROKEN;
                    if (in_last) short_line <= 1'b1;
                    else long_line <= 1'b1;
                end else if (row_end) begin
                    column <= '0;
                    row    <= row + 1'b1;
                    state  <= RUNNING;
                    if (frame_end) begin
                        frame_done <= 1'b1;
                        state      <= WAITING;
                    end
                end else column <= column + 1'b1;
                if (complete) begin
                    out_valid <= 1'b1;
                    out_pixel <= filtered;
                    out_edge  <= row == RW'(1) || column == CW'(1);
                    if (filtered < 4'd12) bright_run <= 3'd0;
                    else if (bright_run == 3'd5) bright <= 1'b1;
                    else bright_run <= bright_run + 3'd1;
                end
            end
        end
    end
endmodule
