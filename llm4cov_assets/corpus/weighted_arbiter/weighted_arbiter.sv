// Weighted round-robin arbiter: credits per requester, locked transfers with a limit, and a starvation alarm.
module weighted_arbiter #(
    parameter int unsigned N = 4
) (
    input  logic         clk,
    input  logic         rst,
    input  logic [N-1:0] request,
    input  logic [N-1:0] lock,
    output logic [N-1:0] grant,
    input  logic         set_weight,
    input  logic [1:0]   weight_of,
    input  logic [2:0]   weight,
    input  logic [7:0]   key,
    output logic         reload,
    output logic         lock_broken,
    output logic         starving,
    output logic         bad_weight
);
    localparam int unsigned IW = $clog2(N);
    localparam logic [2:0]  LOCK_LIMIT = 3'd6;
    localparam logic [3:0]  PATIENCE   = 4'd12;

    logic [2:0]    weights [N];
    logic [2:0]    credit  [N];
    logic [3:0]    waiting [N];
    logic [IW-1:0] turn;
    logic [2:0]    held;
    logic [N-1:0]  able;
    logic [IW-1:0] chosen;
    logic          any;
    logic          keep;

    always_comb begin
        for (int i = 0; i < int'(N); i++) able[i] = request[i] && credit[i] != 3'd0;
        keep   = |(grant & request & lock);
        any    = 1'b0;
        chosen = turn;
        for (int i = 0; i < int'(N); i++) begin
            if (!any && able[turn + IW'(i)]) begin
                any    = 1'b1;
                chosen = turn + IW'(i);
            end
        end
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            for (int i = 0; i < int'(N); i++) begin
                weights[i] <= 3'd2;
                credit[i]  <= 3'd2;
                waiting[i] <= 4'd0;
            end
            turn        <= '0;
            held        <= 3'd0;
            grant       <= '0;
            reload      <= 1'b0;
            lock_broken <= 1'b0;
            starving    <= 1'b0;
            bad_weight  <= 1'b0;
        end else begin
            reload <= 1'b0;
            if (keep && held != LOCK_LIMIT) held <= held + 3'd1;
            else begin
                held  <= 3'd0;
                grant <= '0;
                if (keep) lock_broken <= 1'b1;
                if (any) begin
                    grant[chosen]  <= 1'b1;
                    credit[chosen] <= credit[chosen] - 3'd1;
                    // a requester keeps its turn until its credit is spent
                    turn <= (credit[chosen] == 3'd1) ? chosen + 1'b1 : chosen;
                end else if (|request) begin
                    reload <= 1'b1;
                    for (int i = 0; i < int'(N); i++) credit[i] <= weights[i];
                end
            end
            for (int i = 0; i < int'(N); i++) begin
                if (!request[i] || grant[i]) waiting[i] <= 4'd0;
                else if (waiting[i] == PATIENCE) starving <= 1'b1;
                else waiting[i] <= waiting[i] + 4'd1;
            end
            if (set_weight) begin
                if (key == 8'hC5 && weight != 3'd0) weights[weight_of] <= weight;
                else if (key == 8'hC5) bad_weight <= 1'b1;
                else if (key == 8'h0F && !(|request)) begin
                    lock_broken <= 1'b0;
                    starving    <= 1'b0;
                    bad_weight  <= 1'b0;
                end
            end
        end
    end
endmodule
