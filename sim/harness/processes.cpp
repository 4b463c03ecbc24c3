#include "processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace llm4cov {

namespace {

constexpr uint64_t most_processes = 256;

double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; }

void limit(int resource, rlim_t soft, rlim_t hard) {
    const rlimit value{soft, hard};
    setrlimit(resource, &value);
}

rlim_t address_space() {
    std::ifstream statm{"/proc/self/statm"};
    rlim_t pages = 0;
    statm >> pages;
    return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void kill_descendants() {
    for (int round = 0; round < 1000; ++round) {
        std::ifstream children{"/proc/thread-self/children"};
        bool any = false;
        for (pid_t pid; children >> pid; any = true) kill(pid, SIGKILL);
        while (waitpid(-1, nullptr, WNOHANG) > 0) any = true;
        if (!any) return;
        usleep(200);
    }
}

Exit wait_for(pid_t pid, Clock::time_point deadline, int caller_fd) {
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    pollfd fds[2] = {{pidfd, POLLIN, 0}, {caller_fd, 0, 0}};
    Exit result;
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count() + 1;
        const int n = left > 0 ? poll(fds, 2, static_cast<int>(left)) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) result.deadline = true;
        if (fds[1].revents) {  // the caller is gone
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
            kill_descendants();
            _exit(0);
        }
        break;
    }
    close(pidfd);
    if (result.deadline) {
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
    }
    rusage usage{};
    while (wait4(pid, &result.status, 0, &usage) < 0 && errno == EINTR) {}
    kill(-pid, SIGKILL);
    kill_descendants();
    result.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    return result;
}

void redirect(const char* path, int flags, int fd) {
    const int file = open(path, flags, 0600);
    if (file < 0) _exit(4);
    dup2(file, fd);
    if (file != fd) close(file);
}

void leave_server(std::initializer_list<int> closing, uint64_t cpu_s) {
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int fd : closing) close(fd);
    redirect("/dev/null", O_RDONLY, 0);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_CPU, cpu_s, cpu_s + 1);
}

void limit_testbench(uint64_t memory, uint64_t output) {
    limit(RLIMIT_AS, address_space() + memory, address_space() + memory);
    limit(RLIMIT_FSIZE, output, output);
    limit(RLIMIT_NPROC, most_processes, most_processes);
    signal(SIGXFSZ, SIG_DFL);  // Python ignores it; a run that writes too much must end
    signal(SIGPIPE, SIG_DFL);
}

}  // namespace llm4cov
