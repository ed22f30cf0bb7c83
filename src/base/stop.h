/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * stop.h - SIGTERM and SIGINT as a flag and a file descriptor.
 *
 * kn_stop_install() once in main: the first signal asks for a stop (work in flight is finished), a
 * second SIGINT ends the process at once with 130. SIGPIPE is ignored. Waiting is interruptible.
 * SIGHUP is for those who ask for it: kn_hangup_install().
 */
#include <stdbool.h>
#include <stdint.h>

void kn_stop_install(void);
bool kn_stop_requested(void);
int kn_stop_signal(void); /* 0, SIGINT or SIGTERM */
/** Readable once a stop is asked for (poll it, never read it); -1 before kn_stop_install. */
int kn_stop_fd(void);
void kn_stop_reset(void); /* tests */
/** Sleep up to microseconds, or until a stop is asked for; true = asked. */
bool kn_stop_wait(int64_t microseconds);

/** SIGHUP makes kn_hangup_fd() readable instead of ending the process. */
void kn_hangup_install(void);
int kn_hangup_fd(void); /* -1 before kn_hangup_install */
/** True once for any number of signals since the last call. */
bool kn_hangup_take(void);
