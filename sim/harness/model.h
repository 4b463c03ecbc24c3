// What a compiled model and the harness know of each other.
//
// The harness is compiled once for all designs; a model is a shared object that it loads. The model's side is this
// header (precompiled, included before the generated code) and model.cpp (appended to it).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "verilated.h"
#include "verilated_cov.h"
#include "verilated_dpi.h"

extern "C" {

// An inout port of a design: what is seen there, what the design drives, and which bits it drives.
struct Llm4covInout {
    void* pin;
    void* out;
    void* enable;
};

struct Llm4covModel {
    void* (*create)(VerilatedContext* context);
    void (*eval_step)(void* model);
    void (*finish)(void* model);
    bool (*events_pending)(void* model);
    uint64_t (*next_time_slot)(void* model);
    // Fills `into` and returns how many there are; only returns that when `into` is null.
    unsigned (*inouts)(void* model, Llm4covInout* into);
    // Waveforms; null in a model that was built without tracing.
    void (*trace_open)(void* model, const char* path);
    void (*trace_dump)(uint64_t time);
    void (*trace_close)();
};

const Llm4covModel* llm4cov_model();  // defined by every model
}

namespace llm4cov {

using Fields = std::vector<std::pair<std::string, std::string>>;

// Called once per coverage point while a model is created: the address of its counter and its key.
void cover(uint32_t* count, Fields fields);

inline void append(Fields&) {}
template <typename Value, typename... Rest>
void append(Fields& fields, const char* key, const Value& value, const Rest&... rest) {
    if (key[0]) {
        if constexpr (std::is_integral_v<Value>) {
            fields.emplace_back(key, std::to_string(value));
        } else {
            fields.emplace_back(key, value);
        }
    }
    append(fields, rest...);
}

template <typename... Rest>
void cover_point(uint32_t* count, const Rest&... rest) {
    Fields fields;
    append(fields, rest...);
    cover(count, std::move(fields));
}

}  // namespace llm4cov

// The generated code registers its counters through this documented macro. Taking them here instead of in
// VerilatedCov lets the harness read a million counters without formatting and parsing a file.
#undef VL_COVER_INSERT
#define VL_COVER_INSERT(covcontextp, name, countp, ...) llm4cov::cover_point(countp, __VA_ARGS__)
