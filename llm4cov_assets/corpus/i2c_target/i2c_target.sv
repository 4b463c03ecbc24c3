// I2C-like target, sampled: start and stop conditions, address match, a register pointer, write and read.
module i2c_target (
    input  logic       clk,
    input  logic       rst_n,
    input  logic       scl,
    input  logic       sda,
    output logic       sda_low,
    output logic       selected,
    output logic [7:0] control,
    output logic       busy,
    output logic       nack,
    output logic       general_call
);
    typedef enum logic [2:0] {IDLE, ADDRESS, ACK, POINTER, WRITE, READ, IGNORE} state_t;
    localparam logic [6:0] OWN = 7'h31;

    state_t     state;
    state_t     after;
    logic       scl_q;
    logic       sda_q;
    logic [7:0] shift;
    logic [2:0] index;
    logic       pointer;
    wire        start = scl && scl_q && sda_q && !sda;
    wire        stop  = scl && scl_q && !sda_q && sda;
    wire        rise  = scl && !scl_q;
    wire        fall  = !scl && scl_q;
    wire [7:0]  byte_in = {shift[6:0], sda};

    assign busy = state != IDLE;

    always_ff @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state        <= IDLE;
            after        <= IDLE;
            scl_q        <= 1'b1;
            sda_q        <= 1'b1;
            shift        <= 8'd0;
            index        <= 3'd0;
            pointer      <= 1'b0;
            control      <= 8'h0A;
            sda_low      <= 1'b0;
            selected     <= 1'b0;
            nack         <= 1'b0;
            general_call <= 1'b0;
        end else begin
            scl_q <= scl;
            sda_q <= sda;
            if (start) begin
                state <= ADDRESS;
                index <= 3'd0;
            end else if (stop) begin
                state    <= IDLE;
                selected <= 1'b0;
                sda_low  <= 1'b0;
            end else begin
                case (state)
                    ADDRESS, POINTER, WRITE: begin
                        if (rise) begin
                            shift <= byte_in;
                            index <= index + 3'd1;
                            if (index == 3'd7) begin
                                state <= ACK;
                                if (state == ADDRESS) begin
                                    if (byte_in[7:1] == OWN) begin
                                        selected <= 1'b1;
                                        after    <= byte_in[0] ? READ : POINTER;
                                        if (byte_in[0]) shift <= pointer ? control : 8'h31;
                                    end else if (byte_in == 8'h00) begin
                                        general_call <= 1'b1;
                                        after        <= IGNORE;
                                    end else state <= IGNORE;
                                end else if (state == POINTER) begin
                                    if (byte_in > 8'd1) begin
                                        nack  <= 1'b1;
                                        state <= IGNORE;
                                    end else pointer <= byte_in[0];
                                    after <= WRITE;
                                end else if (pointer) control <= byte_in;
                                else begin
                                    nack  <= 1'b1;
                                    state <= IGNORE;
                                end
                            end
                        end
                    end
                    ACK: begin
                        if (fall) begin
                            sda_low <= !sda_low;
                            if (sda_low) state <= after;
                        end
                    end
                    READ: begin
                        sda_low <= !shift[7];
                        if (fall) begin
                            shift <= {shift[6:0], 1'b1};
                            index <= index + 3'd1;
                            if (index == 3'd7) begin
                                sda_low <= 1'b0;
                                state   <= IGNORE;
                            end
                        end
                    end
                    default: ;
                endcase
            end
        end
    end
endmodule
