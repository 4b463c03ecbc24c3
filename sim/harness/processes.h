// Children of the harness: what they may use, how long they are waited for, and that nothing of them stays.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>

namespace llm4cov {

using Clock = std::chrono::steady_clock;

struct Exit {
    int status = 0;         // as waitpid has it
    bool deadline = false;  // it was killed because its time was over
    double cpu_s = 0;
};

// Waits for a child, at most until the deadline, then kills it and all that it started. The process ends if
// `caller_fd` is closed on the other side: then the caller is gone.
Exit wait_for(pid_t pid, Clock::time_point deadline, int caller_fd);

// Kills every process that descends from this one: as a subreaper it inherits those that left their group or session.
void kill_descendants();

// For a new child: no way back to the server (`closing` are its pipes), and an end when the server ends.
void leave_server(std::initializer_list<int> closing, uint64_t cpu_s);

// Puts a file in the place of a descriptor; the process leaves with 4 when it cannot be opened.
void redirect(const char* path, int flags, int fd);

// For the child that runs a testbench: limits that each of its processes has, in bytes.
void limit_testbench(uint64_t memory, uint64_t output);

}  // namespace llm4cov
