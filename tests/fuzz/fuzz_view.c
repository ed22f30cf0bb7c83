/* SPDX-License-Identifier: Apache-2.0 */
/*
 * View metadata and requests that change it: a document, and after a line with `--` a commit
 * request; without that line the text is also read as a request that makes a view. What is accepted
 * is written and read again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/view/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_again(const KnView *view)
{
    KN_VIEW_AUTO again = NULL;
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, (size_t)64 << 20);
    if (kn_view_to_json(view, &text, NULL) != KN_OK ||
        kn_view_parse((KnStr){text.data, text.len}, "written", &again, NULL) != KN_OK)
        abort();
}

static void check_err(KnCode rc, const KnErr *err)
{
    assert(rc == KN_OK || (err->code == rc && err->msg[0] && !strchr(err->msg, '\n')));
    (void)rc, (void)err;
}

static void change(const KnView *view, const char *text, size_t len)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO body = NULL;
    KN_VIEW_AUTO next = NULL;
    KnViewCommit commit;
    KnErr err = {0};
    if (kn_json_parse(text, len, &body, NULL) != KN_OK)
        return;
    KnCode rc = kn_view_commit_parse(arena, body, &commit, &err);
    check_err(rc, &err);
    if (rc == KN_OK) {
        rc = kn_view_apply(view, &commit, &next, &err);
        check_err(rc, &err);
    }
    if (rc == KN_OK)
        read_again(next);
}

static void create(const char *text, size_t len)
{
    KN_JSON_AUTO body = NULL;
    KN_VIEW_AUTO view = NULL;
    KnCreateView req;
    KnErr err = {0};
    if (kn_json_parse(text, len, &body, NULL) != KN_OK)
        return;
    KnCode rc = kn_create_view_parse(body, &req, &err);
    check_err(rc, &err);
    if (rc != KN_OK)
        return;
    req.location = req.location ? req.location : "file:///w/v";
    rc = kn_view_create(&req, &view, &err);
    check_err(rc, &err);
    if (rc == KN_OK)
        read_again(view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *line = memmem(data, size, "\n--\n", 4);
    size_t len = line ? (size_t)(line - text) : size;
    KN_VIEW_AUTO view = NULL;
    KnErr err = {0};

    if (!line)
        create(text, len);
    KnCode rc = kn_view_parse((KnStr){text, len}, "input", &view, &err);
    check_err(rc, &err);
    if (rc != KN_OK)
        return 0;
    read_again(view);
    if (line)
        change(view, line + 4, size - len - 4);
    return 0;
}
