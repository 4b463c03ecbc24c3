// AXI4-Lite target with four registers, byte strobes, protection and a sticky error register.
module axi_lite_regs (
    input  logic        aclk,
    input  logic        aresetn,
    input  logic        awvalid,
    output logic        awready,
    input  logic [3:0]  awaddr,
    input  logic [2:0]  awprot,
    input  logic        wvalid,
    output logic        wready,
    input  logic [15:0] wdata,
    input  logic [1:0]  wstrb,
    output logic        bvalid,
    input  logic        bready,
    output logic [1:0]  bresp,
    input  logic        arvalid,
    output logic        arready,
    input  logic [3:0]  araddr,
    output logic        rvalid,
    input  logic        rready,
    output logic [15:0] rdata,
    output logic [1:0]  rresp
);
    localparam logic [1:0] OKAY = 2'b00, SLVERR = 2'b10, DECERR = 2'b11;

    logic [15:0] data;
    logic [7:0]  limit;
    logic        guarded;
    logic [3:0]  errors;
    logic        have_address;
    logic        have_data;
    logic [3:0]  address;
    logic        privileged;
    logic [15:0] value;
    logic [1:0]  strobe;

    assign awready = !have_address && !bvalid;
    assign wready  = !have_data && !bvalid;
    assign arready = !rvalid;

    always_ff @(posedge aclk or negedge aresetn) begin
        if (!aresetn) begin
            data         <= 16'd0;
            limit        <= 8'd0;
            guarded      <= 1'b1;
            errors       <= 4'd0;
            have_address <= 1'b0;
            have_data    <= 1'b0;
            address      <= 4'd0;
            privileged   <= 1'b0;
            value        <= 16'd0;
            strobe       <= 2'd0;
            bvalid       <= 1'b0;
            bresp        <= OKAY;
            rvalid       <= 1'b0;
            rdata        <= 16'd0;
            rresp        <= OKAY;
        end else begin
            if (awvalid && awready) begin
                have_address <= 1'b1;
                address      <= awaddr;
                privileged   <= awprot == 3'b001;
            end
            if (wvalid && wready) begin
                have_data <= 1'b1;
                value     <= wdata;
                strobe    <= wstrb;
            end
            if (have_address && have_data) begin
                have_address <= 1'b0;
                have_data    <= 1'b0;
                bvalid       <= 1'b1;
                bresp        <= OKAY;
                case (address)
                    4'h0: begin
                        if (strobe[0]) data[7:0] <= value[7:0];
                        if (strobe[1]) data[15:8] <= value[15:8];
                    end
                    4'h4: begin
                        if (guarded) begin
                            bresp <= SLVERR;
                            if (errors != 4'd15) errors <= errors + 4'd1;
                        end else if (strobe[0]) limit <= value[7:0];
                    end
                    4'h8: begin
                        if (privileged && value == 16'h900D) guarded <= 1'b0;
                        else guarded <= 1'b1;
                    end
                    4'hC: if (strobe == 2'b11 && value == 16'hFFFF) errors <= 4'd0;
                    default: bresp <= DECERR;
                endcase
            end else if (bvalid && bready) bvalid <= 1'b0;

            if (arvalid && arready) begin
                rvalid <= 1'b1;
                rresp  <= OKAY;
                case (araddr)
                    4'h0: rdata <= (data > {8'd0, limit} && limit != 8'd0) ? {8'd0, limit} : data;
                    4'h4: rdata <= {8'd0, limit};
                    4'h8: rdata <= {15'd0, guarded};
                    4'hC: rdata <= {12'd0, errors};
                    default: begin
                        rdata <= 16'd0;
                        rresp <= DECERR;
                    end
                endcase
            end else if (rvalid && rready) rvalid <= 1'b0;
        end
    end
endmodule
