// What a process gives up before it runs code that nobody vouches for: access to files (Landlock) and system calls
// (seccomp). All of it holds for everything that the process starts, and none of it can be taken back.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace llm4cov {

// The version of Landlock's interface, 0 where the kernel has none.
int landlock_abi();

// Limits access to files to these files and folders, with all below them; those that do not exist are left out.
// `limit_reading` false: reading stays as it was. From version 4 on no TCP, from 6 on no signals and abstract sockets
// to processes that were not confined with this one. Returns false, with errno set, when it could not be done.
bool confine_files(int abi, bool limit_reading, const std::vector<std::string>& readable,
                   const std::vector<std::string>& writable);

struct Calls {
    bool sockets = true;             // of the family AF_UNIX, by name; false: pairs only
    bool modes = true;               // false: changing modes and owners does nothing
    bool times = true;               // false: changing times and extended attributes does nothing
    bool locks = true;               // false: flock does nothing
    bool limits = true;              // false: of this process only
    bool truncate_readonly = true;   // false: none by name, or by opening for reading, which Landlock 3 governs
    std::vector<pid_t> untouchable;  // processes (and their groups) that must not be signalled, limited or slowed
};

// Refuses the system calls that a simulation or a compiler has no use for, and those that `calls` names.
bool confine_calls(const Calls& calls);

}  // namespace llm4cov
