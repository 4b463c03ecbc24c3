#include "confine.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace llm4cov {

namespace {

// ---- Landlock: numbers of Documentation/userspace-api/landlock.rst; the headers of a distribution may be older

constexpr long landlock_create_ruleset = 444, landlock_add_rule = 445, landlock_restrict_self = 446;
constexpr uint64_t execute = 1, write_file = 1 << 1, read_file = 1 << 2, read_dir = 1 << 3, make_char = 1 << 6,
                   make_block = 1 << 11, refer = 1 << 13, truncate = 1 << 14, ioctl_dev = 1 << 15;
constexpr uint64_t reading = execute | read_file | read_dir;
constexpr uint64_t of_files = execute | write_file | read_file | truncate | ioctl_dev;

struct Ruleset {
    uint64_t files, tcp, scoped;
};

struct [[gnu::packed]] PathBeneath {
    uint64_t allowed;
    int32_t parent;
};

uint64_t known_rights(int abi) {
    uint64_t rights = (1 << 13) - 1;
    if (abi >= 2) rights |= refer;
    if (abi >= 3) rights |= truncate;
    if (abi >= 5) rights |= ioctl_dev;
    return rights;
}

bool allow(int ruleset, const std::string& path, uint64_t rights) {
    const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT || errno == EACCES || errno == ENOTDIR;
    struct stat found {};
    fstat(fd, &found);
    if (!S_ISDIR(found.st_mode)) rights &= of_files;
    const PathBeneath rule{rights, fd};
    const bool done = !rights || syscall(landlock_add_rule, ruleset, 1, &rule, 0) == 0;
    close(fd);
    return done;
}

// ---- seccomp

#if defined(__x86_64__)
constexpr uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
#error "confine.cpp knows the system calls of x86-64 and AArch64 only"
#endif

constexpr uint32_t number_at = offsetof(seccomp_data, nr);

class Filter {
public:
    Filter() {
        load(offsetof(seccomp_data, arch));
        jump(BPF_JEQ, architecture, 1, 0);
        answer(ENOSYS);
        load(number_at);
#if defined(__x86_64__)
        jump(BPF_JGE, 0x40000000, 0, 1);  // the x32 calls
        answer(ENOSYS);
#endif
    }

    // An `error` of 0 tells the caller that it was done.
    void deny(std::initializer_list<long> calls, int error) {
        for (const long call : calls) {
            jump(BPF_JEQ, static_cast<uint32_t>(call), 0, 1);
            answer(error);
        }
    }

    // Denies the call if the low half of an argument, masked, is (or is not) the value.
    void deny_if(long call, int argument, uint32_t mask, bool equal, uint32_t value, int error) {
        jump(BPF_JEQ, static_cast<uint32_t>(call), 0, 5);
        load(static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument)));
        code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
        jump(BPF_JEQ, value, equal ? 0 : 1, equal ? 1 : 0);
        answer(error);
        load(number_at);
    }

    bool install() {
        code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        // older kernels would switch off speculation for whoever has a filter, which slows simulations down
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0) return true;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    }

private:
    void load(uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
    void answer(int error) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error))); }
    void jump(int test, uint32_t value, int yes, int no) {
        code_.push_back(BPF_JUMP(static_cast<unsigned short>(BPF_JMP | test | BPF_K), value,
                                 static_cast<unsigned char>(yes), static_cast<unsigned char>(no)));
    }

    std::vector<sock_filter> code_;
};

constexpr uint32_t all = 0xffffffff;

// Administration of the machine, other processes' memory, and large parts of the kernel that nothing here uses.
void deny_always(Filter& filter) {
    filter.deny({SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_mount, SYS_umount2,
                 SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_bpf, SYS_keyctl, SYS_add_key, SYS_request_key,
                 SYS_perf_event_open, SYS_userfaultfd, SYS_kexec_load, SYS_init_module, SYS_finit_module,
                 SYS_delete_module, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_acct, SYS_quotactl, SYS_syslog,
                 SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime, SYS_sethostname,
                 SYS_setdomainname, SYS_vhangup, SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_fanotify_init,
                 SYS_migrate_pages, SYS_move_pages},
                EPERM);
#if defined(__x86_64__)
    filter.deny({SYS_iopl, SYS_ioperm, SYS_kexec_file_load, SYS_modify_ldt}, EPERM);
#endif
    // open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, pidfd_getfd, process_madvise, mount_setattr,
    // quotactl_fd, memfd_secret: the same numbers everywhere, but not in every header
    filter.deny({428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 447}, EPERM);
    filter.deny({425, 426, 427}, ENOSYS);  // io_uring
    filter.deny({435}, ENOSYS);            // clone3, whose flags cannot be read here: libraries then take clone
    // memory that belongs to no process, and survives it
    filter.deny({SYS_memfd_create, SYS_shmget, SYS_semget, SYS_msgget, SYS_mq_open}, ENOSYS);
    for (const uint32_t space : {CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET,
                                 CLONE_NEWCGROUP}) {
        filter.deny_if(SYS_clone, 0, space, true, space, EPERM);
    }
    // to be told of somebody's input by a signal of one's choice is to signal somebody
    for (const uint32_t command : {F_SETOWN, F_SETSIG, 15 /* F_SETOWN_EX */}) {
        filter.deny_if(SYS_fcntl, 1, all, true, command, EPERM);
    }
    for (const uint32_t request : {0x8901 /* FIOSETOWN */, 0x8902 /* SIOCSPGRP */}) {
        filter.deny_if(SYS_ioctl, 1, all, true, request, EPERM);
    }
    filter.deny_if(SYS_setpriority, 0, all, true, PRIO_USER, EPERM);
    filter.deny_if(SYS_ioprio_set, 0, all, true, 3 /* IOPRIO_WHO_USER */, EPERM);
}

void deny_modes(Filter& filter) {
    filter.deny({SYS_fchmod, SYS_fchmodat, 452 /* fchmodat2 */, SYS_fchown, SYS_fchownat, 469 /* file_setattr */}, 0);
#if defined(__x86_64__)
    filter.deny({SYS_chmod, SYS_chown, SYS_lchown}, 0);
#endif
}

void deny_times(Filter& filter) {
    filter.deny({SYS_utimensat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr,
                 SYS_fremovexattr, 463 /* setxattrat */, 466 /* removexattrat */},
                0);
#if defined(__x86_64__)
    filter.deny({SYS_utime, SYS_utimes, SYS_futimesat}, 0);
#endif
}

void deny_sockets(Filter& filter, bool named) {
    if (named) {
        filter.deny_if(SYS_socket, 0, all, false, AF_UNIX, EACCES);
    } else {
        // a datagram socket of a pair could still send to any name
        filter.deny({SYS_socket, SYS_connect, SYS_bind, SYS_listen}, EACCES);
        filter.deny_if(SYS_socketpair, 1, 0xf, true, SOCK_DGRAM, EACCES);
    }
}

void deny_truncation(Filter& filter) {
    filter.deny({SYS_truncate}, EACCES);
    filter.deny({437}, ENOSYS);  // openat2, whose flags cannot be read here
    constexpr uint32_t flags = O_TRUNC | O_ACCMODE;
    filter.deny_if(SYS_openat, 2, flags, true, O_TRUNC | O_RDONLY, EACCES);
#if defined(__x86_64__)
    filter.deny_if(SYS_open, 1, flags, true, O_TRUNC | O_RDONLY, EACCES);
#endif
}

void protect(Filter& filter, pid_t process) {
    const auto pid = static_cast<uint32_t>(process);
    constexpr int pidfd_open = 434;
    for (const int call : {SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_prlimit64,
                           SYS_sched_setaffinity, SYS_sched_setparam, SYS_sched_setscheduler, SYS_sched_setattr,
                           pidfd_open}) {
        filter.deny_if(call, 0, all, true, pid, EPERM);
    }
    filter.deny_if(SYS_kill, 0, all, true, ~pid + 1, EPERM);  // a group
    filter.deny_if(SYS_setpriority, 1, all, true, pid, EPERM);
    filter.deny_if(SYS_ioprio_set, 1, all, true, pid, EPERM);
}

}  // namespace

int landlock_abi() {
    const long version = syscall(landlock_create_ruleset, nullptr, 0, 1);
    return version < 0 ? 0 : static_cast<int>(version);
}

bool confine_files(int abi, bool limit_reading, const std::vector<std::string>& readable,
                   const std::vector<std::string>& writable) {
    const uint64_t rights = known_rights(abi) & ~(limit_reading ? 0 : reading);
    const Ruleset rules{rights, abi >= 4 ? 3u : 0u, abi >= 6 ? 3u : 0u};
    const size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    const int ruleset = static_cast<int>(syscall(landlock_create_ruleset, &rules, size, 0));
    if (ruleset < 0) return false;
    bool done = true;
    if (limit_reading) {
        for (const std::string& path : readable) done = done && allow(ruleset, path, reading);
    }
    for (const std::string& path : writable) done = done && allow(ruleset, path, rights & ~(make_char | make_block));
    done = done && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(landlock_restrict_self, ruleset, 0) == 0;
    close(ruleset);
    return done;
}

bool confine_calls(const Calls& calls) {
    Filter filter;
    deny_always(filter);
    deny_sockets(filter, calls.sockets);
    if (!calls.modes) deny_modes(filter);
    if (!calls.times) deny_times(filter);
    if (!calls.locks) filter.deny({SYS_flock}, 0);
    if (!calls.limits) filter.deny_if(SYS_prlimit64, 0, all, false, 0, EPERM);
    if (!calls.truncate_readonly) deny_truncation(filter);
    for (const pid_t process : calls.untouchable) protect(filter, process);
    if (!calls.untouchable.empty()) {
        filter.deny_if(SYS_kill, 0, all, true, all, EPERM);               // everybody
        filter.deny({424}, EPERM);  // pidfd_send_signal: a folder of /proc serves it as well as pidfd_open's answer
        filter.deny({SYS_sendmsg, SYS_sendmmsg}, EPERM);  // files on their way through a socket are nobody's to count
        filter.deny_if(SYS_prctl, 0, all, true, PR_SET_DUMPABLE, EPERM);  // it hides open files from who counts them
    }
    return filter.install();
}

}  // namespace llm4cov
