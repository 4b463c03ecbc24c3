// Timer with prescaler, one-shot and periodic mode, compare output, and a lock of its settings.
module timer (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       write,
    input  logic [2:0] address,
    input  logic [7:0] wdata,
    input  logic       capture,
    output logic [7:0] captured,
    output logic       expired,
    output logic       compare,
    output logic       running,
    output logic       missed
);
    localparam logic [2:0] CONTROL = 3'd0, PRESCALE = 3'd1, RELOAD = 3'd2, COMPARE = 3'd3, CLEAR = 3'd4, LOCK = 3'd5;

    logic       periodic;
    logic       locked;
    logic [3:0] prescale;
    logic [3:0] divider;
    logic [7:0] reload;
    logic [7:0] match;
    logic [7:0] count;

    assign compare = running && count < match;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            periodic <= 1'b0;
            running  <= 1'b0;
            locked   <= 1'b0;
            prescale <= 4'd0;
            divider  <= 4'd0;
            reload   <= 8'd30;
            match    <= 8'd10;
            count    <= 8'd30;
            captured <= 8'd0;
            expired  <= 1'b0;
            missed   <= 1'b0;
        end else begin
            if (running) begin
                if (divider >= prescale) begin
                    divider <= 4'd0;
                    if (count == 8'd0) begin
                        if (expired) missed <= 1'b1;
                        expired <= 1'b1;
                        count   <= reload;
                        if (!periodic) running <= 1'b0;
                    end else count <= count - 8'd1;
                end else divider <= divider + 4'd1;
            end
            if (capture) captured <= count;
            if (write) begin
                if (address == LOCK) begin
                    if (wdata == 8'hE1) locked <= 1'b0;
                    else if (wdata == 8'h1E) locked <= 1'b1;
                end else if (address == CLEAR) begin
                    if (wdata[0]) expired <= 1'b0;
                    if (wdata[1]) missed <= 1'b0;
                end else if (!locked) begin
                    case (address)
                        CONTROL: begin
                            running  <= wdata[0];
                            periodic <= wdata[1];
                            if (wdata[2]) count <= reload;
                        end
                        PRESCALE: prescale <= wdata[3:0];
                        RELOAD:   if (wdata >= 8'd2) reload <= wdata;
                        COMPARE:  match <= wdata;
                        default:  ;
                    endcase
                end
            end
        end
    end
endmodule
