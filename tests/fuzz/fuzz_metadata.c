/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table metadata documents from outside: plain or gzip. What is accepted must be written, and what
 * was written must be read again as the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/metadata/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_text(const KnMetadata *md, KnBuf *buf)
{
    kn_buf_init(buf, (size_t)64 << 20);
    KnCode rc = kn_metadata_to_json(md, buf, NULL);
    assert(rc == KN_OK);
    (void)rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_METADATA_AUTO md = NULL;
    KN_METADATA_AUTO again = NULL;
    KN_BUF_AUTO first = {0};
    KN_BUF_AUTO second = {0};
    KnErr err = {0};
    KnCode rc = kn_metadata_parse((KnStr){(const char *)data, size}, "input", &md, &err);

    if (rc != KN_OK) {
        assert(err.code == rc && err.msg[0] && !strchr(err.msg, '\n'));
        return 0;
    }
    write_text(md, &first);
    rc = kn_metadata_parse((KnStr){first.data, first.len}, "written", &again, &err);
    if (rc != KN_OK)
        abort();
    write_text(again, &second);
    if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
        abort();
    return 0;
}
