/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_regroup.c - see manifest_regroup.h.
 *
 * Planning reads every manifest once and gives each live entry its place in the new order: by
 * partition tuple, then as before. The order is cut into new manifests where the target is reached,
 * preferably between two partitions. Bytes of an entry are its manifest's share, headers left out.
 */
#include "iceberg/maintain/manifest_regroup.h"

#include <inttypes.h>

#include "base/map.h"
#include "base/random.h"
#include "iceberg/manifest/manifest_internal.h"
#include "iceberg/manifest/partition_key.h"

enum { ENTRY_OVERHEAD = 96 };

typedef struct Part {
    const KnValue *values;
    size_t n_values;
    uint32_t rank;
} Part;

typedef struct Item {
    const Part *part;
    uint32_t manifest, index; /* where it is */
    uint32_t memory;          /* bytes that a copy takes */
    float bytes;              /* in a manifest */
} Item;

typedef struct Output {
    size_t first, n; /* places */
    size_t memory;
} Output;

typedef struct Input {
    KnManifestFile file;
    uint32_t n_entries;
    uint32_t *places; /* of its live entries, in its order */
} Input;

struct KnRegroup {
    KnArena *arena;
    KnRegroupOptions opts;
    KN_VEC(Input) inputs;
    KN_VEC(Item) items; /* while planning */
    KN_VEC(Output) outputs;
    KN_VEC(Part *) parts;
    KnMap *by_key; /* Part * */
    KnBuf key;
    size_t n_entries;
    int64_t header_bytes; /* of every manifest, about */
};

/* A new manifest, but for its entries and its path. */
static KnCode describe(const KnRegroup *g, const KnWriter *w, KnManifestWrite *ret, KnErr *err)
{
    const KnMetadata *md = w->tbl->md;
    const KnPartitionSpec *spec = kn_metadata_find_spec(md, g->opts.spec_id);
    *ret = (KnManifestWrite){
        .format_version = md->format_version,
        .schema = kn_metadata_schema(md),
        .spec = spec,
        .deletes = g->opts.deletes,
        .snapshot_id = -1, /* the attempt's, given when it is listed */
        .codec = kn_metadata_property(md, "write.avro.compression-codec", NULL),
    };
    return kn_metadata_partition_type(w->arena, md, spec, &ret->partition_type, err);
}

/* ---- reading what there is ---- */

/* About what kn_manifest_entry_copy() takes. */
static size_t copy_size(const KnManifestEntry *entry)
{
    const KnDataFile *f = &entry->file;
    size_t size = sizeof(*entry) + strlen(f->path) + ENTRY_OVERHEAD;
    size += (f->n_column_sizes + f->n_value_counts + f->n_null_counts + f->n_nan_counts) *
            sizeof(KnIdCount);
    size += f->n_split_offsets * sizeof(int64_t) + f->n_partition * sizeof(KnValue);
    for (size_t i = 0; i < f->n_lower; i++)
        size += sizeof(KnIdBound) + f->lower[i].bytes.len + 8;
    for (size_t i = 0; i < f->n_upper; i++)
        size += sizeof(KnIdBound) + f->upper[i].bytes.len + 8;
    return size;
}

static KnCode find_part(KnRegroup *g, const KnManifestEntry *entry, const Part **ret, KnErr *err)
{
    kn_buf_reset(&g->key);
    kn_partition_key(&g->key, &entry->file);
    KN_TRY(kn_buf_check(&g->key, err));
    bool made = false;
    void **slot = kn_map_get_or_add(g->by_key, (KnStr){g->key.data, g->key.len}, &made);
    if (made) {
        Part *part = kn_arena_zalloc(g->arena, sizeof(*part));
        KnManifestEntry slim = {.file = {.path = "",
                                         .n_partition = entry->file.n_partition,
                                         .partition = entry->file.partition}};
        const KnManifestEntry *copy = kn_manifest_entry_copy(g->arena, &slim);
        *part = (Part){.values = copy->file.partition, .n_values = copy->file.n_partition};
        *slot = part;
        *kn_vec_push(&g->parts) = part;
    }
    *ret = *slot;
    return KN_OK;
}

static KnCode take_entry(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    KnRegroup *g = arg;
    if (g->items.len >= UINT32_MAX)
        return kn_err_set(err, KN_E_UNSUPPORTED, "more than %u live entries", UINT32_MAX);
    Input *input = &g->inputs.items[g->inputs.len - 1];
    Item item = {.manifest = (uint32_t)(g->inputs.len - 1), .index = input->n_entries++};
    KN_TRY(find_part(g, entry, &item.part, err));
    size_t memory = copy_size(entry);
    item.memory = memory < UINT32_MAX ? (uint32_t)memory : UINT32_MAX;
    *kn_vec_push(&g->items) = item;
    return KN_OK;
}

static KnCode read_input(KnRegroup *g, const KnWriter *w, const KnManifestFile *file, KnErr *err)
{
    size_t first = g->items.len;
    *kn_vec_push(&g->inputs) = (Input){.file = *file};
    KnManifestVisit visit = {.opts = {.with_metrics = true}, .fn = take_entry, .arg = g};
    KN_TRY(kn_writer_check_cancelled(w, err));
    KnCode rc = kn_manifest_read(w->tbl->io, w->tbl->md, file, &visit, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "table %s: manifest '%.200s'", w->tbl->name, file->path);
    size_t n = g->items.len - first;
    int64_t bytes = file->length > g->header_bytes ? file->length - g->header_bytes : 1;
    for (size_t i = first; i < g->items.len; i++)
        g->items.items[i].bytes = (float)((double)bytes / (double)n);
    return KN_OK;
}

/* ---- the order ---- */

static int compare_values(const KnValue *a, const KnValue *b)
{
    if (a->null || b->null)
        return (int)b->null - (int)a->null;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return kn_value_compare(a, b);
}

static int compare_parts(const void *x, const void *y)
{
    const Part *a = *(Part *const *)x;
    const Part *b = *(Part *const *)y;
    for (size_t i = 0; i < a->n_values && i < b->n_values; i++) {
        int order = compare_values(&a->values[i], &b->values[i]);
        if (order != 0)
            return order;
    }
    return 0;
}

static int compare_items(const void *x, const void *y)
{
    const Item *a = x;
    const Item *b = y;
    if (a->part->rank != b->part->rank)
        return a->part->rank < b->part->rank ? -1 : 1;
    if (a->manifest != b->manifest)
        return a->manifest < b->manifest ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void sort_items(KnRegroup *g)
{
    if (g->parts.len > 1)
        qsort(g->parts.items, g->parts.len, sizeof(Part *), compare_parts);
    for (size_t i = 0; i < g->parts.len; i++)
        g->parts.items[i]->rank = (uint32_t)i;
    if (g->items.len > 1)
        qsort(g->items.items, g->items.len, sizeof(Item), compare_items);
    for (size_t i = 0; i < g->inputs.len; i++) {
        Input *input = &g->inputs.items[i];
        input->places =
            kn_arena_zalloc(g->arena, ((size_t)input->n_entries + 1) * sizeof(*input->places));
    }
    for (size_t i = 0; i < g->items.len; i++) {
        const Item *item = &g->items.items[i];
        g->inputs.items[item->manifest].places[item->index] = (uint32_t)i;
    }
    g->n_entries = g->items.len;
}

/* ---- where to cut ---- */

static double part_bytes(const KnRegroup *g, size_t first)
{
    double bytes = 0;
    for (size_t i = first; i < g->items.len && g->items.items[i].part == g->items.items[first].part;
         i++)
        bytes += g->items.items[i].bytes;
    return bytes;
}

/* At the target, or between partitions when the next would go beyond it and half is reached; and
 * where entries that compress well would take too much memory. */
static bool cut_before(const KnRegroup *g, size_t at, double bytes)
{
    if (g->outputs.items[g->outputs.len - 1].memory >= KN_REGROUP_MEMORY)
        return true;
    double target = (double)(g->opts.target_bytes - g->header_bytes);
    if (target < (double)g->opts.target_bytes / 2)
        target = (double)g->opts.target_bytes / 2;
    if (bytes >= target)
        return true;
    bool new_part = g->items.items[at].part != g->items.items[at - 1].part;
    return new_part && bytes >= target / 2 && bytes + part_bytes(g, at) > target;
}

static void cut(KnRegroup *g)
{
    Output *out = NULL;
    double bytes = 0;
    for (size_t i = 0; i < g->items.len; i++) {
        if (!out || cut_before(g, i, bytes)) {
            out = kn_vec_push(&g->outputs);
            *out = (Output){.first = i};
            bytes = 0;
        }
        out->n++;
        out->memory += g->items.items[i].memory;
        bytes += (double)g->items.items[i].bytes;
    }
}

/* No two old manifests overlap by more than the partition at their border. */
static bool is_clustered(const KnRegroup *g)
{
    size_t n = g->inputs.len;
    uint32_t *least = kn_arena_alloc(g->arena, (n + 1) * sizeof(*least));
    uint32_t *most = kn_arena_zalloc(g->arena, (n + 1) * sizeof(*most));
    memset(least, 0xff, (n + 1) * sizeof(*least));
    for (size_t i = 0; i < g->items.len; i++) {
        const Item *item = &g->items.items[i];
        if (item->part->rank < least[item->manifest])
            least[item->manifest] = item->part->rank;
        if (item->part->rank > most[item->manifest])
            most[item->manifest] = item->part->rank;
    }
    /* How many go across from each rank to the next. */
    int32_t *open = kn_arena_zalloc(g->arena, (g->parts.len + 1) * sizeof(*open));
    for (size_t i = 0; i < n; i++) {
        if (g->inputs.items[i].n_entries == 0 || least[i] == most[i])
            continue;
        open[least[i]]++;
        open[most[i]]--;
    }
    int32_t depth = 0;
    for (size_t r = 0; r < g->parts.len; r++) {
        depth += open[r];
        if (depth > 1)
            return false;
    }
    return true;
}

static void drop_needless(KnRegroup *g)
{
    size_t live = 0;
    for (size_t i = 0; i < g->inputs.len; i++)
        live += g->inputs.items[i].n_entries > 0;
    if (live <= 1 ? g->outputs.len <= 1 : live <= g->outputs.len && is_clustered(g))
        g->outputs.len = 0;
}

static KnCode plan(KnRegroup *g, const KnWriter *w, const KnManifestFile *files, size_t n,
                   KnErr *err)
{
    KnManifestWrite empty;
    KN_TRY(describe(g, w, &empty, err));
    KN_TRY(kn_manifest_empty_bytes(&empty, &g->header_bytes, err));
    for (size_t i = 0; i < n; i++) {
        if (files[i].deletes == g->opts.deletes && files[i].spec_id == g->opts.spec_id &&
            !kn_manifest_file_is_dead(&files[i]))
            KN_TRY(read_input(g, w, &files[i], err));
    }
    sort_items(g);
    cut(g);
    drop_needless(g);
    kn_vec_done(&g->items);
    return KN_OK;
}

KnCode kn_regroup_plan(KnWriter *w, const KnRegroupOptions *opts, const KnManifestFile *files,
                       size_t n, KnRegroup **ret, KnErr *err)
{
    KnArena *arena = kn_arena_new(0);
    KnRegroup *g = kn_arena_zalloc(arena, sizeof(*g));
    *g = (KnRegroup){.arena = arena, .opts = *opts, .by_key = kn_map_new()};
    kn_buf_init(&g->key, (size_t)64 << 20);
    KnCode rc = plan(g, w, files, n, err);
    if (rc == KN_OK)
        *ret = g;
    else
        kn_regroup_free(g);
    return rc;
}

KnRegroup *kn_regroup_free(KnRegroup *g)
{
    if (!g)
        return NULL;
    kn_vec_done(&g->inputs);
    kn_vec_done(&g->items);
    kn_vec_done(&g->outputs);
    kn_vec_done(&g->parts);
    kn_map_free(g->by_key);
    kn_buf_done(&g->key);
    kn_arena_free(g->arena);
    return NULL;
}

size_t kn_regroup_inputs(const KnRegroup *g, const KnManifestFile **ret)
{
    KnManifestFile *files = kn_arena_alloc(g->arena, (g->inputs.len + 1) * sizeof(*files));
    for (size_t i = 0; i < g->inputs.len; i++)
        files[i] = g->inputs.items[i].file;
    *ret = files;
    return g->inputs.len;
}

int64_t kn_regroup_entries(const KnRegroup *g)
{
    return (int64_t)g->n_entries;
}

size_t kn_regroup_outputs(const KnRegroup *g)
{
    return g->outputs.len;
}

/* ---- writing ---- */

/* The new manifests that are written by one reading of the old ones. */
typedef struct Round {
    KnRegroup *group;
    KnWriter *w;
    KnArena *arena;  /* of the entries held */
    size_t first, n; /* places */
    const KnManifestEntry **entries;
    const Input *input; /* being read */
    size_t index;
    size_t n_held;
} Round;

static KnCode hold_entry(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    Round *round = arg;
    if (round->index >= round->input->n_entries)
        return kn_err_set(err, KN_E_CORRUPT, "manifest '%.300s' has changed while it was read",
                          round->input->file.path);
    size_t place = round->input->places[round->index++];
    if (place < round->first || place - round->first >= round->n)
        return KN_OK;
    KnManifestEntry *copy = kn_manifest_entry_copy(round->arena, entry);
    copy->status = KN_ENTRY_EXISTING;
    round->entries[place - round->first] = copy;
    round->n_held++;
    return KN_OK;
}

static bool has_any(const Input *input, const Round *round)
{
    for (size_t i = 0; i < input->n_entries; i++) {
        if (input->places[i] >= round->first && input->places[i] - round->first < round->n)
            return true;
    }
    return false;
}

static KnCode hold_entries(Round *round, KnErr *err)
{
    const KnTable *tbl = round->w->tbl;
    KnManifestVisit visit = {.opts = {.with_metrics = true}, .fn = hold_entry, .arg = round};
    kn_vec_foreach (&round->group->inputs, input) {
        if (!has_any(input, round))
            continue;
        KN_TRY(kn_writer_check_cancelled(round->w, err));
        round->input = input;
        round->index = 0;
        KN_TRY(kn_manifest_read(tbl->io, tbl->md, &input->file, &visit, err));
    }
    if (round->n_held != round->n)
        return kn_err_set(err, KN_E_CORRUPT,
                          "table %s: manifests have changed while they were read", tbl->name);
    return KN_OK;
}

static KnCode write_output(Round *round, const Output *out, KnManifestFile *ret, KnErr *err)
{
    KnWriter *w = round->w;
    KnManifestWrite write;
    KN_TRY(describe(round->group, w, &write, err));
    char uuid[37];
    const char *name = kn_arena_printf(w->arena, "optimized-m-%s.avro", kn_random_uuid4(uuid));
    write.path = kn_writer_meta_path(w, name);
    w->meta_files.len--; /* an attempt that fails does not lose it */
    *kn_vec_push(&w->data_files) = write.path;
    write.entries = round->entries + (out->first - round->first);
    write.n_entries = out->n;
    return kn_manifest_write(w->tbl->io, w->arena, &write, ret, err);
}

static KnCode run_round(Round *round, const Output *outs, size_t n, KnManifestFile *ret, KnErr *err)
{
    round->first = outs[0].first;
    round->n = outs[n - 1].first + outs[n - 1].n - outs[0].first;
    round->entries = kn_arena_zalloc(round->arena, (round->n + 1) * sizeof(KnManifestEntry *));
    KN_TRY(hold_entries(round, err));
    for (size_t i = 0; i < n; i++)
        KN_TRY(write_output(round, &outs[i], &ret[i], err));
    return KN_OK;
}

KnCode kn_regroup_write(KnRegroup *g, KnWriter *w, KnRegroupListener listener, KnManifestFile *ret,
                        KnErr *err)
{
    size_t memory = g->opts.memory ? g->opts.memory : KN_REGROUP_MEMORY;
    for (size_t i = 0; i < g->outputs.len;) {
        const Output *outs = &g->outputs.items[i];
        size_t n = 1;
        size_t held = outs[0].memory;
        while (i + n < g->outputs.len && held + outs[n].memory <= memory)
            held += outs[n++].memory;
        KN_ARENA_AUTO arena = kn_arena_new(0);
        Round round = {.group = g, .w = w, .arena = arena};
        KN_TRY(run_round(&round, outs, n, &ret[i], err));
        if (listener.fn)
            listener.fn(listener.arg, round.n);
        i += n;
    }
    return KN_OK;
}
