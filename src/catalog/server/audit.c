/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - see audit.h. */
#include "catalog/server/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"

enum { LINE_MAX_BYTES = 16 << 10 };

struct KnAudit {
    pthread_mutex_t lock;
    char *file;
    int fd;
    dev_t dev;
    ino_t ino;
    KnMetric *lost;
};

static KnCode open_file(KnAudit *audit, KnErr *err)
{
    struct stat st;
    int fd = open(audit->file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int failure = errno;
        if (fd >= 0)
            (void)close(fd);
        return kn_err_set(err, KN_E_IO, "audit log %s: %s", audit->file, kn_errno_text(failure));
    }
    if (audit->fd >= 0)
        (void)close(audit->fd);
    audit->fd = fd;
    audit->dev = st.st_dev;
    audit->ino = st.st_ino;
    return KN_OK;
}

KnCode kn_audit_open(const char *file, KnAudit **ret, KnErr *err)
{
    KnAudit *audit = calloc(1, sizeof(*audit));
    char *name = strdup(file);
    if (!audit || !name)
        abort();
    audit->file = name;
    audit->fd = -1;
    (void)pthread_mutex_init(&audit->lock, NULL);
    audit->lost = kn_metric_get(KN_METRIC_COUNTER, "knut_catalog_audit_lost_total", "",
                                "Lines of the audit log that could not be written");
    KnCode rc = open_file(audit, err);
    if (rc != KN_OK) {
        (void)kn_audit_close(audit);
        return rc;
    }
    *ret = audit;
    return KN_OK;
}

static void quoted(KnBuf *line, const char *key, KnStr value)
{
    kn_buf_printf(line, ",\"%s\":", key);
    if (value.ptr)
        kn_json_quote(line, value);
    else
        kn_buf_text(line, "null");
}

void kn_audit_write(KnAudit *audit, const KnAuditEvent *event)
{
    if (!audit)
        return;
    char now[32];
    KN_BUF_AUTO line = {0};
    kn_buf_init(&line, LINE_MAX_BYTES);
    kn_buf_printf(&line, "{\"time\":\"%s\",\"front\":\"%s\",\"operation\":\"%s\",\"status\":%d",
                  kn_clock_format_ms(kn_clock_wall_ms(), now), event->front, event->operation,
                  event->status);
    quoted(&line, "principal", kn_str(event->principal));
    quoted(&line, "peer", kn_str(event->peer));
    quoted(&line, "certificate", kn_str(event->tls_subject));
    quoted(&line, "object", event->object);
    kn_buf_printf(&line, ",\"microseconds\":%lld}\n", (long long)event->micros);
    (void)pthread_mutex_lock(&audit->lock);
    struct stat st;
    bool fine =
        (stat(audit->file, &st) == 0 && st.st_ino == audit->ino && st.st_dev == audit->dev) ||
        open_file(audit, NULL) == KN_OK;
    fine = fine && !line.failed && write(audit->fd, line.data, line.len) == (ssize_t)line.len;
    (void)pthread_mutex_unlock(&audit->lock);
    if (!fine) {
        kn_metric_add(audit->lost, 1);
        kn_log(KN_LOG_ERROR, "catalog", "audit-lost", KN_F("file", audit->file),
               KN_F("operation", event->operation));
    }
}

KnAudit *kn_audit_close(KnAudit *audit)
{
    if (!audit)
        return NULL;
    if (audit->fd >= 0)
        (void)close(audit->fd);
    (void)pthread_mutex_destroy(&audit->lock);
    free(audit->file);
    free(audit);
    return NULL;
}
