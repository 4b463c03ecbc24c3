// What is made of a window of three by three pixels: its middle, least, greatest, or how steep it is.
module window_filter
    import line_buffer_pkg::*;
(
    input  window_t window,
    input  filter_t filter,
    output pixel_t  pixel
);
    pixel_t        least;
    pixel_t        greatest;
    logic [DEPTH:0] steep;

    function automatic pixel_t distance(input pixel_t a, input pixel_t b);
        return (a > b) ? a - b : b - a;
    endfunction

    always_comb begin
        least    = '1;
        greatest = '0;
        for (int x = 0; x < 3; x++) begin
            for (int y = 0; y < 3; y++) begin
                if (window[x][y] < least) least = window[x][y];
                if (window[x][y] > greatest) greatest = window[x][y];
            end
        end
        steep = {1'b0, distance(window[0][1], window[2][1])} + {1'b0, distance(window[1][0], window[1][2])};
        case (filter)
            PASS:    pixel = window[1][1];
            ERODE:   pixel = least;
            DILATE:  pixel = greatest;
            default: pixel = steep[DEPTH] ? '1 : steep[DEPTH-1:0];
        endcase
    end
endmodule
