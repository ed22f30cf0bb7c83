/* SPDX-License-Identifier: Apache-2.0 */
/* meta_support.c - see meta_support.h. */
#include "unit/iceberg/meta_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int meta_setup(void **state)
{
    Meta *m = calloc(1, sizeof(*m));

    if (!m)
        return -1;
    m->arena = kn_arena_new(4096);
    *state = m;
    return 0;
}

int meta_teardown(void **state)
{
    Meta *m = *state;

    kn_arena_free(m->arena);
    free(m);
    return 0;
}

void meta_ok_at(const Meta *m, KnCode code, const char *file, int line)
{
    if (code != KN_OK) {
        print_error("%s: %s\n", kn_code_name(code), m->err.msg);
        _fail(file, line);
    }
}

const char *meta_quotes(Meta *m, const char *text)
{
    char *copy = kn_arena_strdup(m->arena, text);

    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    return copy;
}

static void drop_json(void *arg)
{
    json_decref(arg);
}

json_t *meta_json(Meta *m, const char *text)
{
    json_t *doc = NULL;

    text = meta_quotes(m, text);
    meta_ok(m, kn_json_parse(text, strlen(text), &doc, &m->err));
    kn_arena_defer(m->arena, drop_json, doc);
    return doc;
}

KnSchema *meta_schema(Meta *m, const char *text)
{
    KnSchema *schema = NULL;

    meta_ok(m, kn_schema_parse_text(m->arena, kn_str(text), &schema, &m->err));
    return schema;
}

const KnType *meta_type(Meta *m, const char *text)
{
    return meta_schema(m, kn_arena_printf(m->arena, "x %s", text))->root.fields[0].type;
}

KnValue meta_value(Meta *m, const KnType *type, const char *text)
{
    KnValue value = {.null = true};

    meta_ok(m, kn_value_parse(m->arena, type, kn_str(text), &value, &m->err));
    return value;
}

const char *meta_text(Meta *m, const KnType *type, const KnValue *value)
{
    KN_BUF_AUTO buf = {0};

    kn_buf_init(&buf, (size_t)1 << 20);
    kn_value_format(&buf, type, value);
    meta_ok(m, kn_buf_check(&buf, &m->err));
    return kn_arena_strndup(m->arena, buf.data ? buf.data : "", buf.len);
}

KnStr meta_file(Meta *m, const char *name)
{
    char path[4096];
    FILE *file;
    char *bytes = kn_arena_alloc(m->arena, (size_t)1 << 20);
    size_t len;

    assert_true(snprintf(path, sizeof(path), "%s/data/metadata/%s", KN_TEST_DATA_DIR, name) > 0);
    file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be opened", path);
    len = fread(bytes, 1, (size_t)1 << 20, file);
    assert_int_equal(ferror(file), 0);
    fclose(file);
    return (KnStr){bytes, len};
}

KnMetadata *meta_load(Meta *m, const char *name)
{
    KnMetadata *md = NULL;

    meta_ok(m, kn_metadata_parse(meta_file(m, name), name, &md, &m->err));
    return md;
}

KnMetadata *meta_create(Meta *m, int32_t version)
{
    KnMetadata *md = NULL;
    const KnCreateTable table = {
        .format_version = version,
        .location = "file:///w/t//",
        .schema = meta_schema(m, "id long required, ts timestamptz, name string")};

    meta_ok(m, kn_metadata_create(&table, &md, &m->err));
    return md;
}

KnMetadata *meta_apply(Meta *m, KnMetadata *base, const KnUpdate *updates, size_t n)
{
    KnMetadata *md = NULL;

    meta_ok(m, kn_metadata_apply(base, updates, n, NULL, &md, &m->err));
    kn_metadata_unref(base);
    return md;
}

void meta_refused(Meta *m, const KnMetadata *base, const KnUpdate *updates, size_t n,
                  const char *message)
{
    KnMetadata *md = NULL;
    KnCode rc = kn_metadata_apply(base, updates, n, NULL, &md, &m->err);

    assert_string_equal(m->err.msg, message);
    assert_int_equal(rc, KN_E_INVAL);
    assert_int_equal(m->err.code, KN_E_INVAL);
    assert_null(md);
}

KnUpdate meta_add_snapshot(const KnMetadata *md, int64_t id, int64_t at_ms)
{
    return (KnUpdate){
        .kind = KN_UPDATE_ADD_SNAPSHOT,
        .snapshot = {.snapshot_id = id,
                     .parent_id = md->current_snapshot_id,
                     .sequence_number = md->format_version > 1 ? md->last_sequence_number + 1 : 0,
                     .timestamp_ms = at_ms,
                     .manifest_list = "file:///w/t/metadata/snap.avro",
                     .operation = "append",
                     .schema_id = md->current_schema_id,
                     .first_row_id = md->format_version > 2 ? md->next_row_id : -1,
                     .added_rows = md->format_version > 2 ? 10 : -1}};
}

KnUpdate meta_set_ref(const char *name, int64_t id, bool is_branch)
{
    return (KnUpdate){.kind = KN_UPDATE_SET_SNAPSHOT_REF, .ref = {name, id, is_branch, -1, -1, -1}};
}

KnMetadata *meta_commit(Meta *m, KnMetadata *md, int64_t id, int64_t at_ms)
{
    const KnUpdate updates[] = {meta_add_snapshot(md, id, at_ms), meta_set_ref("main", id, true)};

    return meta_apply(m, md, updates, sizeof(updates) / sizeof(updates[0]));
}
