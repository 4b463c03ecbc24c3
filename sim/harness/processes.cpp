#include "processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "confine.h"

namespace llm4cov {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds look_every{50};
constexpr uint64_t threads_per_process = 16;
// Looking finds too many processes; this only slows down those that multiply in between. It counts all threads of a
// user, so it must not be reached by what a desktop runs.
constexpr uint64_t most_of_user = 4096;
constexpr uint64_t most_open_files = 256;

double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; }

double cpu_of_children() {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

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

std::string sandbox() {
    const char* const name = std::getenv("LLM4COV_SANDBOX");
    return name ? name : "plain";
}

// Found out before anything is forked. Alone: all process ids are below this one, and /tmp is nobody else's.
const bool confined = sandbox() != "plain";
const bool alone = getpid() == 1 && sandbox() == "bubblewrap";
const pid_t first_process = getpid();
const pid_t first_group = getpgrp();

// ---- private folders

const char* const private_folders[] = {"/tmp", "/dev/shm"};

struct Used {
    uint64_t bytes = 0, files = 0;
};

Used used_privately() {
    Used used;
    for (const char* const folder : private_folders) {
        struct statfs about {};
        if (!alone || statfs(folder, &about) || about.f_type != TMPFS_MAGIC) continue;
        used.bytes += (about.f_blocks - about.f_bfree) * static_cast<uint64_t>(about.f_bsize);
        used.files += about.f_files - about.f_ffree;
    }
    return used;
}

template <typename Visit>
void walk(const char* folder, Visit visit) {
    char* const paths[] = {const_cast<char*>(folder), nullptr};
    FTS* const tree = fts_open(paths, FTS_PHYSICAL | FTS_XDEV, nullptr);
    if (!tree) return;
    while (FTSENT* const entry = fts_read(tree)) {
        if (!visit(*entry)) break;
    }
    fts_close(tree);
}

void empty_private_folders(const Used& before) {
    const Used after = used_privately();
    if (!alone || (after.files <= before.files && after.bytes <= before.bytes)) return;
    for (const char* const folder : private_folders) {
        walk(folder, [](const FTSENT& entry) {
            if (entry.fts_level == 0) return true;
            if (entry.fts_info == FTS_D) {
                chmod(entry.fts_accpath, 0700);
            } else if (entry.fts_info == FTS_DP || entry.fts_info == FTS_DNR) {
                rmdir(entry.fts_accpath);  // where others are mounted it stays
            } else {
                unlink(entry.fts_accpath);
            }
            return true;
        });
    }
}

// ---- what a child and its descendants use

std::vector<pid_t> children_of(const std::string& task) {
    std::ifstream file{"/proc/" + task + "/children"};
    std::vector<pid_t> children;
    for (pid_t pid; file >> pid;) children.push_back(pid);
    return children;
}

template <typename Visit>
void each_entry(const std::string& folder, Visit visit) {
    DIR* const open = opendir(folder.c_str());
    if (!open) return;
    while (const dirent* const entry = readdir(open)) {
        if (entry->d_name[0] != '.') visit(dirfd(open), entry->d_name);
    }
    closedir(open);
}

// Stops when it has found more than `enough`: where many multiply, this process hardly gets time to count.
std::vector<pid_t> descendants(uint64_t enough) {
    std::vector<pid_t> found = children_of("thread-self");
    for (size_t i = 0; i < found.size() && found.size() <= enough; ++i) {
        const std::string process = std::to_string(found[i]);
        each_entry("/proc/" + process + "/task", [&](int, const char* task) {
            for (const pid_t child : children_of(process + "/task/" + task)) found.push_back(child);
        });
    }
    return found;
}

// A field of /proc/PID/status or smaps_rollup, in its unit; 0 where there is none.
uint64_t field(const std::string& text, const char* name) {
    const size_t at = text.find(std::string{"\n"} + name + ":");
    return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + std::strlen(name) + 2, nullptr, 10);
}

std::string contents(const std::string& path) {
    std::ifstream file{path};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

double cpu_of(pid_t pid) {
    const std::string text = contents("/proc/" + std::to_string(pid) + "/stat");
    std::istringstream fields{text.substr(text.rfind(')') + 1)};
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    uint64_t ticks = 0, sum = 0;
    for (int i = 0; i < 4 && fields >> ticks; ++i) sum += ticks;  // utime, stime, and those of children
    return static_cast<double>(sum) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

uint64_t private_kb(const std::string& status) { return field(status, "RssAnon") + field(status, "RssShmem"); }

// Looks at a child and all its descendants.
class Observer {
public:
    explicit Observer(const Quota& quota) : quota_{quota}, before_{used_privately()} {}

    const Used& before() const { return before_; }

    Excess look() {
        const std::vector<pid_t> pids = count();
        if (multiplied_) return Excess::processes;
        uint64_t threads = 0, kb = 0;
        double cpu = 0;
        for (const pid_t pid : pids) {
            if (multiply()) return Excess::processes;
            const std::string status = contents("/proc/" + std::to_string(pid) + "/status");
            threads += field(status, "Threads");
            kb += private_kb(status);
            if (quota_.cpu_s) cpu += cpu_of(pid);
        }
        if (quota_.processes && threads > quota_.processes * threads_per_process) return Excess::processes;
        if (quota_.cpu_s && cpu > static_cast<double>(quota_.cpu_s)) return Excess::cpu;
        if (quota_.memory && kb > allowed_kb() && proportional_kb(pids) > allowed_kb()) return Excess::memory;
        if (multiplied_) return Excess::processes;
        return quota_.disk || quota_.files ? look_at_files(pids) : Excess::none;
    }

private:
    std::vector<pid_t> count() {
        const uint64_t most = quota_.processes ? quota_.processes : UINT64_MAX;
        std::vector<pid_t> pids = descendants(most);
        counted_ = Clock::now();
        multiplied_ = pids.size() > most;
        return pids;
    }

    // Counts again after a while: what is read of a process waits for its memory map, which forking keeps locked.
    bool multiply() {
        if (Clock::now() - counted_ > milliseconds{10}) count();
        return multiplied_;
    }

    static constexpr int patience = 20;  // a child that was just forked hides until it has confined itself

    uint64_t allowed_kb() {
        if (!own_kb_) own_kb_ = private_kb(contents("/proc/self/status"));
        return own_kb_ + quota_.memory / 1024;
    }

    // Forked processes share most pages: count each page once. This takes the kernel long, so only in doubt.
    uint64_t proportional_kb(const std::vector<pid_t>& pids) {
        uint64_t sum = 0;
        for (const pid_t pid : pids) {
            if (multiply()) return 0;
            const std::string process = "/proc/" + std::to_string(pid);
            const std::string rollup = contents(process + "/smaps_rollup");
            sum += rollup.empty() ? private_kb(contents(process + "/status"))
                                  : field(rollup, "Pss_Anon") + field(rollup, "Pss_Shmem");
        }
        return sum;
    }

    Excess look_at_files(const std::vector<pid_t>& pids) {
        Used used = used_privately();
        used.bytes -= std::min(used.bytes, before_.bytes);
        used.files -= std::min(used.files, before_.files);
        const auto excess = [&] {
            if (quota_.files && used.files > quota_.files) return Excess::files;
            return quota_.disk && used.bytes > quota_.disk ? Excess::disk : Excess::none;
        };
        bool hidden = false;
        if (!quota_.folder.empty()) {
            walk(quota_.folder.c_str(), [&](const FTSENT& entry) {
                if (entry.fts_level == 0) device_ = entry.fts_statp->st_dev;
                if (entry.fts_info == FTS_DNR) hidden = true;
                if (entry.fts_info == FTS_DP || entry.fts_info == FTS_DNR || entry.fts_info == FTS_NS) return true;
                ++used.files;
                used.bytes += static_cast<uint64_t>(entry.fts_statp->st_blocks) * 512;
                return excess() == Excess::none;
            });
        }
        std::set<std::pair<dev_t, ino_t>> seen;
        for (const pid_t pid : pids) {
            if (multiply()) return Excess::processes;
            hidden = !add_deleted("/proc/" + std::to_string(pid), seen, used) || hidden;
        }
        hidden_ = hidden ? hidden_ + 1 : 0;
        return excess() == Excess::none && hidden_ > patience ? Excess::hiding : excess();
    }

    // Files that have no name any more but are open or mapped; false where that cannot be seen.
    bool add_deleted(const std::string& process, std::set<std::pair<dev_t, ino_t>>& seen, Used& used) const {
        bool seen_all = access((process + "/fd").c_str(), R_OK | X_OK) == 0 || errno == ENOENT;
        each_entry(process + "/fd", [&](int folder, const char* name) {
            struct stat about {};
            if (fstatat(folder, name, &about, 0)) {
                seen_all = seen_all && errno != EACCES && errno != EPERM;
                return;
            }
            if (!S_ISREG(about.st_mode) || about.st_nlink) return;
            if (seen.emplace(about.st_dev, about.st_ino).second) {
                used.bytes += static_cast<uint64_t>(about.st_blocks) * 512;
            }
        });
        std::ifstream maps{process + "/maps"};
        for (std::string line; std::getline(maps, line);) {
            if (!line.ends_with(" (deleted)")) continue;
            unsigned long from = 0, to = 0, inode = 0;
            unsigned major = 0, minor = 0;
            if (std::sscanf(line.c_str(), "%lx-%lx %*s %*x %x:%x %lu", &from, &to, &major, &minor, &inode) != 5) continue;
            const dev_t device = makedev(major, minor);
            if (device == device_ && seen.emplace(device, inode).second) used.bytes += to - from;
        }
        return seen_all;
    }

    const Quota& quota_;
    Used before_;
    uint64_t own_kb_ = 0;
    dev_t device_ = 0;
    int hidden_ = 0;
    Clock::time_point counted_;
    bool multiplied_ = false;
};

}  // namespace

void kill_descendants() {
    const auto patience = Clock::now() + std::chrono::seconds{30};
    for (useconds_t pause = 100; Clock::now() < patience; pause = std::min<useconds_t>(2 * pause, 10'000)) {
        if (alone) kill(-1, SIGKILL);  // at once: nobody can fork faster
        bool any = false;
        for (const pid_t pid : children_of("thread-self")) {
            kill(pid, SIGKILL);
            any = true;
        }
        while (waitpid(-1, nullptr, WNOHANG) > 0) any = true;
        if (!any) return;
        usleep(pause);
    }
}

Exit wait_for(pid_t pid, Clock::time_point deadline, int caller_fd, const Quota& quota) {
    const double cpu_before = cpu_of_children();
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    pollfd fds[2] = {{pidfd, POLLIN, 0}, {caller_fd, 0, 0}};
    Observer observer{quota};
    Exit result;
    while (result.excess == Excess::none) {
        const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()) + milliseconds{1};
        if (left.count() <= 0) {
            result.excess = Excess::wall;
            break;
        }
        const int n = poll(fds, 2, static_cast<int>(std::min(left, look_every).count()));
        if (n < 0 && errno == EINTR) continue;
        if (fds[1].revents) {  // the caller is gone
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
            kill_descendants();
            _exit(0);
        }
        if (n != 0) break;
        result.excess = observer.look();
    }
    close(pidfd);
    if (result.excess != Excess::none) {
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
    }
    while (waitpid(pid, &result.status, 0) < 0 && errno == EINTR) {}
    kill(-pid, SIGKILL);
    kill_descendants();
    empty_private_folders(observer.before());
    result.cpu_s = cpu_of_children() - cpu_before;
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
    limit(RLIMIT_NPROC, most_of_user, most_of_user);
    limit(RLIMIT_NOFILE, most_open_files, most_open_files);
    signal(SIGXFSZ, SIG_DFL);  // Python ignores it; a run that writes too much must end
    signal(SIGPIPE, SIG_DFL);
}

void confine_testbench(const std::string& folder) {
    prctl(PR_SET_DUMPABLE, 1);
    if (!confined) return;
    std::vector<std::string> writable{folder, "/dev"};
    if (alone) writable.insert(writable.end(), std::begin(private_folders), std::end(private_folders));
    const int abi = landlock_abi();
    if (abi && !confine_files(abi, false, {}, writable)) _exit(4);
    Calls calls;
    calls.locks = false;
    calls.untouchable = {getppid(), first_process, first_group};
    if (!confine_calls(calls)) _exit(4);
}

}  // namespace llm4cov
