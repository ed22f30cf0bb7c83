/* SPDX-License-Identifier: Apache-2.0 */
/* s3_fake.c - see s3_fake.h. The handler runs under the stub's lock; so does all state. */
#include "unit/storage/s3_fake.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "net/url.h"

enum { PAGE = 3, MAX_OBJECT = 64 << 20, MAX_PARTS = 64, N_FAULTS = 4 };

typedef struct Object {
    char *path; /* "bucket/key" */
    KnBuf bytes;
    char token[64];
} Object;

typedef struct Upload {
    char id[16];
    char *path;
    char token[64];
    bool open;
    KnBuf parts[MAX_PARTS];
} Upload;

struct S3Fake {
    TestStub *stub;
    char endpoint[64];
    KN_VEC(Object) objects;
    KN_VEC(Upload) uploads;
    FakeFault faults[N_FAULTS];
    KnBuf log;
    char head[8192]; /* of the last request */
    bool disorder;
    KnS3Keys keys;
};

/* One answer. */
typedef struct Answer {
    int status;
    char extra[512];
    bool no_id;
    KnBuf body;
} Answer;

static void error(Answer *a, int status, const char *code, const char *message)
{
    a->status = status;
    kn_buf_reset(&a->body);
    kn_buf_printf(&a->body,
                  "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>%s</Message>"
                  "<RequestId>4711</RequestId></Error>",
                  code, message);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const Object *)a)->path, ((const Object *)b)->path);
}

/* '/' before everything else: folders are listed where their names sort. */
static int by_folder(const void *a, const void *b)
{
    const char *x = ((const Object *)a)->path, *y = ((const Object *)b)->path;
    while (*x && *x == *y)
        ++x, ++y;
    int cx = *x == '/' ? 1 : (unsigned char)*x, cy = *y == '/' ? 1 : (unsigned char)*y;
    return cx - cy;
}

static Object *find(S3Fake *fake, const char *path)
{
    kn_vec_foreach (&fake->objects, object)
        if (strcmp(object->path, path) == 0)
            return object;
    return NULL;
}

static void put(S3Fake *fake, const char *path, const void *bytes, size_t len, const char *token)
{
    Object *object = find(fake, path);
    if (!object) {
        object = kn_vec_push(&fake->objects);
        object->path = strdup(path);
        kn_buf_init(&object->bytes, MAX_OBJECT);
    }
    kn_buf_reset(&object->bytes);
    kn_buf_append(&object->bytes, bytes, len);
    (void)snprintf(object->token, sizeof(object->token), "%s", token);
    qsort(fake->objects.items, fake->objects.len, sizeof(Object),
          fake->disorder ? by_folder : by_path);
}

static void drop(S3Fake *fake, const char *path)
{
    Object *object = find(fake, path);
    if (!object)
        return;
    free(object->path);
    kn_buf_done(&object->bytes);
    size_t at = (size_t)(object - fake->objects.items);
    memmove(object, object + 1, (fake->objects.len - at - 1) * sizeof(Object));
    --fake->objects.len;
}

/* Parameter of the query, decoded; "" = none, "=" = without value. */
static const char *param(const char *query, const char *name, char *out, size_t cap)
{
    size_t n = strlen(name);
    out[0] = '\0';
    for (const char *p = query; p && *p; p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL) {
        if (strncmp(p, name, n) != 0 || (p[n] && p[n] != '=' && p[n] != '&'))
            continue;
        KN_BUF_AUTO text;
        kn_buf_init(&text, cap - 1);
        const char *value = p[n] == '=' ? p + n + 1 : p + n;
        assert(kn_url_decode(&text, (KnStr){value, strcspn(value, "&")}, NULL) == KN_OK);
        (void)snprintf(out, cap, "%s", text.len ? text.data : "=");
        break;
    }
    return out;
}

/* ---- operations --------------------------------------------------------------------------- */

static void get_object(S3Fake *fake, const TestRequest *req, const char *path, Answer *a)
{
    char range[64];
    unsigned long long from = 0, to = 0;
    const Object *object = find(fake, path);
    if (!object) {
        error(a, 404, "NoSuchKey", "The specified key does not exist.");
        return;
    }
    (void)snprintf(a->extra, sizeof(a->extra),
                   "x-amz-meta-knut-write: %s\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n",
                   object->token);
    size_t len = object->bytes.len;
    a->status = 200;
    if (test_stub_header(req, "Range", range, sizeof(range))[0] == '\0') {
        kn_buf_append(&a->body, object->bytes.data, len);
    } else if (sscanf(range, "bytes=%20llu-%20llu", &from, &to) != 2 || from >= len) {
        error(a, 416, "InvalidRange", "The requested range is not satisfiable");
    } else {
        a->status = 206;
        kn_buf_append(&a->body, object->bytes.data + from, (to < len ? to + 1 : len) - from);
    }
}

static void put_object(S3Fake *fake, const TestRequest *req, const char *path, Answer *a)
{
    char condition[16], token[64];
    (void)test_stub_header(req, "x-amz-meta-knut-write", token, sizeof(token));
    if (test_stub_header(req, "If-None-Match", condition, sizeof(condition))[0] &&
        find(fake, path)) {
        error(a, 412, "PreconditionFailed", "At least one of the pre-conditions did not hold");
        return;
    }
    put(fake, path, req->body, req->body_len, token);
    a->status = 200;
}

static void list_objects(S3Fake *fake, const char *bucket, const char *query, Answer *a)
{
    char prefix[1024], after[1024];
    (void)param(query, "prefix", prefix, sizeof(prefix));
    (void)param(query, "continuation-token", after, sizeof(after));
    const char *start = strcmp(prefix, "=") == 0 ? "" : prefix;
    size_t skip = after[0] ? strtoul(after + 1, NULL, 10) : 0, n = 0, seen = 0;
    bool more = false;
    a->status = 200;
    (void)snprintf(a->extra, sizeof(a->extra), "Server: %s\r\n",
                   fake->disorder ? "Something" : "AmazonS3");
    kn_buf_text(&a->body, "<?xml version=\"1.0\"?>\n<ListBucketResult "
                          "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    kn_vec_foreach (&fake->objects, object) {
        size_t b = strlen(bucket);
        if (strncmp(object->path, bucket, b) != 0 || object->path[b] != '/' ||
            strncmp(object->path + b + 1, start, strlen(start)) != 0 || seen++ < skip)
            continue;
        more = n == PAGE;
        if (more)
            break;
        ++n;
        kn_buf_text(&a->body, "<Contents><Key>");
        for (const char *p = object->path + b + 1; *p; ++p)
            kn_buf_printf(&a->body, *p == '&' || *p == '<' ? "&#%d;" : "%c", *p);
        kn_buf_printf(&a->body,
                      "</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
                      "<Size>%zu</Size></Contents>",
                      object->bytes.len);
    }
    kn_buf_printf(&a->body, "<IsTruncated>%s</IsTruncated>", more ? "true" : "false");
    if (more)
        kn_buf_printf(&a->body, "<NextContinuationToken>+%zu</NextContinuationToken>", skip + n);
    kn_buf_text(&a->body, "</ListBucketResult>");
}

static void delete_objects(S3Fake *fake, const TestRequest *req, const char *bucket, Answer *a)
{
    char md5[64];
    KN_ARENA_AUTO arena = kn_arena_new(0);
    if (!test_stub_header(req, "Content-MD5", md5, sizeof(md5))[0]) {
        error(a, 400, "MissingContentMD5", "Content-MD5 is missing");
        return;
    }
    a->status = 200;
    kn_buf_text(&a->body, "<DeleteResult>");
    for (const char *p = req->body; (p = strstr(p, "<Key>")); ++p) {
        char *key = kn_arena_strndup(arena, p + 5, strcspn(p + 5, "<"));
        for (char *amp; (amp = strstr(key, "&amp;"));)
            memmove(amp + 1, amp + 5, strlen(amp + 5) + 1);
        if (strstr(key, "protected"))
            kn_buf_printf(&a->body,
                          "<Error><Key>%s</Key><Code>AccessDenied</Code><Message>no"
                          "</Message></Error>",
                          key);
        else
            drop(fake, kn_arena_printf(arena, "%s/%s", bucket, key));
    }
    kn_buf_text(&a->body, "</DeleteResult>");
}

static Upload *upload_of(S3Fake *fake, const char *query)
{
    char id[16];
    (void)param(query, "uploadId", id, sizeof(id));
    kn_vec_foreach (&fake->uploads, upload)
        if (upload->open && strcmp(upload->id, id) == 0)
            return upload;
    return NULL;
}

static void begin_upload(S3Fake *fake, const TestRequest *req, const char *path, Answer *a)
{
    Upload *upload = kn_vec_push(&fake->uploads);
    (void)snprintf(upload->id, sizeof(upload->id), "u+%zu", fake->uploads.len);
    upload->path = strdup(path);
    upload->open = true;
    (void)test_stub_header(req, "x-amz-meta-knut-write", upload->token, sizeof(upload->token));
    for (int i = 0; i < MAX_PARTS; ++i)
        kn_buf_init(&upload->parts[i], MAX_OBJECT);
    a->status = 200;
    kn_buf_printf(&a->body,
                  "<InitiateMultipartUploadResult><UploadId>%s</UploadId>"
                  "</InitiateMultipartUploadResult>",
                  upload->id);
}

static void complete_upload(S3Fake *fake, const TestRequest *req, Upload *upload, Answer *a)
{
    char condition[16];
    KN_BUF_AUTO whole;
    kn_buf_init(&whole, MAX_OBJECT);
    if (test_stub_header(req, "If-None-Match", condition, sizeof(condition))[0] &&
        find(fake, upload->path)) {
        error(a, 412, "PreconditionFailed", "At least one of the pre-conditions did not hold");
        return;
    }
    for (const char *p = req->body; (p = strstr(p, "<PartNumber>")); ++p) {
        unsigned long i = strtoul(p + 12, NULL, 10);
        kn_buf_append(&whole, upload->parts[i - 1].data, upload->parts[i - 1].len);
    }
    put(fake, upload->path, whole.data, whole.len, upload->token);
    upload->open = false;
    a->status = 200;
    kn_buf_text(&a->body, "<CompleteMultipartUploadResult><ETag>\"x\"</ETag>"
                          "</CompleteMultipartUploadResult>");
}

static void part_or_end(S3Fake *fake, const TestRequest *req, const char *query, Answer *a)
{
    char number[16];
    Upload *upload = upload_of(fake, query);
    (void)param(query, "partNumber", number, sizeof(number));
    if (!upload) {
        error(a, 404, "NoSuchUpload", "The specified upload does not exist.");
    } else if (strcmp(req->method, "PUT") == 0) {
        KnBuf *part = &upload->parts[strtoul(number, NULL, 10) - 1];
        kn_buf_reset(part);
        kn_buf_append(part, req->body, req->body_len);
        a->status = 200;
        (void)snprintf(a->extra, sizeof(a->extra), "ETag: \"part-%s\"\r\n", number);
    } else if (strcmp(req->method, "DELETE") == 0) {
        upload->open = false;
        a->status = 204;
    } else {
        complete_upload(fake, req, upload, a);
    }
}

static void dispatch(S3Fake *fake, const TestRequest *req, Answer *a)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_BUF_AUTO path;
    kn_buf_init(&path, 4096);
    char value[64];
    size_t n = strcspn(req->target, "?");
    const char *query = req->target[n] ? req->target + n + 1 : "";
    if (kn_url_decode(&path, (KnStr){req->target + 1, n - 1}, NULL) != KN_OK)
        abort();
    const char *bucket = kn_arena_strndup(arena, path.data, strcspn(path.data, "/"));
    bool get = strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0;
    if (!strstr(test_stub_header(req, "Authorization", a->extra, sizeof(a->extra)),
                "AWS4-HMAC-SHA256 Credential="))
        abort();
    a->extra[0] = '\0';
    if (strcmp(bucket, "nosuch") == 0)
        error(a, 404, "NoSuchBucket", "The specified bucket does not exist");
    else if (param(query, "uploadId", value, sizeof(value))[0])
        part_or_end(fake, req, query, a);
    else if (param(query, "uploads", value, sizeof(value))[0])
        begin_upload(fake, req, path.data, a);
    else if (param(query, "delete", value, sizeof(value))[0])
        delete_objects(fake, req, bucket, a);
    else if (param(query, "list-type", value, sizeof(value))[0])
        list_objects(fake, bucket, query, a);
    else if (get)
        get_object(fake, req, path.data, a);
    else if (strcmp(req->method, "PUT") == 0)
        put_object(fake, req, path.data, a);
    else {
        drop(fake, path.data);
        a->status = 204;
    }
}

/* ---- answering ---------------------------------------------------------------------------- */

static void send_head(const TestRequest *req, const Answer *a)
{
    test_stub_printf(req, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s", a->status, a->body.len,
                     a->extra);
    if (!a->no_id)
        test_stub_printf(req, "x-amz-request-id: req-%d\r\n", req->number);
    test_stub_printf(req, "\r\n");
}

static bool answer(const TestRequest *req, const Answer *a)
{
    send_head(req, a);
    if (strcmp(req->method, "HEAD") != 0 && a->status != 304) /* neither has a body */
        test_stub_send(req, a->body.data, a->body.len);
    return true;
}

static FakeFault *fault_for(S3Fake *fake, const TestRequest *req)
{
    char line[4096];
    (void)snprintf(line, sizeof(line), "%s %s", req->method, req->target);
    for (int i = 0; i < N_FAULTS; ++i)
        if (fake->faults[i].times > 0 && strstr(line, fake->faults[i].match))
            return &fake->faults[i];
    return NULL;
}

static bool act(const FakeFault *fault, const TestRequest *req, Answer *a)
{
    switch (fault->action) {
    case FAKE_ANSWER:
    case FAKE_DO_ANSWER:
        a->status = fault->status;
        a->no_id = true;
        (void)snprintf(a->extra, sizeof(a->extra), "%s", fault->extra ? fault->extra : "");
        kn_buf_reset(&a->body);
        kn_buf_text(&a->body, fault->body ? fault->body : "");
        return answer(req, a);
    case FAKE_DO_SILENCE:
        test_stub_wait_gone(req);
        return false;
    case FAKE_HALF:
    case FAKE_HALF_SILENCE:
        send_head(req, a);
        test_stub_send(req, a->body.data, a->body.len / 2);
        if (fault->action == FAKE_HALF_SILENCE)
            test_stub_wait_gone(req);
        return false;
    default:
        return false;
    }
}

static bool handle(void *arg, const TestRequest *req)
{
    S3Fake *fake = arg;
    Answer a = {.status = 200};
    kn_buf_init(&a.body, MAX_OBJECT);
    kn_buf_printf(&fake->log, "%s %s\n", req->method, req->target);
    (void)snprintf(fake->head, sizeof(fake->head), "%s", req->head);
    FakeFault *due = fault_for(fake, req), fault = {.action = FAKE_ANSWER};
    if (due) {
        --due->times;
        fault = *due;
    }
    if (!due || (fault.action != FAKE_ANSWER && fault.action != FAKE_HANG_UP))
        dispatch(fake, req, &a);
    bool open = due ? act(&fault, req, &a) : answer(req, &a);
    kn_buf_done(&a.body);
    return open;
}

/* ---- the public part ---------------------------------------------------------------------- */

S3Fake *s3_fake_start(void)
{
    S3Fake *fake = calloc(1, sizeof(*fake));
    if (!fake)
        abort();
    kn_buf_init(&fake->log, 1 << 20);
    fake->keys = (KnS3Keys){"the-key", "the-secret", NULL, 0};
    fake->stub = test_stub_start(handle, fake);
    (void)snprintf(fake->endpoint, sizeof(fake->endpoint), "http://127.0.0.1:%d",
                   test_stub_port(fake->stub));
    return fake;
}

S3Fake *s3_fake_stop(S3Fake *fake)
{
    if (!fake)
        return NULL;
    fake->stub = test_stub_stop(fake->stub);
    kn_vec_foreach (&fake->objects, object) {
        free(object->path);
        kn_buf_done(&object->bytes);
    }
    kn_vec_foreach (&fake->uploads, upload) {
        free(upload->path);
        for (int i = 0; i < MAX_PARTS; ++i)
            kn_buf_done(&upload->parts[i]);
    }
    kn_vec_done(&fake->objects);
    kn_vec_done(&fake->uploads);
    kn_buf_done(&fake->log);
    free(fake);
    return NULL;
}

void s3_fake_fault(S3Fake *fake, const FakeFault *fault)
{
    if (!fault) {
        memset(fake->faults, 0, sizeof(fake->faults));
        return;
    }
    for (int i = 0; i < N_FAULTS; ++i) {
        if (fake->faults[i].times > 0)
            continue;
        fake->faults[i] = *fault;
        return;
    }
    abort();
}

KnS3Options s3_fake_options(const S3Fake *fake)
{
    return (KnS3Options){.endpoint = fake->endpoint,
                         .region = "us-east-1",
                         .keys = &fake->keys,
                         .retry_base_ms = 1,
                         .stall_ms = 20000,
                         .max_tries = 4,
                         .part_bytes = 1000};
}

void s3_fake_log(S3Fake *fake, KnBuf *buf)
{
    kn_buf_reset(buf);
    kn_buf_append(buf, fake->log.data, fake->log.len);
    kn_buf_reset(&fake->log);
}

const char *s3_fake_header(const S3Fake *fake, const char *name, char *out, size_t cap)
{
    const TestRequest req = {.head = fake->head};
    return test_stub_header(&req, name, out, cap);
}

int s3_fake_open_uploads(const S3Fake *fake)
{
    int n = 0;
    for (size_t i = 0; i < fake->uploads.len; ++i)
        n += fake->uploads.items[i].open;
    return n;
}

int s3_fake_port(const S3Fake *fake)
{
    return test_stub_port(fake->stub);
}

void s3_fake_put(S3Fake *fake, const char *path, const char *text, const char *token)
{
    put(fake, path, text, strlen(text), token);
}

void s3_fake_disorder(S3Fake *fake, bool on)
{
    fake->disorder = on;
}
