// APB timer: prescaler, compare with a one-shot mode, a capture input, and settings behind a two-step lock.
module apb_timer (
    input  logic       pclk,
    input  logic       presetn,
    input  logic       psel,
    input  logic       penable,
    input  logic       pwrite,
    input  logic [2:0] paddr,
    input  logic [7:0] pwdata,
    output logic [7:0] prdata,
    output logic       pready,
    output logic       pslverr,
    input  logic       capture,
    output logic       running,
    output logic       irq
);
    typedef enum logic [2:0] {
        CONTROL = 3'd0, PRESCALE = 3'd1, COMPARE = 3'd2, COUNT = 3'd3, STATUS = 3'd4, CAPTURED = 3'd5, LOCK = 3'd6
    } register_t;
    typedef enum logic [1:0] {LOCKED, HALF, OPEN} lock_t;

    lock_t      lock;
    logic       one_shot;
    logic       irq_enable;
    logic [2:0] prescale;
    logic [2:0] divider;
    logic [7:0] compare;
    logic [7:0] count;
    logic [7:0] captured;
    logic       capture_q;
    logic       matched;
    logic       wrapped;
    logic       caught;
    logic       missed;

    wire tick    = running && divider == prescale;
    wire access  = psel && penable;
    wire guarded = (paddr == PRESCALE || paddr == COMPARE) && lock != OPEN;

    // a running timer takes a new compare value only with a tick, never within one
    assign pready  = !(pwrite && paddr == COMPARE && running) || tick;
    assign pslverr = access && (paddr == 3'd7 || (pwrite && (guarded || paddr == CAPTURED)));
    assign irq     = irq_enable && (matched || wrapped || missed);

    always_comb begin
        case (paddr)
            CONTROL:  prdata = {5'd0, irq_enable, one_shot, running};
            PRESCALE: prdata = {5'd0, prescale};
            COMPARE:  prdata = compare;
            COUNT:    prdata = count;
            STATUS:   prdata = {4'd0, missed, caught, wrapped, matched};
            CAPTURED: prdata = captured;
            LOCK:     prdata = {7'd0, lock == OPEN};
            default:  prdata = 8'd0;
        endcase
    end

    always_ff @(posedge pclk or negedge presetn) begin
        if (!presetn) begin
            lock       <= LOCKED;
            running    <= 1'b0;
            one_shot   <= 1'b0;
            irq_enable <= 1'b0;
            prescale   <= 3'd0;
            divider    <= 3'd0;
            compare    <= 8'hFF;
            count      <= 8'd0;
            captured   <= 8'd0;
            capture_q  <= 1'b0;
            matched    <= 1'b0;
            wrapped    <= 1'b0;
            caught     <= 1'b0;
            missed     <= 1'b0;
        end else begin
            capture_q <= capture;
            if (running) begin
                if (tick) begin
                    divider <= 3'd0;
                    if (count == compare) begin
                        count   <= 8'd0;
                        matched <= 1'b1;
                        if (one_shot) running <= 1'b0;
                    end else begin
                        count <= count + 8'd1;
                        if (count == 8'hFF) wrapped <= 1'b1;
                    end
                end else divider <= divider + 3'd1;
                if (capture && !capture_q) begin
                    if (caught) missed <= 1'b1;
                    else begin
                        caught   <= 1'b1;
                        captured <= count;
                    end
                end
            end
            if (access && pready && pwrite && !pslverr) begin
                case (paddr)
                    CONTROL:  {irq_enable, one_shot, running} <= pwdata[2:0];
                    PRESCALE: begin
                        prescale <= pwdata[2:0];
                        divider  <= 3'd0;
                    end
                    COMPARE:  compare <= pwdata;
                    COUNT:    if (!running) count <= pwdata;
                    STATUS:   begin
                        if (pwdata[0]) matched <= 1'b0;
                        if (pwdata[1]) wrapped <= 1'b0;
                        if (pwdata[2]) {missed, caught} <= 2'b00;
                    end
                    default:  begin
                        if (lock == LOCKED && pwdata == 8'h5A) lock <= HALF;
                        else if (lock == HALF && pwdata == 8'hA5) lock <= OPEN;
                        else lock <= LOCKED;
                    end
                endcase
            end
        end
    end
endmodule
