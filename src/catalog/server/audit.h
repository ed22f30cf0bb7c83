/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * audit.h - who did what: one JSON object a line, appended to a file with one write(2) each.
 *
 * Changes and refusals are recorded, reads are not. Reopened when the file was moved away
 * (rotation). A line that cannot be written is counted (knut_catalog_audit_lost_total) and logged.
 * Thread-safe.
 */
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

typedef struct KnAudit KnAudit;

typedef struct KnAuditEvent {
    const char *front;     /* "rest", "grpc" */
    const char *operation; /* "updateTable" */
    const char *principal; /* NULL = nobody */
    const char *peer, *tls_subject;
    KnStr object; /* path of the request, or a name */
    int status;
    int64_t micros;
} KnAuditEvent;

KN_NODISCARD KnCode kn_audit_open(const char *file, KnAudit **ret, KnErr *err);
void kn_audit_write(KnAudit *audit, const KnAuditEvent *event); /* accepts a NULL audit */
KnAudit *kn_audit_close(KnAudit *audit);                        /* accepts NULL, returns NULL */
