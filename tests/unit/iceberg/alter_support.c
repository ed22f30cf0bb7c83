/* SPDX-License-Identifier: Apache-2.0 */
/* alter_support.c - see alter_support.h. */
#include "unit/iceberg/alter_support.h"

#include <string.h>

KnMetadata *alter_table(Meta *m, int32_t version, const char *schema, const char *spec)
{
    KnCreateTable table = {
        .format_version = version, .location = "file:///w/t", .schema = meta_schema(m, schema)};
    KnPartitionSpec *parsed = NULL;
    KnMetadata *md = NULL;

    if (spec) {
        meta_ok(m, kn_partition_spec_parse_text(m->arena, table.schema, kn_str(spec), &parsed,
                                                &m->err));
        table.spec = parsed;
    }
    meta_ok(m, kn_metadata_create(&table, &md, &m->err));
    return md;
}

static KnCode try_alter(Meta *m, const KnMetadata *base, const char *text, bool anyhow,
                        KnMetadata **ret)
{
    const KnAlterOptions opts = {.allow_incompatible = anyhow};
    KnChanges changes = {0};
    KnAlterPlan plan = {0};

    KN_TRY(kn_changes_parse(m->arena, kn_str(text), &changes, &m->err));
    KN_TRY(kn_alter_plan(m->arena, base, &changes, &opts, &plan, &m->err));
    return kn_metadata_apply(base, plan.updates, plan.n_updates, NULL, ret, &m->err);
}

KnMetadata *alter(Meta *m, KnMetadata *base, const char *changes)
{
    KnMetadata *md = NULL;

    meta_ok(m, try_alter(m, base, changes, false, &md));
    kn_metadata_unref(base);
    return md;
}

KnMetadata *alter_anyhow(Meta *m, KnMetadata *base, const char *changes)
{
    KnMetadata *md = NULL;

    meta_ok(m, try_alter(m, base, changes, true, &md));
    kn_metadata_unref(base);
    return md;
}

void alter_refused(Meta *m, const KnMetadata *base, const char *changes, const char *message)
{
    KnMetadata *md = NULL;
    KnCode rc = try_alter(m, base, changes, false, &md);

    if (rc == KN_OK)
        fail_msg("'%s' is taken", changes);
    if (strncmp(m->err.msg, message, strlen(message)) != 0)
        fail_msg("'%s': '%s' does not begin with '%s'", changes, m->err.msg, message);
    assert_int_equal(rc, KN_E_INVAL);
    assert_null(md);
}

const char *alter_column(Meta *m, const KnMetadata *md, const char *path)
{
    const KnField *field = kn_schema_find_name(kn_metadata_schema(md), kn_str(path));
    KN_BUF_AUTO buf = {0};

    if (!field)
        return "none";
    kn_buf_init(&buf, (size_t)1 << 20);
    kn_buf_printf(&buf, "%d %s ", field->id, field->name);
    kn_type_format(&buf, field->type);
    kn_buf_text(&buf, field->required ? " required" : "");
    if (field->initial_default || field->write_default) {
        kn_buf_text(&buf, " {");
        if (field->initial_default)
            kn_json_dump(&buf, field->initial_default);
        kn_buf_text(&buf, ", ");
        if (field->write_default)
            kn_json_dump(&buf, field->write_default);
        kn_buf_text(&buf, "}");
    }
    if (field->doc)
        kn_buf_printf(&buf, " [%s]", field->doc);
    return kn_arena_strndup(m->arena, buf.data, buf.len);
}

const char *alter_names(Meta *m, const KnMetadata *md, const char *path)
{
    const KnType *type = &kn_metadata_schema(md)->root;
    KN_BUF_AUTO buf = {0};

    kn_buf_init(&buf, (size_t)1 << 20);
    if (path)
        type = kn_schema_find_name(kn_metadata_schema(md), kn_str(path))->type;
    for (size_t i = 0; i < type->n_fields; i++)
        kn_buf_printf(&buf, "%s%s", i > 0 ? " " : "", type->fields[i].name);
    return kn_arena_strndup(m->arena, buf.data ? buf.data : "", buf.len);
}

const char *alter_spec(Meta *m, const KnMetadata *md)
{
    const KnPartitionSpec *spec = kn_metadata_spec(md);
    KN_BUF_AUTO buf = {0};

    kn_buf_init(&buf, (size_t)1 << 20);
    for (size_t i = 0; i < spec->n_fields; i++)
        kn_buf_printf(&buf, "%s%d %s=%s(%d)", i > 0 ? ", " : "", spec->fields[i].field_id,
                      spec->fields[i].name, spec->fields[i].transform.text,
                      spec->fields[i].source_id);
    return kn_arena_strndup(m->arena, buf.data ? buf.data : "", buf.len);
}
