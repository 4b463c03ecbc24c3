// SystemVerilog testbenches: a model of its own, whose stand-in for the design drives the design's one model.

#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "simulation.h"

namespace llm4cov {

namespace {

Design* running = nullptr;  // for llm4cov_step, which has no other way to it

// The factor between two precisions, as powers of ten of a second.
double ratio(int from, int to) { return std::pow(10.0, from - to); }

uint64_t scaled(uint64_t time, double factor) {
    const double product = std::floor(static_cast<double>(time) * factor + 1e-6);
    return product < 1.8e19 ? static_cast<uint64_t>(product) : ~0ULL;
}

}  // namespace

void Design::run_testbench(const std::string& library, Record& record, size_t capacity, const Limits& limits,
                           int seed) {
    VerilatedContext* const own = Verilated::threadContextp();
    void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw std::runtime_error(dlerror());
    const auto entry = reinterpret_cast<const Llm4covModel* (*)()>(dlsym(handle, "llm4cov_model"));
    if (!entry) throw std::runtime_error(library + " is not a model");
    begin(record, capacity, limits);
    running = this;
    const Llm4covModel* const bench = entry();
    m_bench = new VerilatedContext;
    const char* name = "testbench";
    m_bench->commandArgs(1, &name);  // $test$plusargs and $value$plusargs find none; without arguments they are fatal
    m_bench->randSeed(seed ? seed : 1);  // 0 would mean the time of day
    m_bench->fatalOnError(false);
    m_bench->errorLimit(1 << 30);  // $error does not end a simulation
    Verilated::threadContextp(m_bench);
    void* const model = bench->create(m_bench);
    // as the main program that Verilator generates
    while (!m_bench->gotFinish()) {
        bench->eval_step(model);
        record.errors = static_cast<uint64_t>(m_bench->errorCount());
        if (m_bench->gotFinish() || !bench->events_pending(model)) break;
        const uint64_t next = bench->next_time_slot(model);
        if (scaled(next, ratio(m_bench->timeprecision(), own->timeprecision())) > limits.time) {
            record.end = End::time_limit;
            break;
        }
        m_bench->time(next);
    }
    if (record.end == End::none) record.end = End::done;
    if (record.end == End::done) {
        record.time = scaled(m_bench->time(), ratio(m_bench->timeprecision(), own->timeprecision()));
        bench->finish(model);
    }
    record.errors = static_cast<uint64_t>(m_bench->errorCount());
    Verilated::threadContextp(own);
    if (record.end == End::done || record.end == End::finish) m_api->finish(m_model);
}

uint64_t Design::step(const uint8_t* inputs, uint8_t* outputs) {
    for (const Port& port : m_inputs) {
        std::memcpy(port.data, inputs, port.size);
        inputs += port.size;
    }
    const uint64_t now = scaled(m_bench->time(), ratio(m_bench->timeprecision(), m_context->timeprecision()));
    Verilated::threadContextp(m_context);
    m_context->time(now);
    evaluate(now);
    const uint64_t next = next_event();
    Verilated::threadContextp(m_bench);
    if (m_record->end == End::evaluation_limit || m_record->end == End::record_full) {
        std::fflush(nullptr);  // it may never give back control
        _exit(0);
    }
    if (m_record->end != End::none) m_bench->gotFinish(true);
    for (const Port& port : m_outputs) {
        std::memcpy(outputs, port.data, port.size);
        outputs += port.size;
    }
    if (next == ~0ULL || next <= now) return 0;
    return std::max<uint64_t>(1, scaled(next - now, ratio(m_context->timeprecision(), -12)));
}

}  // namespace llm4cov

extern "C" void llm4cov_step(const svBitVecVal* inputs, svBitVecVal* outputs, unsigned long long* delay) {
    *delay = llm4cov::running->step(reinterpret_cast<const uint8_t*>(inputs), reinterpret_cast<uint8_t*>(outputs));
}
