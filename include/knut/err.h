/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * err.h - what every fallible function of knut returns and fills.
 *
 * A fallible function returns KnCode (0 is success) and takes `KnErr *err` last. The caller owns
 * the KnErr, usually on its stack; err may be NULL when only the code matters. The message is one
 * line: what went wrong, where (file, table, snapshot), and what to do about it. Nothing is
 * allocated.
 */
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum KnCode {
    KN_OK = 0,
    KN_E_NOMEM,       /* memory is out, or a size from outside is beyond its limit */
    KN_E_INVAL,       /* the caller's argument, option or configuration is wrong */
    KN_E_NOTFOUND,    /* the named thing does not exist */
    KN_E_EXISTS,      /* the named thing exists already */
    KN_E_CONFLICT,    /* optimistic commit lost: reread and try again */
    KN_E_UNKNOWN,     /* the peer may or may not have applied it: never retry blindly */
    KN_E_IO,          /* the system or a peer failed: may be tried again */
    KN_E_CORRUPT,     /* bytes that are not what their format says */
    KN_E_UNSUPPORTED, /* understood, and not done: the message names the feature */
    KN_E_REFUSED,     /* could be done, and an operator must say so first */
    KN_E_CANCELLED,   /* a signal or the caller asked to stop */
    KN_E_BUSY,        /* another process or thread holds it: the message names the holder */
    KN_E_MAX_,
} KnCode;

/* What a failure is about, where the code alone does not say it (a server's answers depend on it).
 */
typedef enum KnErrSubject {
    KN_ABOUT_NOTHING = 0,
    KN_ABOUT_NAMESPACE,
    KN_ABOUT_TABLE,
    KN_ABOUT_VIEW,
    KN_ABOUT_FILE,      /* a metadata document or data file that should be there */
    KN_ABOUT_NOT_EMPTY, /* KN_E_REFUSED: a namespace that still holds something */
    KN_ABOUT_BOTH,      /* KN_E_INVAL: the same key is to be set and removed */
    KN_ABOUT_LOCATION,  /* KN_E_REFUSED: a place outside the warehouse */
} KnErrSubject;

typedef struct KnErr {
    KnCode code;
    KnErrSubject about;
    bool retriable;   /* the same call may succeed later without any change by the user */
    int sys_errno;    /* errno where the system said no, else 0 */
    const char *file; /* source position of the first report */
    int line;
    char msg[480];
} KnErr;

/** The code's stable name, e.g. "commit-conflict". Never NULL. Thread-safe. */
const char *kn_code_name(KnCode code);

/** The process exit status for a code: 0 ok, 1 failed, 2 usage or configuration, 3 refused (also
 * what is not supported: an operator must decide what to do about it). */
int kn_code_exit_status(KnCode code);

#ifdef __cplusplus
}
#endif
