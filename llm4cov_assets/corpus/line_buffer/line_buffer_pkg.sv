// Types of the line buffer.
package line_buffer_pkg;
    localparam int unsigned DEPTH = 4;

    typedef logic [DEPTH-1:0] pixel_t;
    typedef pixel_t [2:0]     column_t;
    typedef column_t [2:0]    window_t;
    typedef enum logic [1:0] {PASS, ERODE, DILATE, GRADIENT} filter_t;
    typedef enum logic [1:0] {WAITING, FIRST, RUNNING, BROKEN} state_t;
endpackage
