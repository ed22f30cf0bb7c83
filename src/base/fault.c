/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - named points that a test arms through the environment.
 *
 * The environment is read at the first point passed. A malformed KNUT_FAULT makes every point fail
 * with KN_E_INVAL, because a fault that silently does not happen would let a test pass for nothing.
 * Rules and counters are guarded by one mutex; unarmed, a point costs one atomic load.
 */
#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

enum { MAX_RULES = 16, MAX_NAME = 64, MAX_TRACE = 1024, EXIT_STATUS = 70 };
enum State { UNREAD, OFF, ARMED };
typedef enum Action { ACT_KILL, ACT_EXIT, ACT_FAIL, ACT_STOP, ACT_PAUSE, ACT_MAX_ } Action;

typedef struct Rule {
    char name[MAX_NAME];
    int64_t nth;
    int64_t passed;
    Action action;
} Rule;

static const char *const action_names[ACT_MAX_] = {"kill", "exit", "fail", "stop", "pause"};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int state = UNREAD;
static Rule rules[MAX_RULES];
static int n_rules;
static char trace_file[MAX_TRACE];
static KnErr broken; /* code != KN_OK: what is wrong with KNUT_FAULT */

static bool action_parse(KnStr text, Action *ret)
{
    for (int i = 0; i < ACT_MAX_; ++i)
        if (kn_str_eq(text, kn_str(action_names[i]))) {
            *ret = (Action)i;
            return true;
        }
    return false;
}

/* One "name:n:action". */
static KnCode rule_parse(KnStr text, Rule *ret, KnErr *err)
{
    Rule rule = {0};
    const char *end = text.ptr + text.len;
    const char *first = memchr(text.ptr, ':', text.len);
    const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
    size_t name_len = first ? (size_t)(first - text.ptr) : 0;
    if (!second || name_len == 0 || name_len >= MAX_NAME ||
        !kn_str_to_i64((KnStr){first + 1, (size_t)(second - first - 1)}, &rule.nth) ||
        rule.nth < 1 ||
        !action_parse((KnStr){second + 1, (size_t)(end - second - 1)}, &rule.action))
        return kn_err_set(err, KN_E_INVAL,
                          "KNUT_FAULT: '" KN_STR_FMT "' is not name:n:action with n from 1 and "
                          "action kill, exit, fail, stop or pause",
                          KN_STR_ARG(text));
    memcpy(rule.name, text.ptr, name_len);
    *ret = rule;
    return KN_OK;
}

static KnCode rules_parse(const char *spec, Rule out[MAX_RULES], int *ret_n, KnErr *err)
{
    int n = 0;
    for (const char *p = spec; *p;) {
        size_t len = strcspn(p, ",");
        if (n == MAX_RULES)
            return kn_err_set(err, KN_E_INVAL, "KNUT_FAULT: more than %d rules", MAX_RULES);
        KN_TRY(rule_parse((KnStr){p, len}, &out[n], err));
        ++n;
        p += len;
        p += *p == ',';
    }
    *ret_n = n;
    return KN_OK;
}

/* The caller holds the mutex. */
static KnCode configure(const char *spec, const char *trace, KnErr *err)
{
    Rule parsed[MAX_RULES];
    int n = 0;
    KN_TRY(rules_parse(spec ? spec : "", parsed, &n, err));
    if (trace && strlen(trace) >= sizeof(trace_file))
        return kn_err_set(err, KN_E_INVAL, "KNUT_FAULT_TRACE: the file name is too long");
    n_rules = n;
    if (n)
        memcpy(rules, parsed, sizeof(Rule) * (size_t)n);
    memset(trace_file, 0, sizeof(trace_file));
    if (trace)
        memcpy(trace_file, trace, strlen(trace));
    broken = (KnErr){0};
    atomic_store(&state, n || trace_file[0] ? ARMED : OFF);
    return KN_OK;
}

KnCode kn_fault_set(const char *spec, const char *trace, KnErr *err)
{
    (void)pthread_mutex_lock(&mutex);
    KnCode rc = configure(spec, trace, err);
    (void)pthread_mutex_unlock(&mutex);
    return rc;
}

static void environment_read(void)
{
    if (configure(getenv("KNUT_FAULT"), getenv("KNUT_FAULT_TRACE"), &broken) != KN_OK)
        atomic_store(&state, ARMED);
}

static KnCode trace_append(const char *name, KnErr *err)
{
    if (!trace_file[0])
        return KN_OK;
    char line[MAX_NAME + 2];
    int n = snprintf(line, sizeof(line), "%.*s\n", MAX_NAME, name);
    int fd = open(trace_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    ssize_t written = fd < 0 ? -1 : write(fd, line, (size_t)n);
    int saved = errno;
    if (fd >= 0)
        (void)close(fd);
    errno = saved;
    if (written != n)
        return kn_err_set(err, KN_E_IO, "KNUT_FAULT_TRACE: cannot write %s: %s", trace_file,
                          kn_errno_text(saved));
    return KN_OK;
}

/* Counts the pass in every rule that it concerns; the first whose turn it is gives the action. */
static bool due(const char *name, Action *ret)
{
    bool found = false;
    for (int i = 0; i < n_rules; ++i) {
        Rule *rule = &rules[i];
        if (strcmp(rule->name, "*") != 0 && strcmp(rule->name, name) != 0)
            continue;
        if (++rule->passed == rule->nth && !found) {
            *ret = rule->action;
            found = true;
        }
    }
    return found;
}

static KnCode pass(const char *name, Action *ret_action, bool *ret_due, KnErr *err)
{
    if (atomic_load(&state) == UNREAD)
        environment_read();
    if (broken.code != KN_OK) {
        if (err)
            *err = broken;
        return broken.code;
    }
    KN_TRY(trace_append(name, err));
    *ret_due = due(name, ret_action);
    return KN_OK;
}

KnCode kn_fault_at(const char *name, KnErr *err)
{
    if (atomic_load_explicit(&state, memory_order_acquire) == OFF)
        return KN_OK;
    Action action = ACT_MAX_;
    bool is_due = false;
    (void)pthread_mutex_lock(&mutex);
    KnCode rc = pass(name, &action, &is_due, err);
    (void)pthread_mutex_unlock(&mutex);
    if (rc != KN_OK || !is_due)
        return rc;
    switch (action) {
    case ACT_KILL:
        (void)raise(SIGKILL);
        return KN_OK;
    case ACT_EXIT:
        _exit(EXIT_STATUS);
    case ACT_STOP:
        (void)raise(SIGTERM);
        return KN_OK;
    case ACT_PAUSE:
        (void)raise(SIGSTOP);
        return KN_OK;
    default:
        errno = 0;
        return kn_err_set(err, KN_E_IO, "fault point '%s' was told to fail", name);
    }
}
