/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commit requests of REST clients, applied to a table (first byte: v1, v2 or v3, or none) or read
 * as a request that makes one. What is accepted comes out as metadata that is read again, and its
 * updates can be written.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/metadata/commit_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static KnMetadata *new_table(KnArena *arena, int32_t version)
{
    KnCreateTable table = {.format_version = version, .location = "file:///w/t"};
    KnSchema *schema = NULL;
    KnPartitionSpec *spec = NULL;
    KnMetadata *md = NULL;

    if (kn_schema_parse_text(arena, KN_STR_LIT("id long required, ts timestamp, name string"),
                             &schema, NULL) != KN_OK ||
        kn_partition_spec_parse_text(arena, schema, KN_STR_LIT("day(ts)"), &spec, NULL) != KN_OK)
        abort();
    table.schema = schema;
    table.spec = spec;
    if (kn_metadata_create(&table, &md, NULL) != KN_OK)
        abort();
    return md;
}

static void check_err(KnCode rc, const KnErr *err)
{
    assert(rc == KN_OK || (err->code == rc && err->msg[0] && !strchr(err->msg, '\n')));
    (void)rc, (void)err;
}

static void write_updates(const KnTableCommit *commit)
{
    for (size_t i = 0; i < commit->n_updates; i++) {
        KN_JSON_AUTO json = NULL;
        if (kn_update_to_json(&commit->updates[i], &json, NULL) != KN_OK)
            abort();
    }
}

static void apply(KnArena *arena, const json_t *body, int32_t version)
{
    KN_METADATA_AUTO base = version ? new_table(arena, version) : NULL;
    KN_METADATA_AUTO next = NULL;
    KN_METADATA_AUTO again = NULL;
    KN_BUF_AUTO text = {0};
    KnTableCommit commit;
    KnErr err = {0};

    kn_buf_init(&text, (size_t)64 << 20);
    KnCode rc = kn_commit_parse(arena, body, &commit, &err);
    check_err(rc, &err);
    if (rc != KN_OK)
        return;
    write_updates(&commit);
    KN_IGNORE(kn_metadata_check(base, commit.requirements, commit.n_requirements, NULL));
    rc = kn_metadata_apply(base, commit.updates, commit.n_updates, NULL, &next, &err);
    check_err(rc, &err);
    if (rc == KN_OK &&
        (kn_metadata_to_json(next, &text, NULL) != KN_OK ||
         kn_metadata_parse((KnStr){text.data, text.len}, "x", &again, NULL) != KN_OK))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO body = NULL;
    KnCreateRequest create;
    KnErr err = {0};

    if (size < 1 || kn_json_parse((const char *)data + 1, size - 1, &body, NULL) != KN_OK)
        return 0;
    apply(arena, body, data[0] % 4);
    check_err(kn_create_request_parse(arena, body, &create, &err), &err);
    return 0;
}
