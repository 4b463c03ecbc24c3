// Starts a program in the sandbox tier `landlock`, or under the limits of a testbench.
//
//   launcher --version
//       prints the version of Landlock's interface, 0 where the kernel has none
//   launcher confine ABI [--uid N] [--read PATH]... [--write PATH]... -- COMMAND...
//       runs COMMAND confined to these files and folders; ABI is the version to use, at most the kernel's
//   launcher limit WALL_MS PROCESSES MEMORY_MB DISK_MB FILES FOLDER -- COMMAND...
//       runs COMMAND as the harness runs a testbench; prints `excess N` (see processes.h) to stdout and leaves with
//       the status of COMMAND, or 1 if it was killed
//
// Both leave with 5 and one line on stderr when they cannot do that.

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "confine.h"
#include "processes.h"

namespace {

using namespace llm4cov;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "sandbox: %s: %s\n", what, std::strerror(errno));
    _exit(5);
}

[[noreturn]] void start(char** command) {
    execvp(command[0], command);
    fail(command[0]);
}

// Another user, who may pass the folders of this one (below a private home, say) but not change or signal what is its.
// Which files that means is Landlock's affair. The group stays: it shares the compiler cache.
void become(uid_t uid) {
    constexpr uint64_t kept = 1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (syscall(SYS_capget, &header, data)) fail("capget");
    const uint32_t ours = data[0].permitted & kept;
    prctl(PR_SET_KEEPCAPS, 1);
    prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP);  // else access() would not see the right
    if (setgroups(0, nullptr) || setresuid(uid, uid, uid)) fail("changing the user");
    data[0] = {ours, ours, ours};
    data[1] = {};
    if (syscall(SYS_capset, &header, data)) fail("capset");
    for (const int capability : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
        if (ours >> capability & 1) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
    }
}

int confine(char** argument) {
    const int abi = std::min(std::atoi(*argument++), landlock_abi());
    std::vector<std::string> readable, writable;
    uid_t uid = 0;
    const pid_t parent = getppid();
    for (; *argument && std::string_view{*argument} != "--"; argument += 2) {
        const std::string_view option{argument[0]};
        if (option == "--uid") uid = static_cast<uid_t>(std::atoi(argument[1]));
        if (option == "--read") readable.emplace_back(argument[1]);
        if (option == "--write") writable.emplace_back(argument[1]);
    }
    if (uid) become(uid);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(5);
    if (!confine_files(abi, true, readable, writable)) fail("Landlock");
    Calls calls;
    // Landlock governs neither sockets that are files nor what else belongs to a file than its contents
    calls.sockets = false;
    calls.times = false;
    calls.limits = false;
    calls.modes = uid != 0;  // another user has only files of its own to change
    calls.truncate_readonly = abi >= 3;
    if (!confine_calls(calls)) fail("seccomp");
    setenv("LLM4COV_SANDBOX", "landlock", 1);
    start(argument + 1);
}

int limit(char** argument) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const auto number = [&] { return std::strtoull(*argument++, nullptr, 10); };
    const std::chrono::milliseconds wall{number()};
    Quota quota;
    quota.processes = number();
    quota.memory = number() << 20;
    quota.disk = number() << 20;
    quota.files = number();
    quota.folder = *argument++;
    const pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) {
        leave_server({}, static_cast<uint64_t>(wall.count()) / 1000 + 1);
        limit_testbench(quota.memory, quota.disk);
        confine_testbench(quota.folder);
        start(argument + 1);
    }
    const Exit left = wait_for(pid, Clock::now() + wall, 0, quota);
    std::printf("excess %d\n", static_cast<int>(left.excess));
    std::fflush(nullptr);
    return WIFEXITED(left.status) ? WEXITSTATUS(left.status) : 1;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view action = count > 1 ? arguments[1] : "";
    if (action == "--version") {
        std::printf("%d\n", landlock_abi());
        return 0;
    }
    if (action == "confine" && count > 4) return confine(arguments + 2);
    if (action == "limit" && count > 9) return limit(arguments + 2);
    std::fprintf(stderr, "usage: see launcher.cpp\n");
    return 5;
}
