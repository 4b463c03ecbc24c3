#include "simulation.h"

#include "print.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>

#include "verilated_sym_props.h"
#include "verilated_syms.h"
#include "verilated_vpi.h"

namespace llm4cov {

namespace {

constexpr uint64_t no_event = ~0ULL;

struct Counter {
    uint32_t* count;
    Fields fields;
};
std::vector<Counter> counters;

// State of the run in this process, for the callbacks below, which have no other way to it.
End* current_end = nullptr;
void (*on_fatal)() = nullptr;
VerilatedContext* design_context = nullptr;
Design* driven_design = nullptr;

// Same quoting as verilated_cov.cpp, whose format the points are written in.
std::string quoted(const std::string& text) {
    std::string out;
    for (const unsigned char c : text) {
        if (std::isprint(c) && c != '%' && c != '"') {
            out += static_cast<char>(c);
        } else {
            char hex[4];
            std::snprintf(hex, sizeof hex, "%%%02X", c);
            out += hex;
        }
    }
    return out;
}

void write_varint(Record& record, uint64_t value) {
    while (value >= 0x80) {
        record.data[record.size++] = static_cast<uint8_t>(value | 0x80);
        value >>= 7;
    }
    record.data[record.size++] = static_cast<uint8_t>(value);
}

bool read_varint(const uint8_t*& at, const uint8_t* end, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
        const uint8_t byte = *at++;
        value |= static_cast<uint64_t>(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

void mix(uint64_t& hash, uint64_t value) {
    hash ^= value;
    hash *= 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
}

void mix(uint64_t& hash, const uint8_t* data, size_t size) {
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        std::memcpy(&word, data + i, std::min<size_t>(8, size - i));
        mix(hash, word);
    }
}

}  // namespace

void cover(uint32_t* count, Fields fields) { counters.push_back({count, std::move(fields)}); }

Design::Design(const std::string& path) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    using Entry = const Llm4covModel* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(library, "llm4cov_model"));
    if (!entry) throw std::runtime_error(path + " is not a model");
    m_api = entry();
    VerilatedContext* const context = Verilated::threadContextp();
    context->fatalOnVpiError(false);  // cocotb probes for names that may not exist
    context->fatalOnError(false);     // a failed assertion ends the run in good order, see vl_stop
    design_context = m_context = context;
    m_model = m_api->create(context);
    add_ports();
    add_inouts();
}

void Design::add_ports() {
    const VerilatedScopeNameMap* const scopes = Verilated::threadContextp()->scopeNameMap();
    const auto scope = scopes->find("TOP");
    if (scope == scopes->end() || !scope->second->varsp()) return;  // no ports at all
    for (auto& [name, var] : *scope->second->varsp()) {
        if (var.vltype() == VLVT_STRING || var.isParam()) continue;
        uint32_t entry = var.entSize(), bits = var.entBits();
        if (var.vltype() == VLVT_REAL) entry = sizeof(double), bits = 64;  // which entSize does not know
        uint32_t size = entry;
        for (int dimension = 1; dimension <= var.udims(); ++dimension) size *= var.elements(dimension);
        const int direction = var.vldir();
        Port port{name,  direction == VLVD_OUT ? "output" : "input", static_cast<uint8_t*>(var.datap()), size, entry,
                  bits, m_shadow.size()};
        m_shadow.insert(m_shadow.end(), port.data, port.data + size);
        if (direction == VLVD_IN || direction == VLVD_INOUT) m_inputs.push_back(port);
        if (direction == VLVD_OUT) m_outputs.push_back(port);
    }
}

void Design::add_inouts() {
    std::vector<Llm4covInout> found(m_api->inouts(m_model, nullptr));
    if (!found.empty()) m_api->inouts(m_model, found.data());
    for (size_t i = 0; i < m_inputs.size(); ++i) {
        for (const Llm4covInout& inout : found) {
            if (inout.pin != m_inputs[i].data) continue;
            Inout entry{i, m_outputs.size(), m_outputs.size() + 1, {}, {}};
            entry.written.assign(m_inputs[i].size, 0);
            entry.resolved = entry.written;
            m_inouts.push_back(entry);
            for (const auto& [kind, data] : {std::pair{"out", inout.out}, std::pair{"enable", inout.enable}}) {
                Port port = m_inputs[i];
                port.kind = kind;
                port.data = static_cast<uint8_t*>(data);
                port.shadow = m_shadow.size();
                m_shadow.insert(m_shadow.end(), port.data, port.data + port.size);
                m_outputs.push_back(port);
            }
        }
    }
}

// Seen by value where a bit was written, and by the call where the whole was: it may be what the design drives anyway.
void Design::take_written() {
    for (Inout& inout : m_inouts) {
        const uint8_t* const pin = m_inputs[inout.input].data;
        for (size_t b = 0; b < inout.written.size(); ++b) {
            const uint8_t changed = inout.put ? 0xff : static_cast<uint8_t>(pin[b] ^ inout.resolved[b]);
            inout.written[b] = static_cast<uint8_t>((inout.written[b] & ~changed) | (pin[b] & changed));
        }
        inout.put = false;
    }
}

void Design::note_put(void* handle) {
    if (m_inouts.empty()) return;
    const auto object = static_cast<vpiHandle>(handle);
    const char* const found = vpi_get_str(vpiFullName, object);
    const std::string path = found ? found : "";
    const size_t dot = path.find('.');
    if (dot == std::string::npos || path.find('.', dot + 1) != std::string::npos) return;  // not at the top
    for (Inout& inout : m_inouts) {
        const Port& port = m_inputs[inout.input];
        if (port.name == path.substr(dot + 1) && port.element_size == port.size &&
            static_cast<uint32_t>(vpi_get(vpiSize, object)) == port.element_bits) {
            inout.put = true;
        }
    }
}

// Puts on each inout what design and testbench drive together; returns whether that changed anything.
bool Design::resolve_inouts() {
    bool changed = false;
    for (Inout& inout : m_inouts) {
        uint8_t* const pin = m_inputs[inout.input].data;
        const uint8_t *const out = m_outputs[inout.out].data, *const enable = m_outputs[inout.enable].data;
        for (size_t b = 0; b < inout.written.size(); ++b) {
            inout.resolved[b] = static_cast<uint8_t>((out[b] & enable[b]) | (inout.written[b] & ~enable[b]));
            changed |= inout.resolved[b] != pin[b];
            pin[b] = inout.resolved[b];
        }
    }
    return changed;
}

std::string Design::ports() const {
    std::string out = "[";
    for (const auto* ports : {&m_inputs, &m_outputs}) {
        for (const Port& port : *ports) {
            if (out.size() > 1) out += ", ";
            out += "[\"";
            for (const char c : port.name) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
            out += "\", \"" + port.kind + "\", " + std::to_string(port.size) + ", " +
                   std::to_string(port.element_size) + "]";
        }
    }
    return out + "]";
}

int Design::precision() const { return Verilated::threadContextp()->timeprecision(); }

void Design::record_inputs(Record& record, size_t capacity, uint64_t time_step) {
    // 20 bytes hold two varints; each changed port adds its index and its value
    const size_t most = 20 + m_inputs.size() * 10 + m_shadow.size();
    if (record.size + most > capacity - sizeof(Record)) {
        record.end = End::record_full;
        return;
    }
    write_varint(record, time_step);
    uint64_t changed = 0;
    for (const Port& port : m_inputs) changed += std::memcmp(port.data, &m_shadow[port.shadow], port.size) != 0;
    write_varint(record, changed);
    if (!changed) return;
    for (size_t i = 0; i < m_inputs.size(); ++i) {
        const Port& port = m_inputs[i];
        if (!std::memcmp(port.data, &m_shadow[port.shadow], port.size)) continue;
        std::memcpy(&m_shadow[port.shadow], port.data, port.size);
        write_varint(record, i);
        std::memcpy(&record.data[record.size], port.data, port.size);
        record.size += port.size;
    }
}

void Design::hash_outputs(uint64_t& hash, uint64_t evaluation) {
    for (size_t i = 0; i < m_outputs.size(); ++i) {
        const Port& port = m_outputs[i];
        if (!std::memcmp(port.data, &m_shadow[port.shadow], port.size)) continue;
        std::memcpy(&m_shadow[port.shadow], port.data, port.size);
        mix(hash, evaluation);
        mix(hash, i);
        mix(hash, port.data, port.size);
    }
}

void Design::settle() {
    while (VerilatedVpi::callValueCbs()) {}
}

// One evaluation of a run, recorded before and hashed after it.
void Design::evaluate(uint64_t now) {
    Record& record = *m_record;
    if (record.evaluations >= m_limits.evaluations) {
        record.end = End::evaluation_limit;
        return;
    }
    take_written();
    record_inputs(record, m_capacity, now - m_recorded);
    if (record.end == End::record_full) return;
    m_recorded = now;
    record.time = now;
    m_api->eval_step(m_model);
    const uint64_t n = record.evaluations + 1;
    uint64_t hash = record.outputs[record.evaluations % 2];
    hash_outputs(hash, n);
    record.outputs[n % 2] = hash;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    record.evaluations = n;
}

void Design::begin(Record& record, size_t capacity, const Limits& limits) {
    current_end = &record.end;
    driven_design = this;
    m_record = &record;
    m_capacity = capacity;
    m_limits = limits;
    m_recorded = 0;
}

void Design::run(Record& record, size_t capacity, const Limits& limits) {
    VerilatedContext* const context = Verilated::threadContextp();
    begin(record, capacity, limits);
    uint64_t now = 0;
    const auto ended = [&] { return record.end != End::none || Verilated::gotFinish(); };
    // A test that ends at a clock edge, and $finish, let the time step settle: the edge counts, as in Verilator's own
    // main program. Everything else stops at once.
    const auto halted = [&] {
        return record.end != End::none && record.end != End::done && record.end != End::finish;
    };

    VerilatedVpi::callCbs(cbStartOfSimulation);
    settle();
    // The order of the regions within a time step follows the main program that cocotb ships for Verilator.
    while (!ended()) {
        do {
            do {
                do evaluate(now);
                while (!halted() && resolve_inouts());  // what the design drives comes back at its own pins
                if (halted()) break;
                VerilatedVpi::clearEvalNeeded();
                VerilatedVpi::doInertialPuts();
                settle();
            } while (VerilatedVpi::evalNeeded());
            if (halted()) break;
            VerilatedVpi::callCbs(cbReadWriteSynch);
            VerilatedVpi::doInertialPuts();
            settle();
        } while (VerilatedVpi::evalNeeded());
        if (ended()) break;
        VerilatedVpi::callCbs(cbReadOnlySynch);
        if (ended()) break;

        const uint64_t next = std::min(VerilatedVpi::cbNextDeadline(), next_event());
        if (next == no_event) {
            record.end = End::starved;
            break;
        }
        if (next > limits.time) {
            record.end = End::time_limit;
            break;
        }
        now = next;
        context->time(now);
        VerilatedVpi::callCbs(cbNextSimTime);
        settle();
        VerilatedVpi::callTimedCbs();
        settle();
    }
    if (record.end == End::none) record.end = End::done;
    record.time = now;
    // cocotb has shut down by itself unless the run ended behind its back
    if (record.end == End::finish || record.end == End::stop || record.end == End::starved) {
        const End reason = record.end;
        VerilatedVpi::callCbs(cbEndOfSimulation);
        record.end = reason;
    }
    if (record.end == End::done || record.end == End::finish) m_api->finish(m_model);
}

uint64_t Design::next_event() const {
    return m_api->events_pending(m_model) ? m_api->next_time_slot(m_model) : no_event;
}

void Design::replay(const Record& record, size_t capacity, const Limits& limits, Replay& result,
                    const std::string& waves) {
    VerilatedContext* const context = Verilated::threadContextp();
    current_end = &result.end;
    const uint8_t* at = record.data;
    const uint8_t* const end = at + std::min<uint64_t>(record.size, capacity - sizeof(Record));
    uint64_t now = 0;
    const bool traced = !waves.empty() && m_api->trace_open;
    if (traced) m_api->trace_open(m_model, waves.c_str());
    while (at < end && result.evaluations < limits.evaluations) {
        uint64_t step, changed, index;
        if (!read_varint(at, end, step) || !read_varint(at, end, changed)) break;
        // no run goes on after its end or past its limit; a forged record would
        if ((step && result.end != End::none) || step > limits.time - now) break;
        if (traced && step) m_api->trace_dump(now);  // a time step has one place in a waveform, whatever its evaluations
        for (; changed; --changed) {
            if (!read_varint(at, end, index) || index >= m_inputs.size()) return;
            const Port& port = m_inputs[index];
            if (static_cast<size_t>(end - at) < port.size) return;
            std::memcpy(port.data, at, port.size);
            at += port.size;
            // Generated code relies on unused bits being zero; cocotb keeps to that, forged records need not.
            const uint32_t spare = port.element_size * 8 - port.element_bits;
            if (!port.element_size || !spare || spare >= port.element_size * 8) continue;
            for (uint32_t e = port.element_size; e <= port.size; e += port.element_size) {
                for (uint32_t bit = 0; bit < spare;) {
                    uint8_t& byte = port.data[e - 1 - bit / 8];
                    const uint32_t n = std::min<uint32_t>(8, spare - bit);
                    byte = n == 8 ? 0 : static_cast<uint8_t>(byte & (0xff >> n));
                    bit += n;
                }
            }
        }
        now += step;
        context->time(now);
        m_api->eval_step(m_model);
        hash_outputs(result.outputs, result.evaluations + 1);
        ++result.evaluations;
    }
    if (traced) {
        m_api->trace_dump(now);
        m_api->trace_close();
    }
}

void Design::randomise(Record& record, size_t capacity, uint64_t evaluations, uint64_t seed) const {
    std::mt19937_64 random{seed};
    record.size = 0;
    const uint64_t nanosecond = [this] {
        uint64_t units = 1;
        for (int p = precision(); p < -9; ++p) units *= 10;
        return units;
    }();
    size_t bytes = 0;
    for (const Port& port : m_inputs) bytes += 10 + port.size;
    for (uint64_t n = 0; n < evaluations && record.size + 20 + bytes < capacity - sizeof(Record); ++n) {
        write_varint(record, n ? nanosecond : 0);
        write_varint(record, m_inputs.size());
        for (size_t i = 0; i < m_inputs.size(); ++i) {
            write_varint(record, i);
            // single bits change half of the time, so that clocks tick and resets are left
            for (uint32_t b = 0; b < m_inputs[i].size; ++b) record.data[record.size++] = static_cast<uint8_t>(random());
        }
    }
}

std::string Design::points() const {
    static const std::vector<std::pair<std::string, std::string>> names{
        {"filename", "f"}, {"lineno", "l"}, {"column", "n"},   {"page", "page"},
        {"comment", "o"},  {"linescov", "S"}, {"fsm_var", "Fv"}, {"hier", "h"},
    };
    std::string out = "# SystemC::Coverage-3\n";
    for (const Counter& counter : counters) {
        out += "C '";
        for (const auto& [name, key] : names) {
            for (const auto& [field, value] : counter.fields) {
                if (field != name) continue;
                if (name == "page") {
                    const size_t slash = value.find('/');
                    out += "\001t\002" + quoted(value.substr(2, slash == std::string::npos ? slash : slash - 2));
                }
                out += "\001" + key + "\002" + quoted(value);
            }
        }
        out += "' 0\n";
    }
    return out;
}

std::string Design::hits() const {
    std::string bits((counters.size() + 7) / 8, '\0');
    for (size_t i = 0; i < counters.size(); ++i) {
        if (*counters[i].count) bits[i / 8] = static_cast<char>(bits[i / 8] | (1 << (i % 8)));
    }
    return bits;
}

void set_fatal_handler(void (*handler)()) { on_fatal = handler; }

}  // namespace llm4cov

// What the model calls for $finish, $stop and errors it cannot go on from, in place of the runtime's own functions
// (VL_USER_FINISH and its siblings): those would lose the record or kill the process.

static void end_run(llm4cov::End end) {
    if (llm4cov::current_end && *llm4cov::current_end == llm4cov::End::none) *llm4cov::current_end = end;
}

// How session.py ends a simulation, in place of GPI's way, which would also shut Python down.
extern "C" void llm4cov_done() {
    end_run(llm4cov::End::done);
    Verilated::threadContextp()->gotFinish(true);
}

// Every write of a testbench comes through here; verilated_vpi.cpp is compiled with another name for its own.
extern "C" vpiHandle llm4cov_put_value(vpiHandle object, p_vpi_value value, p_vpi_time time, PLI_INT32 flags);

extern "C" vpiHandle vpi_put_value(vpiHandle object, p_vpi_value value, p_vpi_time time, PLI_INT32 flags) {
    if (llm4cov::driven_design) llm4cov::driven_design->note_put(object);
    return llm4cov_put_value(object, value, time, flags);
}

void vl_finish(const char* file, int line, const char* hierarchy) {
    // cocotb ends a simulation through VPI
    const bool by_cocotb = hierarchy && !std::strcmp(hierarchy, "*VPI*");
    const bool by_testbench = by_cocotb || Verilated::threadContextp() != llm4cov::design_context;
    if (!by_cocotb) VL_PRINTF("- %s:%d: Verilog $finish\n", file, line);
    end_run(by_testbench ? llm4cov::End::done : llm4cov::End::finish);
    Verilated::threadContextp()->gotFinish(true);
}

void vl_stop(const char* file, int line, const char*) {
    VL_PRINTF("%%Error: %s:%d: Verilog $stop\n", file, line);
    end_run(llm4cov::End::stop);
    Verilated::threadContextp()->gotError(true);
    Verilated::threadContextp()->gotFinish(true);
}

// $stop ends a simulation, $error does not end one of a SystemVerilog testbench: both come here, but $error, $fatal and
// failed assertions have printed their message just before.
static bool error_printed = false;

extern "C" int llm4cov_print(const char* format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    error_printed = std::strstr(text, "%Error: ") != nullptr;
    if (length < static_cast<int>(sizeof text)) return std::fputs(text, stdout);
    va_start(arguments, format);
    const int printed = std::vprintf(format, arguments);
    va_end(arguments);
    return printed;
}

void vl_stop_maybe(const char* file, int line, const char* hierarchy, bool maybe) {
    VerilatedContext* const context = Verilated::threadContextp();
    context->errorCountInc();
    const bool goes_on = maybe && error_printed && context->errorCount() < context->errorLimit();
    error_printed = false;
    if (!goes_on) vl_stop(file, line, hierarchy);
}

void vl_fatal(const char* file, int line, const char*, const char* message) {
    VL_PRINTF("%%Error: %s:%d: %s\n", file && *file ? file : "-", line, message);
    std::fflush(stdout);
    const bool unsettled = std::strstr(message, "converge") != nullptr;
    end_run(unsettled ? llm4cov::End::nonconverged : llm4cov::End::fatal);
    if (llm4cov::on_fatal) llm4cov::on_fatal();
    _exit(0);
}
