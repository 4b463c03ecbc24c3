// Token bucket for two traffic classes, with bursts, debt and a policing mode.
module token_bucket (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       refill,
    input  logic       packet,
    input  logic       high_class,
    input  logic [2:0] size,
    input  logic [5:0] configure,
    output logic       pass,
    output logic       drop,
    output logic       marked,
    output logic [3:0] tokens,
    output logic       debt,
    output logic       policing,
    output logic       boost
);
    logic [1:0] drops;
    logic [1:0] owed;
    logic [1:0] bursts;

    assign debt = owed != 2'd0;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            tokens   <= 4'd6;
            owed     <= 2'd0;
            drops    <= 2'd0;
            pass     <= 1'b0;
            drop     <= 1'b0;
            marked   <= 1'b0;
            policing <= 1'b0;
            boost    <= 1'b0;
            bursts   <= 2'd0;
        end else begin
            pass   <= 1'b0;
            drop   <= 1'b0;
            marked <= 1'b0;
            if (configure == 6'h2D && !packet) policing <= 1'b1;
            else if (configure == 6'h12 && policing && tokens == 4'd12) policing <= 1'b0;
            else if (configure == 6'h35 && tokens == 4'd12 && !policing) boost <= 1'b1;
            if (packet) begin
                if (size == 3'd0) marked <= 1'b1;
                else if (tokens >= {1'b0, size}) begin
                    tokens <= tokens - {1'b0, size};
                    pass   <= 1'b1;
                    drops  <= 2'd0;
                    if (boost && size == 3'd7) begin
                        // the third large packet ends the boost
                        if (bursts == 2'd2) boost <= 1'b0;
                        else bursts <= bursts + 2'd1;
                    end
                end else if (high_class && owed != 2'd3 && !policing) begin
                    owed <= owed + 2'd1;
                    pass <= 1'b1;
                    marked <= 1'b1;
                end else begin
                    drop <= 1'b1;
                    if (drops == 2'd3) policing <= 1'b1;
                    else drops <= drops + 2'd1;
                end
            end else if (refill) begin
                if (debt) owed <= owed - 2'd1;
                else if (tokens < 4'd12) tokens <= (boost && tokens < 4'd11) ? tokens + 4'd2 : tokens + 4'd1;
                else bursts <= 2'd0;
            end
        end
    end
endmodule
