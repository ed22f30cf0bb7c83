/* SPDX-License-Identifier: Apache-2.0 */
/* journal_lock.c - see journal_lock.h; the text is "pid since-ms host". */
#include "cdc/journal_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"

static KnCode lock_path(const char *journal, char *out, size_t size, KnErr *err)
{
    int n = snprintf(out, size, "%s.lock", journal);
    if (n < 0 || (size_t)n >= size)
        return kn_err_set(err, KN_E_INVAL, "state file: the path is too long");
    return KN_OK;
}

static void read_holder(int fd, KnJournalHolder *holder)
{
    char text[192] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n > 0)
        (void)sscanf(text, "%" SCNd64 " %" SCNd64 " %127s", &holder->pid, &holder->since_ms,
                     holder->host);
}

static KnCode busy(const char *journal, int fd, KnErr *err)
{
    KnJournalHolder holder = {0};
    char since[32];
    read_holder(fd, &holder);
    return kn_err_set(err, KN_E_BUSY,
                      "state %s is held by process %" PRId64
                      " on %s since %s: two deliveries must not "
                      "share a state file; stop that one or use another --state",
                      journal, holder.pid, holder.host[0] ? holder.host : "an unknown host",
                      kn_clock_format_ms(holder.since_ms, since));
}

static void write_holder(int fd)
{
    char host[64] = "", text[192];
    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0')
        (void)snprintf(host, sizeof(host), "unknown");
    int n = snprintf(text, sizeof(text), "%" PRId64 " %" PRId64 " %s\n", (int64_t)getpid(),
                     kn_clock_wall_ms(), host);
    /* The text only serves messages: the lock holds without it. */
    if (n > 0 && ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n)
        (void)fdatasync(fd);
}

KnCode kn_journal_lock_take(const char *journal, int *ret_fd, KnErr *err)
{
    char path[4096];
    KN_TRY(lock_path(journal, path, sizeof(path), err));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return kn_err_set(err, KN_E_IO, "state lock %s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        KnCode rc = errno == EWOULDBLOCK
                        ? busy(journal, fd, err)
                        : kn_err_set(err, KN_E_IO, "state lock %s: %s", path, strerror(errno));
        (void)close(fd);
        return rc;
    }
    write_holder(fd);
    *ret_fd = fd;
    return KN_OK;
}

KnCode kn_journal_holder(const char *journal, KnJournalHolder *ret, KnErr *err)
{
    char path[4096];
    KnJournalHolder holder = {0};
    KN_TRY(lock_path(journal, path, sizeof(path), err));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return kn_err_set(err, KN_E_IO, "state lock %s: %s", path, strerror(errno));
    if (fd >= 0) {
        holder.held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (holder.held)
            read_holder(fd, &holder);
        (void)close(fd);
    }
    *ret = holder;
    return KN_OK;
}
