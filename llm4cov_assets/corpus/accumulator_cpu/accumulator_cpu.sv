// Eight-bit accumulator machine: flags, branches, two-level calls, an interrupt, traps and a guarded halt.
module accumulator_cpu (
    input  logic        clk,
    input  logic        rst,
    output logic [7:0]  pc,
    input  logic [11:0] instruction,
    input  logic        fetched,
    input  logic [7:0]  in_port,
    output logic [7:0]  out_port,
    output logic        out_strobe,
    input  logic        irq,
    input  logic        resume,
    output logic        in_handler,
    output logic        halted,
    output logic        trapped,
    output logic [1:0]  cause
);
    typedef enum logic [3:0] {
        SYS = 4'h0, LDI = 4'h1, LD = 4'h2, ST = 4'h3, ADD = 4'h4, SUB = 4'h5, AND = 4'h6, XOR = 4'h7,
        SHR = 4'h8, JMP = 4'h9, JZ = 4'hA, JC = 4'hB, CALL = 4'hC, RET = 4'hD, IN = 4'hE, OUT = 4'hF
    } opcode_t;
    typedef enum logic [1:0] {FETCH, EXECUTE, HALT, TRAP} state_t;
    typedef enum logic [1:0] {NO_CAUSE, CALL_DEPTH, RET_EMPTY, ILLEGAL} cause_t;
    localparam logic [7:0] NOP = 8'h00, STOP = 8'hA5, IRQ_ON = 8'h3C, IRQ_OFF = 8'hC3, IRQ_RETURN = 8'h99;
    localparam logic [7:0] VECTOR = 8'hF0;

    state_t     state;
    opcode_t    op;
    logic [7:0] operand;
    logic [7:0] acc;
    logic       zero;
    logic       carry;
    logic [7:0] memory [4];
    logic [7:0] stack [2];
    logic [1:0] depth;
    logic       irq_enable;
    logic [7:0] saved_pc;
    logic [1:0] saved_flags;
    logic [8:0] result;
    logic       sets_flags;
    wire  [7:0] value   = memory[operand[1:0]];
    wire  [7:0] next_pc = pc + 8'd1;

    always_comb begin
        sets_flags = 1'b1;
        case (op)
            LDI:     result = {carry, operand};
            LD:      result = {carry, value};
            ADD:     result = {1'b0, acc} + {1'b0, value};
            SUB:     result = {1'b0, acc} - {1'b0, value};
            AND:     result = {1'b0, acc & value};
            XOR:     result = {1'b0, acc ^ value};
            SHR:     result = {acc[0], carry, acc[7:1]};
            IN:      result = {carry, in_port};
            default: begin
                result     = {carry, acc};
                sets_flags = 1'b0;
            end
        endcase
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            state       <= FETCH;
            op          <= SYS;
            operand     <= NOP;
            pc          <= 8'd0;
            acc         <= 8'd0;
            zero        <= 1'b1;
            carry       <= 1'b0;
            depth       <= 2'd0;
            out_port    <= 8'd0;
            out_strobe  <= 1'b0;
            irq_enable  <= 1'b0;
            in_handler  <= 1'b0;
            saved_pc    <= 8'd0;
            saved_flags <= 2'd0;
            halted      <= 1'b0;
            trapped     <= 1'b0;
            cause       <= NO_CAUSE;
            for (int i = 0; i < 4; i++) memory[i] <= 8'd0;
            for (int i = 0; i < 2; i++) stack[i] <= 8'd0;
        end else begin
            out_strobe <= 1'b0;
            case (state)
                FETCH: begin
                    if (irq && irq_enable && !in_handler) begin
                        saved_pc    <= pc;
                        saved_flags <= {zero, carry};
                        pc          <= VECTOR;
                        in_handler  <= 1'b1;
                    end else if (fetched) begin
                        op      <= opcode_t'(instruction[11:8]);
                        operand <= instruction[7:0];
                        state   <= EXECUTE;
                    end
                end
                EXECUTE: begin
                    state <= FETCH;
                    pc    <= next_pc;
                    if (sets_flags) begin
                        acc   <= result[7:0];
                        carry <= result[8];
                        zero  <= result[7:0] == 8'd0;
                    end
                    case (op)
                        ST:  memory[operand[1:0]] <= acc;
                        JMP: pc <= operand;
                        JZ:  if (zero) pc <= operand;
                        JC:  if (carry) pc <= operand;
                        CALL: begin
                            if (depth == 2'd2) begin
                                cause <= CALL_DEPTH;
                                state <= TRAP;
                            end else begin
                                stack[depth[0]] <= next_pc;
                                depth           <= depth + 2'd1;
                                pc              <= operand;
                            end
                        end
                        RET: begin
                            if (depth == 2'd0) begin
                                cause <= RET_EMPTY;
                                state <= TRAP;
                            end else begin
                                depth <= depth - 2'd1;
                                pc    <= (depth == 2'd2) ? stack[1] : stack[0];
                            end
                        end
                        OUT: begin
                            out_port   <= acc;
                            out_strobe <= 1'b1;
                        end
                        SYS: begin
                            case (operand)
                                NOP:     ;
                                IRQ_ON:  irq_enable <= 1'b1;
                                IRQ_OFF: irq_enable <= 1'b0;
                                IRQ_RETURN: begin
                                    if (in_handler) begin
                                        pc            <= saved_pc;
                                        {zero, carry} <= saved_flags;
                                        in_handler    <= 1'b0;
                                    end else begin
                                        cause <= ILLEGAL;
                                        state <= TRAP;
                                    end
                                end
                                STOP: begin
                                    // only a program that says so beforehand may stop the machine
                                    if (acc == 8'h5A) state <= HALT;
                                end
                                default: begin
                                    cause <= ILLEGAL;
                                    state <= TRAP;
                                end
                            endcase
                        end
                        default: ;
                    endcase
                end
                HALT: begin
                    halted <= 1'b1;
                    if (resume && irq) begin
                        halted <= 1'b0;
                        state  <= FETCH;
                    end
                end
                default: begin
                    trapped <= 1'b1;
                    if (resume && in_port == 8'h0F) begin
                        trapped <= 1'b0;
                        cause   <= NO_CAUSE;
                        depth   <= 2'd0;
                        pc      <= 8'd0;
                        state   <= FETCH;
                    end
                end
            endcase
        end
    end
endmodule
