// Round-robin arbiter for four requesters with bus lock, bus parking, a starvation guard and a ban.
module rr_arbiter (
    input  logic       clk,
    input  logic       rst_n,
    input  logic [3:0] req,
    input  logic       lock,
    input  logic       park,
    output logic [3:0] grant,
    output logic [1:0] owner,
    output logic       busy,
    output logic       starved,
    output logic       banned,
    output logic [1:0] culprit
);
    logic [3:0] hold;
    logic [4:0] wait3;
    logic [3:0] rotated;
    logic [1:0] offset;
    logic       any;
    logic [1:0] overstays;
    logic [3:0] quiet;
    logic [3:0] wants;

    // who is banned is not heard
    assign wants = banned ? req & ~(4'b0001 << culprit) : req;

    always_comb begin
        case (owner)
            2'd0:    rotated = {wants[0], wants[3:1]};
            2'd1:    rotated = {wants[1:0], wants[3:2]};
            2'd2:    rotated = {wants[2:0], wants[3]};
            default: rotated = wants;
        endcase
        any = 1'b1;
        if (rotated[0]) offset = 2'd1;
        else if (rotated[1]) offset = 2'd2;
        else if (rotated[2]) offset = 2'd3;
        else if (rotated[3]) offset = 2'd0;
        else begin
            offset = 2'd0;
            any    = 1'b0;
        end
    end

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            grant     <= 4'd0;
            owner     <= 2'd0;
            busy      <= 1'b0;
            hold      <= 4'd0;
            wait3     <= 5'd0;
            starved   <= 1'b0;
            banned    <= 1'b0;
            culprit   <= 2'd0;
            overstays <= 2'd0;
            quiet     <= 4'd0;
        end else begin
            if (req != 4'd0) quiet <= 4'd0;
            else if (quiet == 4'd9) begin
                banned    <= 1'b0;
                overstays <= 2'd0;
            end else quiet <= quiet + 4'd1;

            if (!wants[3] || grant[3]) wait3 <= 5'd0;
            else if (wait3 == 5'd18) starved <= 1'b1;
            else wait3 <= wait3 + 5'd1;

            if (busy && lock && req[owner]) begin
                // a locked owner keeps the bus, but not for ever
                if (hold == 4'd11) begin
                    busy  <= 1'b0;
                    grant <= 4'd0;
                    hold  <= 4'd0;
                    if (owner != culprit) begin
                        culprit   <= owner;
                        overstays <= 2'd1;
                        banned    <= 1'b0;
                    end else if (overstays == 2'd2) banned <= 1'b1;
                    else overstays <= overstays + 2'd1;
                end else hold <= hold + 4'd1;
            end else if (starved) begin
                owner   <= 2'd3;
                grant   <= 4'b1000;
                busy    <= 1'b1;
                starved <= 1'b0;
                hold    <= 4'd0;
            end else if (any) begin
                owner <= owner + offset;
                grant <= 4'b0001 << (owner + offset);
                busy  <= 1'b1;
                hold  <= 4'd0;
            end else if (!park) begin
                grant <= 4'd0;
                busy  <= 1'b0;
            end
        end
    end
endmodule
