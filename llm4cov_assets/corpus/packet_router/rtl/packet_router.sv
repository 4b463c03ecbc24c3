// Routes flits to PORTS queues; control flits open and close ports.
module packet_router
    import router_pkg::*;
#(
    parameter int unsigned PORTS = 2,
    parameter int unsigned DEPTH = 4
) (
    input  logic               clk,
    input  logic               rst,
    input  logic               valid,
    input  logic [7:0]         flit,
    input  logic [PORTS-1:0]   take,
    output logic [PORTS*4-1:0] out_data,
    output logic [PORTS-1:0]   out_valid,
    output logic [3:0]         dropped,
    output logic               bad_destination,
    output logic               congested
);
    flit_t            f;
    logic [PORTS-1:0] open;
    logic [PORTS-1:0] put;
    logic [PORTS-1:0] full;
    logic             known;

    assign f     = flit_t'(flit);
    assign known = 32'(f.destination) < PORTS;

    always_comb begin
        put = '0;
        if (valid) begin
            case (f.kind)
                DATA:      if (known && open[f.destination[0]]) put[f.destination[0]] = 1'b1;
                BROADCAST: put = open & ~full;
                default:   ;
            endcase
        end
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            open            <= '0;
            dropped         <= 4'd0;
            bad_destination <= 1'b0;
            congested       <= 1'b0;
        end else begin
            congested <= &full;
            if (valid) begin
                case (f.kind)
                    CONTROL: begin
                        if (!known) bad_destination <= 1'b1;
                        else if (f.payload == OPEN_PORT) open[f.destination[0]] <= 1'b1;
                        else if (f.payload == CLOSE_PORT) open[f.destination[0]] <= 1'b0;
                        else if (f.payload == RESET_DROP) dropped <= 4'd0;
                    end
                    DATA: begin
                        if (!known) bad_destination <= 1'b1;
                        else if (!open[f.destination[0]] || full[f.destination[0]]) begin
                            if (dropped != 4'd15) dropped <= dropped + 4'd1;
                        end
                    end
                    DISCARD: begin
                        if (f.payload == 4'h0 && f.destination == 2'd3) bad_destination <= 1'b0;
                    end
                    default: ;
                endcase
            end
        end
    end

    for (genvar i = 0; i < PORTS; i++) begin : g_port
        router_port #(.DEPTH(DEPTH)) u_port (
            .clk, .rst, .put(put[i]), .data_in(f.payload), .take(take[i]),
            .data_out(out_data[4*i+:4]), .valid(out_valid[i]), .full(full[i])
        );
    end
endmodule
