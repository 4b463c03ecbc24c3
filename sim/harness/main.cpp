// Fork server for simulations. Usage: harness; commands on stdin, one reply line (JSON) on stdout for each.
//
// Python and cocotb are loaded once. `open` forks a server for one design, which loads and elaborates the model once
// and then forks one child per testbench. The child inherits everything, runs the testbench and leaves; what it leaves
// behind is its log, the files in its folder, and the record of the design's inputs in shared memory. Coverage comes
// from replaying that record in another child, which has seen no testbench code.
//
// Commands (fields separated by tabs):
//   open    MODEL                                        -> {"points": N, "inputs": N, "outputs": N}
//   points  FILE                                         -> {"ports": [...]} and FILE in the format of verilated_cov.cpp
//   probe   EVALUATIONS                                  -> {"deterministic": true|false|null}
//   run     FOLDER TIME_NS EVALUATIONS WALL_MS CPU_S MEMORY_MB OUTPUT_BYTES RECORD LIBRARY SEED ARGUMENT PROCESSES
//           DISK_MB FILES
//           Runs FOLDER/testbench.py, or the SystemVerilog testbench compiled to LIBRARY. Writes the record of the
//           inputs to the file RECORD unless that is empty.
//           -> {"end", "excess", "exit", "signal", "time_ns", "evaluations", "wall_s", "cpu_s", "errors",
//               "replay_cpu_s", "replayed", "same", "hits"}
//   replay  RECORD WAVES
//           Replays such a file, writes the waveforms to the file WAVES unless that is empty.
//           -> {"replayed", "evaluations", "cpu_s", "hits"}
//   close                                                -> {} and the server of the design ends
// A command that fails answers {"error": "..."}. Every process ends when stdin is closed.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "processes.h"
#include "simulation.h"

extern "C" void vlog_startup_routines_bootstrap();

namespace {

using namespace llm4cov;
using Command = std::vector<std::string>;

constexpr size_t record_capacity = 256u << 20;  // virtual; pages are taken as they are used
constexpr uint64_t no_limit = ~0ULL;

int command_fd = -1;
int reply_fd = -1;
Record* record = nullptr;
Design* design = nullptr;

// ---- Python, looked up at run time: the harness is built without its headers

template <typename Function>
Function python(const char* name) {
    void* const symbol = dlsym(RTLD_DEFAULT, name);
    if (!symbol) throw std::runtime_error(std::string{"no symbol "} + name + " in libpython");
    return reinterpret_cast<Function>(symbol);
}

bool run_python(const std::string& code) {
    return python<int (*)(const char*)>("PyRun_SimpleString")(code.c_str()) == 0;
}

pid_t fork_python() {
    python<void (*)()>("PyOS_BeforeFork")();
    const pid_t pid = fork();
    python<void (*)()>(pid == 0 ? "PyOS_AfterFork_Child" : "PyOS_AfterFork_Parent")();
    if (pid < 0) throw std::runtime_error(std::string{"fork: "} + std::strerror(errno));
    return pid;
}

std::string literal(const std::string& text) {
    std::string out = "'";
    for (const unsigned char c : text) {
        char hex[5];
        std::snprintf(hex, sizeof hex, "\\x%02x", c);
        out += hex;
    }
    return out + "'";
}

// ---- commands and replies

// Unbuffered: the server of a design reads on where its parent stopped.
bool read_command(Command& command) {
    std::string line;
    char c;
    for (;;) {
        const ssize_t n = read(command_fd, &c, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        if (c == '\n') break;
        line += c;
    }
    command.clear();
    size_t from = 0;
    for (size_t tab; (tab = line.find('\t', from)) != std::string::npos; from = tab + 1) {
        command.push_back(line.substr(from, tab - from));
    }
    command.push_back(line.substr(from));
    return true;
}

void reply(std::string line) {
    line += '\n';
    for (size_t done = 0; done < line.size();) {
        const ssize_t n = write(reply_fd, line.data() + done, line.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) _exit(3);
        done += static_cast<size_t>(n);
    }
}

void reply_error(const std::string& message) {
    std::string escaped;
    for (const unsigned char c : message) {
        if (c == '"' || c == '\\') escaped += '\\';
        escaped += c < 0x20 ? ' ' : static_cast<char>(c);
    }
    reply("{\"error\": \"" + escaped + "\"}");
}

// ---- the commands of a design's server

uint64_t number(const Command& command, size_t at) {
    return at < command.size() ? std::strtoull(command[at].c_str(), nullptr, 10) : 0;
}

// All of it, whatever it says of its size: a testbench must neither see the inputs of another nor keep memory taken.
void reset_record() {
    if (madvise(record, record_capacity, MADV_REMOVE)) throw std::runtime_error("cannot empty the record");
}

// The file of a record: the number of evaluations, then the data.
void write_record(const std::string& path, uint64_t evaluations) {
    std::ofstream file{path, std::ios::binary};
    const uint64_t size = std::min<uint64_t>(record->size, record_capacity - sizeof(Record));
    file.write(reinterpret_cast<const char*>(&evaluations), sizeof evaluations);
    file.write(reinterpret_cast<const char*>(record->data), static_cast<std::streamsize>(size));
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path);
}

uint64_t read_record(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    uint64_t evaluations = 0;
    file.read(reinterpret_cast<char*>(&evaluations), sizeof evaluations);
    if (!file) throw std::runtime_error("cannot read " + path);
    file.read(reinterpret_cast<char*>(record->data), static_cast<std::streamsize>(record_capacity - sizeof(Record)));
    record->size = static_cast<uint64_t>(file.gcount());
    return evaluations;
}

struct ReplayResult {
    bool complete = false;
    Replay replay;
    std::string hits;
    double cpu_s = 0;
};

int replay_pipe = -1;
Replay replay_state;

void send_replay() {
    const std::string hits = design->hits();
    std::string bytes(reinterpret_cast<const char*>(&replay_state), sizeof replay_state);
    bytes += hits;
    for (size_t done = 0; done < bytes.size();) {
        const ssize_t n = write(replay_pipe, bytes.data() + done, bytes.size() - done);
        if (n <= 0) break;
        done += static_cast<size_t>(n);
    }
    _exit(0);
}

// Replays the record in a fresh child of the elaborated model.
ReplayResult replay_record(const llm4cov::Limits& limits, std::chrono::milliseconds wall, int random_seed,
                           const std::string& waves = "") {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC)) throw std::runtime_error("pipe");
    // a pipe that holds the whole answer lets the parent wait first and read afterwards
    const size_t size = sizeof(Replay) + design->hits().size();
    if (size > 65536) fcntl(fds[1], F_SETPIPE_SZ, static_cast<int>(size));
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error(std::string{"fork: "} + std::strerror(errno));
    if (pid == 0) {
        leave_server({command_fd, reply_fd}, static_cast<uint64_t>(wall.count()) / 1000 + 1);
        close(fds[0]);
        redirect("/dev/null", O_WRONLY, 1);
        redirect("/dev/null", O_WRONLY, 2);
        replay_pipe = fds[1];
        set_fatal_handler(send_replay);
        Verilated::threadContextp()->randSeed(random_seed);
        design->replay(*record, record_capacity, limits, replay_state, waves);
        send_replay();
    }
    close(fds[1]);
    const Exit left = wait_for(pid, Clock::now() + wall, command_fd);
    ReplayResult result;
    result.cpu_s = left.cpu_s;
    std::string bytes;
    char buffer[65536];
    for (ssize_t n; (n = read(fds[0], buffer, sizeof buffer)) > 0;) bytes.append(buffer, static_cast<size_t>(n));
    close(fds[0]);
    if (bytes.size() == size) {
        result.complete = true;
        std::memcpy(static_cast<void*>(&result.replay), bytes.data(), sizeof(Replay));
        result.hits = bytes.substr(sizeof(Replay));
    }
    return result;
}

std::string hex(const std::string& bytes) {
    static const char digits[] = "0123456789abcdef";
    std::string out;
    out.reserve(bytes.size() * 2);
    for (const unsigned char c : bytes) {
        out += digits[c >> 4];
        out += digits[c & 15];
    }
    return out;
}

struct Job {
    std::string folder, library, argument;
    int seed;
    llm4cov::Limits limits;
    std::chrono::milliseconds wall;
    uint64_t cpu_s, memory, output;
    Quota quota;
};

[[noreturn]] void run_testbench(const Job& job) {
    leave_server({command_fd, reply_fd}, job.cpu_s);
    if (chdir(job.folder.c_str())) _exit(4);
    redirect("log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 1);
    dup2(1, 2);
    std::setvbuf(stdout, nullptr, _IOLBF, 4096);
    limit_testbench(job.memory, job.output);
    confine_testbench(job.folder);
    if (!job.library.empty()) {
        try {
            design->run_testbench(job.library, *record, record_capacity, job.limits, job.seed);
        } catch (const std::exception& error) {
            std::printf("%%Error: %s\n", error.what());
            record->end = End::fatal;
        }
        std::fflush(nullptr);
        _exit(0);
    }
    if (!run_python("import session; session.prepare(" + literal(job.argument) + ")")) _exit(4);
    design->run(*record, record_capacity, job.limits);
    // Python needs no flush: its streams are unbuffered, and GPI has already shut it down when cocotb ended the run.
    std::fflush(nullptr);
    _exit(0);
}

double units_per_ns() { return std::pow(10.0, -9 - design->precision()); }

void run(const Command& c) {
    Job job;
    job.folder = c.at(1);
    const double time = static_cast<double>(number(c, 2)) * units_per_ns();
    job.limits = {static_cast<uint64_t>(time), number(c, 3)};
    job.wall = std::chrono::milliseconds(number(c, 4));
    job.cpu_s = number(c, 5);
    job.memory = number(c, 6) << 20;
    job.output = number(c, 7);
    job.library = c.at(9);
    job.seed = std::atoi(c.at(10).c_str());
    job.argument = c.at(11);
    job.quota = {job.cpu_s, number(c, 12), job.memory, number(c, 13) << 20, number(c, 14),
                 job.folder.substr(0, job.folder.rfind('/'))};

    reset_record();
    const auto start = Clock::now();
    const pid_t pid = fork_python();
    if (pid == 0) run_testbench(job);
    const Exit left = wait_for(pid, start + job.wall, command_fd, job.quota);
    const double wall_s = std::chrono::duration<double>(Clock::now() - start).count();

    // All processes of the testbench are gone: the record no longer changes.
    const uint64_t evaluations = std::min<uint64_t>(record->evaluations, job.limits.evaluations);
    const uint64_t claimed = record->outputs[record->evaluations % 2];
    if (!c.at(8).empty()) write_record(c.at(8), evaluations);
    const ReplayResult replayed = replay_record({job.limits.time, evaluations}, job.wall + std::chrono::seconds(5), 1);
    const bool same = replayed.complete && replayed.replay.evaluations == evaluations &&
                      replayed.replay.outputs == claimed;
    std::ostringstream out;
    out << "{\"end\": " << static_cast<uint32_t>(record->end) << ", \"excess\": " << static_cast<int>(left.excess)
        << ", \"exit\": " << (WIFEXITED(left.status) ? WEXITSTATUS(left.status) : -1)
        << ", \"signal\": " << (WIFSIGNALED(left.status) ? WTERMSIG(left.status) : 0)
        << ", \"time_ns\": " << static_cast<uint64_t>(static_cast<double>(record->time) / units_per_ns())
        << ", \"evaluations\": " << evaluations << ", \"wall_s\": " << wall_s << ", \"cpu_s\": " << left.cpu_s
        << ", \"errors\": " << record->errors << ", \"replay_cpu_s\": " << replayed.cpu_s << ", \"replayed\": " << (replayed.complete ? "true" : "false")
        << ", \"same\": " << (same ? "true" : "false") << ", \"hits\": \"" << hex(replayed.hits) << "\"}";
    reply(out.str());
}

// Replays a record that `run` wrote, on this build of the same design.
void replay(const Command& c) {
    reset_record();
    const uint64_t evaluations = read_record(c.at(1));
    const ReplayResult result = replay_record({no_limit, evaluations}, std::chrono::minutes(5), 1, c.at(2));
    std::ostringstream out;
    out << "{\"replayed\": " << (result.complete ? "true" : "false")
        << ", \"evaluations\": " << result.replay.evaluations << ", \"cpu_s\": " << result.cpu_s << ", \"hits\": \""
        << hex(result.hits) << "\"}";
    reply(out.str());
}

// A design is a function of its inputs if two replays of one record agree although $random draws other numbers.
void probe(const Command& c) {
    reset_record();
    const uint64_t evaluations = number(c, 1);
    design->randomise(*record, record_capacity, evaluations, 1);
    const auto wall = std::chrono::seconds(5);
    const ReplayResult a = replay_record({no_limit, evaluations}, wall, 1);
    const ReplayResult b = replay_record({no_limit, evaluations}, wall, 2);
    if (!a.complete || !b.complete) {
        reply("{\"deterministic\": null}");
        return;
    }
    const bool same = a.replay.outputs == b.replay.outputs && a.replay.evaluations == b.replay.evaluations &&
                      a.hits == b.hits;
    reply(same ? "{\"deterministic\": true}" : "{\"deterministic\": false}");
}

[[noreturn]] void serve_design(const std::string& model) {
    void* const memory = mmap(nullptr, record_capacity, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    try {
        if (memory == MAP_FAILED) throw std::runtime_error("no memory for the record");
        record = static_cast<Record*>(memory);
        design = new Design{model};
        reply("{}");
    } catch (const std::exception& error) {
        reply_error(error.what());
        _exit(0);
    }
    Command command;
    while (read_command(command) && command[0] != "close") {
        try {
            if (command[0] == "run") {
                run(command);
            } else if (command[0] == "replay") {
                replay(command);
            } else if (command[0] == "probe") {
                probe(command);
            } else if (command[0] == "points") {
                std::ofstream file{command.at(1), std::ios::binary};
                file << design->points();
                file.close();
                if (!file) throw std::runtime_error("cannot write " + command[1]);
                reply("{\"ports\": " + design->ports() + "}");
            } else {
                throw std::runtime_error("unknown command " + command[0]);
            }
        } catch (const std::exception& error) {
            reply_error(error.what());
        }
    }
    if (command[0] == "close") reply("{}");
    _exit(0);
}

}  // namespace

int main(int, char** argv) {
    command_fd = fcntl(0, F_DUPFD_CLOEXEC, 10);
    reply_fd = fcntl(1, F_DUPFD_CLOEXEC, 10);
    dup2(2, 1);
    redirect("/dev/null", O_RDONLY, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);

    Verilated::commandArgs(1, const_cast<const char**>(argv));
    vlog_startup_routines_bootstrap();  // starts Python
    // A testbench shares the user of this process: it must not read or write its memory.
    prctl(PR_SET_DUMPABLE, 0);
    if (!run_python("import session; session.preload()")) return 1;
    reply("{}");

    Command command;
    while (read_command(command)) {
        if (command[0] != "open") {
            reply_error("no design is open");
            continue;
        }
        const pid_t pid = fork_python();
        if (pid == 0) {
            prctl(PR_SET_CHILD_SUBREAPER, 1);
            serve_design(command.at(1));
        }
        int status = 0;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
        kill_descendants();
        if (status) return 3;  // the caller starts another
    }
    return 0;
}
