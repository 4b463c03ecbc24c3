// Appended to the generated code of every model, of designs and of SystemVerilog testbenches.

#ifndef LLM4COV_CLASS
#define LLM4COV_CLASS Vtop
#endif

#ifndef VM_TRACE
#define VM_TRACE 0
#endif

#if VM_TRACE && VM_TRACE_FST
#include "verilated_fst_c.h"
using Llm4covTrace = VerilatedFstC;
#elif VM_TRACE
#include "verilated_vcd_c.h"
using Llm4covTrace = VerilatedVcdC;
#endif

namespace {

LLM4COV_CLASS* model(void* handle) { return static_cast<LLM4COV_CLASS*>(handle); }

// An empty name makes the scopes `TOP` and `<top>`, as cocotb expects.
void* create(VerilatedContext* context) {
    context->traceEverOn(VM_TRACE);
    return new LLM4COV_CLASS{context, ""};
}
void eval_step(void* handle) { model(handle)->eval_step(); }
void finish(void* handle) { model(handle)->final(); }
bool events_pending(void* handle) { return model(handle)->eventsPending(); }
uint64_t next_time_slot(void* handle) { return model(handle)->nextTimeSlot(); }

// LLM4COV_INOUTS is their number, and pins.h one assignment for each (sim/build.py).
#ifdef LLM4COV_INOUTS
unsigned inouts(void* handle, Llm4covInout* into) {
    if (into) {
        LLM4COV_CLASS* const top = model(handle);
#include "pins.h"
    }
    return LLM4COV_INOUTS;
}
#else
unsigned inouts(void*, Llm4covInout*) { return 0; }
#endif

#if VM_TRACE
Llm4covTrace* trace = nullptr;

void trace_open(void* handle, const char* path) {
    trace = new Llm4covTrace;
    model(handle)->trace(trace, 99);
    trace->open(path);
}
void trace_dump(uint64_t time) { trace->dump(time); }
void trace_close() { trace->close(); }
#else
constexpr auto trace_open = nullptr;
constexpr auto trace_dump = nullptr;
constexpr auto trace_close = nullptr;
#endif

const Llm4covModel api{create,         eval_step,  finish,     events_pending,
                       next_time_slot, inouts,     trace_open, trace_dump, trace_close};

}  // namespace

extern "C" const Llm4covModel* llm4cov_model() { return &api; }
