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
