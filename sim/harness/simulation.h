// One elaborated design: running it under cocotb or a SystemVerilog testbench while recording its inputs, and replaying
// such a record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model.h"

namespace llm4cov {

// Why a run ended. The order is part of the protocol with sim/engine.py.
enum class End : uint32_t {
    none,          // the process was stopped from outside, or left by itself
    done,          // the testbench ended the simulation, or has nothing more to do (SystemVerilog)
    finish,        // $finish in the design
    stop,          // $stop, $fatal or a failed assertion
    nonconverged,  // the design does not settle
    fatal,         // any other fatal error of the model
    starved,       // cocotb waits and no event is left
    time_limit,
    evaluation_limit,
    record_full,
};

// Written by the child that runs a testbench, read by its parent; shared memory, so that a killed child loses nothing.
// The child runs untrusted code: everything here is a claim, apart from the inputs, which are only stimulus.
struct Record {
    End end;
    uint64_t time;         // at the end, or of the last evaluation, in units of the design's precision
    uint64_t evaluations;  // finished evaluations
    uint64_t outputs[2];   // hash of all outputs after n evaluations, at n % 2: a kill never tears count and hash apart
    uint64_t errors;       // $error and failed assertions of a SystemVerilog testbench
    uint64_t size;         // bytes used of data
    uint8_t data[];
};

struct Limits {
    uint64_t time;         // in units of the design's precision
    uint64_t evaluations;  // number of evaluations
};

struct Replay {
    End end = End::none;
    uint64_t evaluations = 0;
    uint64_t outputs = 0;
};

class Design {
public:
    // Loads and elaborates a model; throws std::runtime_error with a message.
    explicit Design(const std::string& path);

    // Runs under the control of cocotb, which must be initialised, until it ends or a limit is reached. Never returns
    // when the model stops fatally: the process then leaves with the record in place.
    void run(Record& record, size_t capacity, const Limits& limits);

    // Runs a compiled SystemVerilog testbench, whose stand-in for the design (sim/stub.py) calls llm4cov_step. The same
    // rules as for `run`; throws std::runtime_error when the library cannot be loaded.
    void run_testbench(const std::string& library, Record& record, size_t capacity, const Limits& limits, int seed);

    // One call of the stand-in: takes the inputs, evaluates, gives the outputs, both as the memory of one port after
    // another by name. Returns the picoseconds until the design's own next event, 0 if it has none.
    uint64_t step(const uint8_t* inputs, uint8_t* outputs);

    // Applies a record to the model, as far as a run within `limits` would go, and keeps `result` up to date. Tolerates
    // any bytes. Writes the waveforms to the file `waves` unless it is empty or the model cannot.
    void replay(const Record& record, size_t capacity, const Limits& limits, Replay& result,
                const std::string& waves = "");

    // Fills `record` with `evaluations` evaluations of random inputs, one a nanosecond.
    void randomise(Record& record, size_t capacity, uint64_t evaluations, uint64_t seed) const;

    // One line per coverage point, in the format of verilated_cov.cpp, all counts zero.
    std::string points() const;
    // Bitset over the lines of points(): bit i % 8 of byte i / 8 is set if counter i is not zero.
    std::string hits() const;

    // Called before the testbench writes to a signal through VPI.
    void note_put(void* handle);

    // The ports in the order in which records and `step` have them, as a JSON list of [name, kind, bytes, bytes of one
    // element]; kind is `input` or `output`, and `out` or `enable` for what the design drives on an inout, which is an
    // input too.
    std::string ports() const;

    int precision() const;

private:
    struct Port {
        std::string name, kind;
        uint8_t* data;
        uint32_t size;          // bytes
        uint32_t element_size;  // bytes of one element of an unpacked array, or of the whole port
        uint32_t element_bits;
        size_t shadow;  // offset of its last known value
    };

    // An inout port seen from outside: the bits that the design does not drive have what the testbench wrote last.
    struct Inout {
        size_t input, out, enable;      // positions in m_inputs and m_outputs
        std::vector<uint8_t> written;   // by the testbench
        std::vector<uint8_t> resolved;  // what was put on the pin
        bool put = false;               // the testbench wrote to the whole of it
    };

    void add_ports();
    void add_inouts();
    void take_written();
    bool resolve_inouts();
    void begin(Record& record, size_t capacity, const Limits& limits);
    void evaluate(uint64_t now);
    uint64_t next_event() const;  // ~0 if the design has no event of its own
    void record_inputs(Record& record, size_t capacity, uint64_t time_step);
    void hash_outputs(uint64_t& hash, uint64_t evaluation);
    void settle();

    const Llm4covModel* m_api = nullptr;
    VerilatedContext* m_context = nullptr;
    void* m_model = nullptr;
    std::vector<Port> m_inputs, m_outputs;
    std::vector<Inout> m_inouts;
    std::vector<uint8_t> m_shadow;  // of all ports

    // The run in this process.
    Record* m_record = nullptr;
    size_t m_capacity = 0;
    Limits m_limits{};
    uint64_t m_recorded = 0;                // time of the last entry
    VerilatedContext* m_bench = nullptr;    // of a SystemVerilog testbench
};

// Called when the model stops with an error it cannot go on from; must not return.
void set_fatal_handler(void (*handler)());

}  // namespace llm4cov
