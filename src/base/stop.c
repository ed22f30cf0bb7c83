/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.c - turning SIGTERM and SIGINT into a flag and a readable eventfd.
 *
 * The handler only stores the flag and writes to the eventfd, both async-signal-safe. The eventfd
 * is never read, so every thread that waits sees it. SA_RESTART spares libraries the EINTR; poll(2)
 * is never restarted, so waiting still ends. Any thread may ask and wait; install and reset belong
 * to main.
 */
#include "base/stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static _Atomic int stop_signal;
static _Atomic int stop_fd = -1;
static _Atomic int hangup_fd = -1;

static void on_signal(int sig)
{
    int saved = errno;
    int none = 0;
    if (!atomic_compare_exchange_strong(&stop_signal, &none, sig) && sig == SIGINT)
        _exit(130);
    uint64_t one = 1;
    if (write(atomic_load(&stop_fd), &one, sizeof(one)) < 0)
        errno = 0; /* the counter is full: readable already */
    errno = saved;
}

static void handle(int sig, void (*handler)(int))
{
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (sigemptyset(&sa.sa_mask) != 0 || sigaction(sig, &sa, NULL) != 0)
        abort();
}

void kn_stop_install(void)
{
    if (atomic_load(&stop_fd) < 0) {
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0)
            abort();
        atomic_store(&stop_fd, fd);
    }
    handle(SIGTERM, on_signal);
    handle(SIGINT, on_signal);
    handle(SIGPIPE, SIG_IGN);
}

bool kn_stop_requested(void)
{
    return atomic_load(&stop_signal) != 0;
}

int kn_stop_signal(void)
{
    return atomic_load(&stop_signal);
}

int kn_stop_fd(void)
{
    return atomic_load(&stop_fd);
}

void kn_stop_reset(void)
{
    uint64_t count;
    int fd = atomic_load(&stop_fd);
    if (fd >= 0 && read(fd, &count, sizeof(count)) < 0)
        errno = 0; /* nothing to drain */
    atomic_store(&stop_signal, 0);
}

bool kn_stop_wait(int64_t microseconds)
{
    int64_t end;
    if (__builtin_add_overflow(kn_clock_mono_us(), microseconds, &end))
        end = INT64_MAX;
    while (!kn_stop_requested()) {
        int64_t left = end - kn_clock_mono_us();
        if (left <= 0)
            return false;
        struct timespec ts = {.tv_sec = left / 1000000, .tv_nsec = left % 1000000 * 1000};
        struct pollfd fd = {.fd = atomic_load(&stop_fd), .events = POLLIN};
        (void)ppoll(&fd, 1, &ts, NULL); /* a negative fd is skipped; EINTR goes round */
    }
    return true;
}

static void on_hangup(int sig)
{
    const uint64_t one = 1;
    int saved = errno;
    (void)sig;
    if (write(atomic_load(&hangup_fd), &one, sizeof(one)) < 0)
        errno = 0; /* likewise */
    errno = saved;
}

void kn_hangup_install(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        abort();
    atomic_store(&hangup_fd, fd);
    handle(SIGHUP, on_hangup);
}

int kn_hangup_fd(void)
{
    return atomic_load(&hangup_fd);
}

bool kn_hangup_take(void)
{
    uint64_t count;
    int fd = atomic_load(&hangup_fd);
    return fd >= 0 && read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count);
}
