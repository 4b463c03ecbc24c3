// What the runtime calls in place of its own functions and does not declare: where its messages go (VL_PRINTF), and what
// happens at $stop and $error (VL_USER_STOP_MAYBE).
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>

extern "C" int llm4cov_print(const char* format, ...);
void vl_stop_maybe(const char* file, int line, const char* hierarchy, bool maybe);
