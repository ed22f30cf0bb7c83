/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - one event, one line, one write(2) to stderr.
 *
 * Level and format are atomics, so that asking costs a load. The debug areas change rarely
 * (start, tests) and sit behind a read-write lock, taken only when some area is wanted at all. A
 * line is built in a buffer of its own thread; values beyond 8 KiB are cut, so that a line always
 * fits. Lines shorter than PIPE_BUF do not mix with those of other processes.
 */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

enum { MAX_AREAS = 256, MAX_VALUE = 8192, MAX_LINE = 1 << 20 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static _Atomic int log_level = KN_LOG_INFO;
static _Atomic int log_format = KN_LOG_TEXT;
static atomic_bool any_area;
static pthread_rwlock_t areas_lock = PTHREAD_RWLOCK_INITIALIZER;
static char wanted_areas[MAX_AREAS]; /* ",cdc,scan," */

void kn_log_set(KnLogLevel level, KnLogFormat format)
{
    atomic_store(&log_level, (int)level);
    atomic_store(&log_format, (int)format);
}

void kn_log_set_debug(const char *areas)
{
    size_t len = areas ? strlen(areas) : 0;
    if (len > MAX_AREAS - 3)
        len = MAX_AREAS - 3;
    (void)pthread_rwlock_wrlock(&areas_lock);
    memset(wanted_areas, 0, sizeof(wanted_areas));
    wanted_areas[0] = ',';
    if (len)
        memcpy(wanted_areas + 1, areas, len);
    wanted_areas[len + 1] = ',';
    (void)pthread_rwlock_unlock(&areas_lock);
    atomic_store(&any_area, len > 0);
}

/* The caller holds the lock. */
static bool area_listed(KnStr area)
{
    for (const char *p = wanted_areas + 1; *p; p += strcspn(p, ",") + 1) {
        KnStr one = {p, strcspn(p, ",")};
        if (kn_str_eq(one, area) || kn_str_eq(one, KN_STR_LIT("all")))
            return true;
    }
    return false;
}

bool kn_log_wants(KnLogLevel level, const char *area)
{
    if ((int)level <= atomic_load_explicit(&log_level, memory_order_relaxed))
        return true;
    if (level != KN_LOG_DEBUG || !atomic_load_explicit(&any_area, memory_order_relaxed))
        return false;
    (void)pthread_rwlock_rdlock(&areas_lock);
    bool listed = area_listed(kn_str(area));
    (void)pthread_rwlock_unlock(&areas_lock);
    return listed;
}

KnCode kn_log_level_parse(const char *name, KnLogLevel *ret, KnErr *err)
{
    for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); ++i)
        if (strcmp(name, level_names[i]) == 0) {
            *ret = (KnLogLevel)i;
            return KN_OK;
        }
    return kn_err_set(err, KN_E_INVAL,
                      "log level '%.40s' is not known: give error, warn, info or debug", name);
}

static KnStr value_cut(const char *text)
{
    return (KnStr){text, strnlen(text, MAX_VALUE)};
}

/* Bare when nobody could misread it, else as a JSON string. */
static bool value_is_plain(KnStr s)
{
    for (size_t i = 0; i < s.len; ++i) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f)
            return false;
    }
    return s.len > 0 && kn_str_is_utf8(s);
}

static void line_text(KnBuf *line, const char *head[3], const KnLogField *fields, int n_fields)
{
    char now[32];
    kn_buf_printf(line, "%.12s %s %s %s", kn_clock_format_ms(kn_clock_wall_ms(), now) + 11, head[0],
                  head[1], head[2]);
    for (int i = 0; i < n_fields; ++i) {
        kn_buf_printf(line, " %s=", fields[i].key);
        if (!fields[i].text) {
            kn_buf_printf(line, "%lld", (long long)fields[i].number);
            continue;
        }
        KnStr value = value_cut(fields[i].text);
        if (value_is_plain(value))
            kn_buf_str(line, value);
        else
            kn_json_quote(line, value);
    }
}

static void line_json(KnBuf *line, const char *head[3], const KnLogField *fields, int n_fields)
{
    char now[32];
    static const char *const keys[] = {"level", "area", "event"};
    kn_buf_printf(line, "{\"time\":\"%s\"", kn_clock_format_ms(kn_clock_wall_ms(), now));
    for (int i = 0; i < 3; ++i) {
        kn_buf_printf(line, ",\"%s\":", keys[i]);
        kn_json_quote(line, value_cut(head[i]));
    }
    for (int i = 0; i < n_fields; ++i) {
        kn_buf_char(line, ',');
        kn_json_quote(line, value_cut(fields[i].key));
        kn_buf_char(line, ':');
        if (fields[i].text)
            kn_json_quote(line, value_cut(fields[i].text));
        else
            kn_buf_printf(line, "%lld", (long long)fields[i].number);
    }
    kn_buf_char(line, '}');
}

static void line_write(const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(STDERR_FILENO, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* nowhere left to complain */
        bytes += n;
        len -= (size_t)n;
    }
}

void kn_log_write(KnLogLevel level, const char *area, const char *event, const KnLogField *fields,
                  int n_fields)
{
    assert(level >= KN_LOG_ERROR && level <= KN_LOG_DEBUG && area && event);
    int saved = errno; /* logging must not change what the caller is about to report */
    const char *head[3] = {level_names[level], area, event};
    KN_BUF_AUTO line;
    kn_buf_init(&line, MAX_LINE);
    if (atomic_load(&log_format) == KN_LOG_JSON)
        line_json(&line, head, fields, n_fields);
    else
        line_text(&line, head, fields, n_fields);
    kn_buf_char(&line, '\n');
    line_write(line.data, line.len);
    errno = saved;
}
