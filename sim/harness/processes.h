// Children of the harness: what they may use, how long they are waited for, and that nothing of them stays.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace llm4cov {

using Clock = std::chrono::steady_clock;

// Which limit a child went over; the order is that of `Excess` in sim/engine.py.
enum class Excess { none, wall, cpu, processes, memory, disk, files, hiding };

// What a child and all that it started may use together; 0 is no limit. It is looked at every 50 ms.
struct Quota {
    uint64_t cpu_s = 0;
    uint64_t processes = 0;  // and 16 threads for each of them
    uint64_t memory = 0;     // bytes, beyond what this process has
    uint64_t disk = 0;       // bytes in its folder, in files that it deleted and still uses, and in private /tmp
    uint64_t files = 0;      // files and folders there
    std::string folder;
};

struct Exit {
    int status = 0;                // as waitpid has it
    Excess excess = Excess::none;  // why it was killed
    double cpu_s = 0;              // of all its processes
};

// Waits for a child, at most until the deadline and while it keeps its quota, then kills it and all that it started,
// and empties private folders. The process ends if `caller_fd` is closed on the other side: then the caller is gone.
Exit wait_for(pid_t pid, Clock::time_point deadline, int caller_fd, const Quota& quota = {});

// Kills every process that descends from this one: as a subreaper it inherits those that left their group or session.
void kill_descendants();

// For a new child: no way back to the server (`closing` are its pipes), and an end when the server ends.
void leave_server(std::initializer_list<int> closing, uint64_t cpu_s);

// Puts a file in the place of a descriptor; the process leaves with 4 when it cannot be opened.
void redirect(const char* path, int flags, int fd);

// For the child that runs a testbench: limits that each of its processes has, in bytes.
void limit_testbench(uint64_t memory, uint64_t output);

// For the child that runs a testbench, last: it can change files in its folder only, and cannot touch its server.
// The process leaves with 4 when that cannot be done.
void confine_testbench(const std::string& folder);

}  // namespace llm4cov
