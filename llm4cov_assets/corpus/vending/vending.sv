// Vending machine: takes coins, sells three products, gives change, can be put out of service.
module vending (
    input  logic       clk,
    input  logic       reset,
    input  logic       coin_valid,
    input  logic [1:0] coin,
    input  logic [1:0] choice,
    input  logic       cancel,
    input  logic [7:0] service_code,
    output logic       dispense,
    output logic [1:0] product,
    output logic       change,
    output logic       sold_out,
    output logic       closed
);
    typedef enum logic [2:0] {IDLE, COLLECT, SELL, CHANGE, REFUND, SERVICE} state_t;
    localparam logic [7:0] OPEN_CODE = 8'h9D, CLOSE_CODE = 8'h42, REFILL_CODE = 8'h77;

    state_t     state;
    logic [4:0] credit;
    logic [4:0] price;
    logic [2:0] stock;
    logic [2:0] value;

    always_comb begin
        case (choice)
            2'd1:    price = 5'd6;
            2'd2:    price = 5'd10;
            2'd3:    price = 5'd17;
            default: price = 5'd31;
        endcase
        case (coin)
            2'd0:    value = 3'd1;
            2'd1:    value = 3'd2;
            2'd2:    value = 3'd5;
            default: value = 3'd0;
        endcase
    end

    always_ff @(posedge clk) begin
        if (reset) begin
            state    <= IDLE;
            credit   <= 5'd0;
            stock    <= 3'd3;
            dispense <= 1'b0;
            product  <= 2'd0;
            change   <= 1'b0;
        end else begin
            dispense <= 1'b0;
            change   <= 1'b0;
            case (state)
                IDLE: begin
                    if (service_code == OPEN_CODE) state <= SERVICE;
                    else if (coin_valid && coin != 2'd3) begin
                        credit <= {2'd0, value};
                        state  <= COLLECT;
                    end
                end
                COLLECT: begin
                    if (cancel) state <= REFUND;
                    else if (coin_valid) begin
                        if (credit > 5'd20) state <= REFUND;
                        else credit <= credit + {2'd0, value};
                    end else if (choice != 2'd0 && credit >= price) begin
                        if (stock == 3'd0) state <= REFUND;
                        else begin
                            credit  <= credit - price;
                            product <= choice;
                            state   <= SELL;
                        end
                    end
                end
                SELL: begin
                    dispense <= 1'b1;
                    stock    <= stock - 3'd1;
                    if (credit == 5'd0) state <= IDLE;
                    else state <= CHANGE;
                end
                CHANGE, REFUND: begin
                    if (credit == 5'd0) state <= IDLE;
                    else begin
                        change <= 1'b1;
                        credit <= credit - 5'd1;
                    end
                end
                default: begin
                    if (service_code == CLOSE_CODE) state <= IDLE;
                    else if (service_code == REFILL_CODE) stock <= 3'd7;
                end
            endcase
        end
    end

    assign sold_out = stock == 3'd0;
    assign closed   = state == SERVICE;
endmodule
