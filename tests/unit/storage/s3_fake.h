/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * s3_fake.h - an S3 endpoint in this process, over support/http_stub.h: objects of buckets in
 * memory, path style, and faults on demand.
 */
#include "base/buf.h"
#include "storage/s3/s3.h"
#include "support/http_stub.h"

typedef struct S3Fake S3Fake;

typedef enum FakeAction {
    FAKE_ANSWER,      /* status, extra, body instead of the answer; nothing is done */
    FAKE_DO_ANSWER,   /* the same after doing what was asked */
    FAKE_DO_HANG_UP,  /* do it and close without answer */
    FAKE_DO_SILENCE,  /* do it and never answer */
    FAKE_HANG_UP,     /* close without doing anything */
    FAKE_HALF,        /* the real answer's head and half of its body, then close */
    FAKE_HALF_SILENCE /* and then nothing more */
} FakeAction;

/** What happens to the next `times` requests whose "METHOD target" holds `match` (others pass). */
typedef struct FakeFault {
    const char *match;
    int times;
    FakeAction action;
    int status;
    const char *extra; /* header lines, each with CRLF */
    const char *body;
} FakeFault;

S3Fake *s3_fake_start(void);
S3Fake *s3_fake_stop(S3Fake *fake);
/** At most four at a time; NULL = none. */
void s3_fake_fault(S3Fake *fake, const FakeFault *fault);
/** Options with keys, this endpoint, short waits. */
KnS3Options s3_fake_options(const S3Fake *fake);
/** "METHOD target\n" of each request since the last call, in buf. */
void s3_fake_log(S3Fake *fake, KnBuf *buf);
/** The last request's header, in out. */
const char *s3_fake_header(const S3Fake *fake, const char *name, char *out, size_t cap);
/** Uploads that were begun and neither completed nor aborted. */
int s3_fake_open_uploads(const S3Fake *fake);
int s3_fake_port(const S3Fake *fake);
/** Put an object behind the client's back. */
void s3_fake_put(S3Fake *fake, const char *path, const char *text, const char *token);
/** Lists objects folder by folder, as SeaweedFS does; else in byte order, as "AmazonS3". */
void s3_fake_disorder(S3Fake *fake, bool on);
