/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - `knut table files`: the data and delete files of a snapshot, from its manifests. */
#include <string.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "iceberg/manifest/manifest.h"

typedef struct FilesOptions {
    KnCommonOptions common;
    KnLocator loc;
    KnSnapshotChoice snapshot;
} FilesOptions;

#define ROW(n, f, v, d)                                                                            \
    {                                                                                              \
        .name = (n), .type = KN_OPT_TEXT, .offset = offsetof(FilesOptions, f), .value = (v),       \
        .doc = (d)                                                                                 \
    }
static const KnOption rows[] = {
    ROW("snapshot", snapshot.snapshot, "ID", "Snapshot to look at (default: the current one)"),
    ROW("as-of", snapshot.as_of, "TIME",
        "Snapshot that was current at a time: ISO 8601, or milliseconds"),
    ROW("ref", snapshot.ref, "NAME", "Branch or tag to look at"),
};

typedef struct Listing {
    KnOut *out;
    const KnMetadata *md;
    int32_t spec_id;             /* of type */
    const KnPartitionSpec *spec; /* of the manifest */
    const KnType *type;
} Listing;

static KnCode partition_json(const Listing *list, const KnDataFile *file, KnBuf *json, KnErr *err)
{
    KN_JSON_AUTO obj = json_object();
    if (file->n_partition != list->type->n_fields)
        return kn_err_set(err, KN_E_CORRUPT, "%s: a partition of %zu values, its spec has %zu",
                          file->path, file->n_partition, list->type->n_fields);
    for (size_t i = 0; i < file->n_partition; i++) {
        const KnField *field = &list->type->fields[i];
        json_t *value = file->partition[i].null
                            ? json_null()
                            : kn_value_to_json(field->type, &file->partition[i]);
        (void)json_object_set_new(obj, field->name, value);
    }
    kn_json_dump(json, obj);
    return KN_OK;
}

static KnCode print_file(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    static const char *const contents[] = {"data", "position-deletes", "equality-deletes"};
    static const char *const formats[] = {"parquet", "avro", "orc", "puffin"};
    Listing *list = arg;
    const KnDataFile *file = &entry->file;
    KN_BUF_AUTO partition = {0};
    kn_buf_init(&partition, 16 << 20);
    KN_TRY(partition_json(list, file, &partition, err));
    bool vector = file->content == KN_CONTENT_POSITION_DELETES && file->format == KN_FORMAT_PUFFIN;
    kn_out_text(list->out, vector ? "deletion-vector" : contents[file->content]);
    kn_out_text(list->out, file->path);
    kn_out_text(list->out, formats[file->format]);
    kn_out_int(list->out, file->spec_id);
    kn_out_json(list->out, (KnStr){partition.data, partition.len});
    kn_out_int(list->out, file->record_count);
    kn_out_bytes(list->out, file->size_bytes);
    kn_out_int(list->out, entry->sequence_number);
    kn_out_int(list->out, entry->snapshot_id);
    kn_out_opt_int(list->out, file->first_row_id);
    return kn_out_check(list->out, err);
}

static KnCode print_manifest(const KnTable *tbl, const KnManifestFile *mf, KnOut *out, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Listing list = {.out = out, .md = tbl->md, .spec = kn_metadata_find_spec(tbl->md, mf->spec_id)};
    if (!list.spec)
        return kn_err_set(err, KN_E_CORRUPT,
                          "manifest %s: partition spec %d is not in the table's metadata", mf->path,
                          mf->spec_id);
    KN_TRY(kn_metadata_partition_type(arena, tbl->md, list.spec, &list.type, err));
    KnManifestVisit visit = {.fn = print_file, .arg = &list};
    KN_TRY(kn_table_check_path(tbl, kn_str(mf->path), err));
    return kn_manifest_read(tbl->io, tbl->md, mf, &visit, err);
}

static KnCode run_files(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"content", false},   {"file", false},        {"format", false}, {"spec", true},
        {"partition", false}, {"records", true},      {"bytes", true},   {"sequence", true},
        {"snapshot", true},   {"first_row_id", true},
    };
    const FilesOptions *opts = call->options;
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_call_table_open(call, &ct, err));
    const KnSnapshot *snap = NULL;
    KN_TRY(kn_table_choose_snapshot(ct.table, &opts->snapshot, &snap, err));
    KnManifestFile *manifests = NULL;
    size_t n = 0;
    if (snap)
        KN_TRY(kn_manifest_list_read(ct.table->io, call->arena, snap, &manifests, &n, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 10);
    KnCode rc = KN_OK;
    for (size_t i = 0; i < n && rc == KN_OK; i++)
        rc = print_manifest(ct.table, &manifests[i], out, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    return rc == KN_OK ? closed : rc;
}

const KnCommand kn_cmd_table_files = {
    .group = "table",
    .name = "files",
    .summary = "List the data and delete files of a snapshot",
    .about = "  knut table files --warehouse /data/wh --table shop.orders --output json",
    .options_size = sizeof(FilesOptions),
    .locator = offsetof(FilesOptions, loc),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .run = run_files,
};
