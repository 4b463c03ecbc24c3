// Register file behind an APB port: identification, control, threshold, scratch, status; protected and error-checked.
module apb_regs (
    input  logic        pclk,
    input  logic        presetn,
    input  logic        psel,
    input  logic        penable,
    input  logic        pwrite,
    input  logic [7:0]  paddr,
    input  logic [15:0] pwdata,
    output logic [15:0] prdata,
    output logic        pready,
    output logic        pslverr,
    output logic        irq
);
    localparam logic [7:0] ID = 8'h00, CTRL = 8'h04, THRESHOLD = 8'h08, SCRATCH = 8'h0C, STATUS = 8'h10, KEY = 8'h14;
    localparam logic [15:0] UNLOCK = 16'hB16B;

    logic [3:0]  ctrl;
    logic [7:0]  threshold;
    logic [15:0] scratch;
    logic [7:0]  count;
    logic        locked;
    logic        over;
    logic        waited;

    wire access = psel && penable;
    // a write to the threshold takes one wait state
    assign pready = !(access && pwrite && paddr == THRESHOLD && !waited);

    always_ff @(posedge pclk or negedge presetn) begin
        if (!presetn) begin
            ctrl      <= 4'd0;
            threshold <= 8'd20;
            scratch   <= 16'd0;
            count     <= 8'd0;
            locked    <= 1'b1;
            over      <= 1'b0;
            waited    <= 1'b0;
            pslverr   <= 1'b0;
        end else begin
            pslverr <= 1'b0;
            waited  <= access && !pready;
            if (ctrl[0]) begin
                if (count == threshold) begin
                    over  <= 1'b1;
                    count <= 8'd0;
                end else count <= count + 8'd1;
            end
            if (access && pready && pwrite) begin
                case (paddr)
                    KEY: locked <= pwdata != UNLOCK;
                    CTRL: begin
                        if (locked) pslverr <= 1'b1;
                        else begin
                            ctrl <= pwdata[3:0];
                            if (pwdata[3]) count <= 8'd0;
                        end
                    end
                    THRESHOLD: begin
                        if (locked || pwdata < 16'd4 || pwdata > 16'd200) pslverr <= 1'b1;
                        else threshold <= pwdata[7:0];
                    end
                    SCRATCH: scratch <= pwdata;
                    STATUS: begin
                        if (pwdata[0]) over <= 1'b0;
                    end
                    default: pslverr <= 1'b1;
                endcase
            end else if (access && pready && paddr > KEY) begin
                pslverr <= 1'b1;
            end
        end
    end

    always_comb begin
        prdata = 16'd0;
        if (access && !pwrite) begin
            case (paddr)
                ID:        prdata = 16'h1DE5;
                CTRL:      prdata = {12'd0, ctrl};
                THRESHOLD: prdata = {8'd0, threshold};
                SCRATCH:   prdata = scratch;
                STATUS:    prdata = {6'd0, locked, over, count};
                default:   prdata = 16'hDEAD;
            endcase
        end
    end

    assign irq = over && ctrl[1];
endmodule
