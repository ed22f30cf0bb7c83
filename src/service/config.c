/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - knut.yaml to deliveries; see config.h.
 *
 * Each delivery's settings are made by applying sections one over the other: the rows' defaults,
 * `defaults`, its source, its sink, its own keys. A config owns one arena and is refcounted, as
 * deliveries of an older file may run on while a newer one is in force.
 */
#include "service/config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/path.h"
#include "service/config_internal.h"

typedef struct Config {
    KnServiceConfig base; /* first */
    KnArena *arena;
    _Atomic int refs;
} Config;

typedef struct Builder {
    KnConfigFile file;
    const KnYaml *defaults, *sources, *sinks;
    KnSection source, sink, dflt, own;
    Config *config;
} Builder;

/* ---- what may stand where ---- */

#define ROW(n, t, f, v, d)                                                                         \
    {                                                                                              \
        .name = (n), .type = (t), .offset = offsetof(KnServiceOptions, f), .value = (v),           \
        .doc = (d)                                                                                 \
    }
static const KnOption service_rows[] = {
    {.name = "state",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnServiceOptions, state),
     .value = "FILE",
     .dflt = "knut-state.db",
     .doc = "Journal of all deliveries"},
    {.name = "workers",
     .type = KN_OPT_INT,
     .offset = offsetof(KnServiceOptions, workers),
     .value = "N",
     .dflt = "4",
     .min = 1,
     .max = 64,
     .doc = "Deliveries that work at the same time"},
    {.name = "memory-limit",
     .type = KN_OPT_BYTES,
     .offset = offsetof(KnServiceOptions, memory_limit),
     .value = "SIZE",
     .dflt = "512MiB",
     .doc = "Memory of the engines of all workers together"},
    {.name = "threads",
     .type = KN_OPT_INT,
     .offset = offsetof(KnServiceOptions, threads),
     .value = "N",
     .dflt = "0",
     .min = 0,
     .max = 1024,
     .doc = "Threads of all engines together; 0 is two for each processor"},
    ROW("spill-dir", KN_OPT_TEXT, spill_dir, "DIR", "Folder for spilled data"),
    ROW("listen", KN_OPT_TEXT, listen, "ADDR",
        "Answer /health, /ready, /metrics and /status there"),
    ROW("lineage", KN_OPT_TEXT, lineage, "URL|file:PATH", "Send OpenLineage events there"),
    {.name = "lineage-namespace",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnServiceOptions, lineage_namespace),
     .value = "NAME",
     .dflt = "knut",
     .doc = "Namespace of the jobs in those events"},
    ROW("airflow", KN_OPT_TEXT, airflow, "URL", "Tell this Airflow of each delivered table"),
    {.name = "airflow-prefix",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnServiceOptions, airflow_prefix),
     .value = "PREFIX",
     .dflt = "iceberg://",
     .doc = "What comes before the table's name in the URI of an asset"},
};
#undef ROW

const KnOptGroup kn_service_rows = {
    .title = "The service",
    .options = service_rows,
    .n_options = sizeof(service_rows) / sizeof(service_rows[0]),
};

enum { N_OWN_GROUPS = 3, N_GROUPS = N_OWN_GROUPS + KN_N_LOCATOR_GROUPS };

static void make_sections(Builder *b)
{
    static const char *const words[] = {"name", "source", "sink", NULL};
    static const char *const not_of_source[] = {"table", NULL};
    static const char *const not_of_sink[] = {"target", "state", "ref", "key", NULL};
    static const char *const not_of_all[] = {"table", "target", "root", "metadata", "state", NULL};
    static const char *const not_of_one[] = {"state", NULL};
    static const char *const default_words[] = {"source", "sink", NULL};
    KnOptGroup *groups = kn_arena_zalloc(b->file.arena, N_GROUPS * sizeof(*groups));
    groups[0] = kn_delivery_setting_rows;
    groups[1] = kn_delivery_share_rows;
    groups[2] = kn_delivery_pace_rows;
    for (size_t i = 0; i < KN_N_LOCATOR_GROUPS; i++) {
        groups[N_OWN_GROUPS + i] = kn_locator_groups[i];
        groups[N_OWN_GROUPS + i].base += offsetof(KnDeliverySettings, loc);
    }
    const KnOptSpec all = {.groups = groups, .n_groups = N_GROUPS};
    const KnOptSpec place = {.groups = groups + N_OWN_GROUPS, .n_groups = KN_N_LOCATOR_GROUPS};
    const KnOptSpec what = {.groups = groups, .n_groups = 2};
    b->source = (KnSection){"a source", place, not_of_source, NULL};
    b->sink = (KnSection){"a sink", what, not_of_sink, NULL};
    b->dflt = (KnSection){"'defaults'", all, not_of_all, default_words};
    b->own = (KnSection){"a delivery", all, not_of_one, words};
}

/* ---- one delivery ---- */

/* A word of the delivery, else of the defaults. */
static const KnYaml *find_word(const Builder *b, const KnYaml *node, const char *word)
{
    const KnYaml *own = kn_yaml_find(node, word);
    return own || !b->defaults ? own : kn_yaml_find(b->defaults, word);
}

static KnCode apply_source(const Builder *b, const KnYaml *node, KnServiceDelivery *dlv, KnErr *err)
{
    const KnYaml *word = find_word(b, node, "source");
    const char *name = NULL;
    if (!word)
        return KN_OK;
    KN_TRY(kn_config_text(&b->file, word, &name, err));
    const KnYaml *section = b->sources ? kn_yaml_find(b->sources, name) : NULL;
    if (!section)
        return kn_config_wrong(&b->file, word, err, "there is no source '%.100s'%s", name,
                               kn_config_nearest(&b->file, b->sources, name));
    return kn_config_apply(&b->file, section, &b->source, &dlv->set, &dlv->print, err);
}

static KnCode apply_sink(const Builder *b, const KnYaml *node, KnServiceDelivery *dlv, KnErr *err)
{
    const KnYaml *word = find_word(b, node, "sink");
    const char *name = NULL;
    if (!word)
        return kn_config_wrong(&b->file, node, err, "a delivery needs a sink");
    KN_TRY(kn_config_text(&b->file, word, &name, err));
    const KnYaml *section = b->sinks ? kn_yaml_find(b->sinks, name) : NULL;
    if (section && section->kind == KN_YAML_MAP)
        return kn_config_apply(&b->file, section, &b->sink, &dlv->set, &dlv->print, err);
    if (section)
        return kn_config_text(&b->file, section, &dlv->set.sink, err);
    if (!strchr(name, ':'))
        return kn_config_wrong(&b->file, word, err, "there is no sink '%.100s'%s", name,
                               kn_config_nearest(&b->file, b->sinks, name));
    dlv->set.sink = name;
    return KN_OK;
}

static KnCode name_it(const Builder *b, const KnYaml *node, KnServiceDelivery *dlv, KnErr *err)
{
    const KnYaml *word = kn_yaml_find(node, "name");
    const KnLocator *loc = &dlv->set.loc;
    if (word) {
        KN_TRY(kn_config_text(&b->file, word, &dlv->name, err));
    } else {
        const char *place = loc->root ? loc->root : loc->metadata;
        KnStr last = place ? kn_path_basename(kn_str(place)) : KN_STR_LIT("");
        dlv->name = loc->table ? loc->table : kn_arena_strndup(b->file.arena, last.ptr, last.len);
    }
    if (!*dlv->name)
        return kn_config_wrong(&b->file, node, err, "give this delivery a name");
    for (const KnServiceDelivery *other = b->config->base.deliveries; other < dlv; other++)
        if (!strcmp(other->name, dlv->name))
            return kn_config_wrong(&b->file, word ? word : node, err,
                                   "the delivery in line %d is called '%.100s' too: give one a "
                                   "name of its own",
                                   other->line, dlv->name);
    return KN_OK;
}

/* The target as it is written, else the table's own name; NULL = known only from the table. */
static const char *target_of(const Builder *b, const KnDeliverySettings *set)
{
    KnTableIdent ident = {0};
    if (set->target)
        return set->target;
    if (!set->loc.table ||
        kn_table_ident_parse(b->file.arena, kn_str(set->loc.table), &ident, NULL) != KN_OK)
        return NULL;
    return ident.name;
}

/* "main.orders" of either. */
static const char *full_target(const Builder *b, const KnDeliverySettings *set)
{
    const char *schema = NULL, *table = NULL, *target = target_of(b, set);
    if (!target || kn_sink_target_parse(b->file.arena, target, &schema, &table, NULL) != KN_OK)
        return NULL;
    return kn_arena_printf(b->file.arena, "%s.%s", schema, table);
}

/* Two deliveries into one table would undo each other's rows. */
static KnCode check_target(const Builder *b, const KnServiceDelivery *dlv, KnErr *err)
{
    const char *target = full_target(b, &dlv->set);
    for (const KnServiceDelivery *other = b->config->base.deliveries; target && other < dlv;
         other++) {
        const char *theirs = full_target(b, &other->set);
        if (theirs && !strcmp(theirs, target) && !strcmp(other->sink_id, dlv->sink_id))
            return kn_err_set(err, KN_E_INVAL, "'%s' in line %d delivers into %s too", other->name,
                              other->line, target);
    }
    return KN_OK;
}

static KnCode check_delivery(const Builder *b, KnServiceDelivery *dlv, KnErr *err)
{
    KnArena *arena = b->file.arena;
    const char *schema = NULL, *table = NULL;
    const char *target = target_of(b, &dlv->set);
    KnSinkOptions opts = {.target = target ? target : "t"};
    KN_TRY(kn_locator_check(&dlv->set.loc, err));
    if (!dlv->set.sink)
        return kn_err_set(err, KN_E_INVAL, "its sink says no place: give it 'sink: KIND:PLACE'");
    KN_TRY(kn_sink_find(dlv->set.sink, &dlv->sink_ops, &opts.place, err));
    KN_TRY(kn_sink_target_parse(arena, opts.target, &schema, &table, err));
    KnCode rc = dlv->sink_ops->identify(&opts, arena, &dlv->sink_id, err);
    if (rc == KN_E_INVAL)
        return rc;
    if (rc != KN_OK) /* a folder that is not there stops this delivery only, when it runs */
        dlv->sink_id = dlv->set.sink;
    return check_target(b, dlv, err);
}

static KnCode add_delivery(const Builder *b, const KnYaml *node, KnServiceDelivery *dlv, KnErr *err)
{
    if (node->kind != KN_YAML_MAP)
        return kn_config_wrong(&b->file, node, err, "a delivery is a map of keys and values");
    dlv->line = node->line;
    KN_TRY(kn_options_parse(&b->own.spec, (KnArgs){0}, b->file.arena, &dlv->set, NULL, err));
    if (b->defaults)
        KN_TRY(kn_config_apply(&b->file, b->defaults, &b->dflt, &dlv->set, &dlv->print, err));
    KN_TRY(apply_source(b, node, dlv, err));
    KN_TRY(apply_sink(b, node, dlv, err));
    KN_TRY(kn_config_apply(&b->file, node, &b->own, &dlv->set, &dlv->print, err));
    dlv->print = kn_hash64(dlv->set.sink ? dlv->set.sink : "",
                           dlv->set.sink ? strlen(dlv->set.sink) : 0, dlv->print);
    dlv->set.state = b->config->base.opts.state;
    KN_TRY(name_it(b, node, dlv, err));
    KnCode rc = check_delivery(b, dlv, err);
    return rc == KN_OK ? KN_OK
                       : kn_err_wrap(err, rc, "%s:%d:%d: delivery %.100s", b->file.name, node->line,
                                     node->column, dlv->name);
}

/* ---- the file ---- */

static KnCode take_map(const Builder *b, const KnYaml *root, const char *key, const KnYaml **ret,
                       KnErr *err)
{
    const KnYaml *node = kn_yaml_find(root, key);
    if (node && node->kind != KN_YAML_MAP)
        return kn_config_wrong(&b->file, node, err, "expected names with their keys");
    *ret = node;
    return KN_OK;
}

/* Sections that no delivery uses are checked as well. */
static KnCode check_unused(const Builder *b, const KnYaml *map, const KnSection *section,
                           KnErr *err)
{
    for (size_t i = 0; map && i < map->n; i++) {
        KnDeliverySettings set = {0};
        if (section == &b->sink && map->items[i]->kind == KN_YAML_SCALAR && !map->items[i]->empty)
            continue;
        KN_TRY(kn_config_apply(&b->file, map->items[i], section, &set, NULL, err));
    }
    return KN_OK;
}

static KnCode check_limits(const Builder *b, KnErr *err)
{
    const KnServiceOptions *opts = &b->config->base.opts;
    uint64_t least = (uint64_t)opts->workers * KN_SERVICE_MIN_MEMORY_MB << 20;
    if (opts->memory_limit >= least)
        return KN_OK;
    return kn_err_set(err, KN_E_INVAL,
                      "%s: %lld workers need a memory-limit of %lluMiB: raise it, or have fewer "
                      "workers",
                      b->file.name, (long long)opts->workers, (unsigned long long)(least >> 20));
}

static KnCode build(Builder *b, const KnYaml *root, KnErr *err)
{
    static const char *const words[] = {"defaults", "sources", "sinks", "deliveries", NULL};
    KnServiceConfig *config = &b->config->base;
    const KnSection top = {"knut.yaml", {.groups = &kn_service_rows, .n_groups = 1}, NULL, words};
    KN_TRY(kn_options_parse(&top.spec, (KnArgs){0}, b->file.arena, &config->opts, NULL, err));
    KN_TRY(kn_config_apply(&b->file, root, &top, &config->opts, NULL, err));
    KN_TRY(check_limits(b, err));
    KN_TRY(take_map(b, root, "defaults", &b->defaults, err));
    KN_TRY(take_map(b, root, "sources", &b->sources, err));
    KN_TRY(take_map(b, root, "sinks", &b->sinks, err));
    KN_TRY(check_unused(b, b->sources, &b->source, err));
    KN_TRY(check_unused(b, b->sinks, &b->sink, err));
    const KnYaml *list = kn_yaml_find(root, "deliveries");
    if (!list || list->kind != KN_YAML_LIST || !list->n)
        return kn_config_wrong(&b->file, list ? list : root, err,
                               "'deliveries' must be a list with at least one entry");
    config->deliveries = kn_arena_zalloc(b->file.arena, list->n * sizeof(*config->deliveries));
    for (size_t i = 0; i < list->n; i++) {
        KN_TRY(add_delivery(b, list->items[i], &config->deliveries[i], err));
        config->n++;
    }
    return KN_OK;
}

KnCode kn_service_config_parse(const char *name, KnStr text, KnServiceConfig **ret, KnErr *err)
{
    KnArena *arena = kn_arena_new(16384);
    Config *config = kn_arena_zalloc(arena, sizeof(*config));
    Builder b = {.file = {.arena = arena, .name = kn_arena_strdup(arena, name)}, .config = config};
    KnYaml *root = NULL;
    config->arena = arena;
    config->base.path = b.file.name;
    atomic_store(&config->refs, 1);
    make_sections(&b);
    KnCode rc = kn_yaml_parse(arena, b.file.name, text, &root, err);
    if (rc == KN_OK)
        rc = build(&b, root, err);
    if (rc != KN_OK) {
        (void)kn_arena_free(arena);
        return rc;
    }
    *ret = &config->base;
    return KN_OK;
}

static KnCode read_all(const char *path, FILE *file, KnBuf *out, KnErr *err)
{
    char block[16384];
    size_t n;
    while ((n = fread(block, 1, sizeof(block), file)) > 0)
        kn_buf_append(out, block, n);
    if (ferror(file))
        return kn_err_set(err, KN_E_IO, "%s: %s", path, kn_errno_text(errno));
    if (kn_buf_check(out, NULL) != KN_OK)
        return kn_err_set(err, KN_E_INVAL, "%s: larger than %d MiB", path, KN_YAML_MAX_BYTES >> 20);
    return KN_OK;
}

KnCode kn_service_config_load(const char *path, KnServiceConfig **ret, KnErr *err)
{
    KN_BUF_AUTO text;
    kn_buf_init(&text, KN_YAML_MAX_BYTES);
    FILE *file = fopen(path, "re");
    if (!file)
        return kn_err_set(err, errno == ENOENT ? KN_E_NOTFOUND : KN_E_IO, "%s: %s", path,
                          kn_errno_text(errno));
    KnCode rc = read_all(path, file, &text, err);
    if (fclose(file) != 0 && rc == KN_OK)
        rc = kn_err_set(err, KN_E_IO, "%s: %s", path, kn_errno_text(errno));
    KN_TRY(rc);
    return kn_service_config_parse(path, (KnStr){text.data ? text.data : "", text.len}, ret, err);
}

KnServiceConfig *kn_service_config_ref(KnServiceConfig *config)
{
    atomic_fetch_add(&((Config *)config)->refs, 1);
    return config;
}

KnServiceConfig *kn_service_config_unref(KnServiceConfig *config)
{
    Config *own = (Config *)config;
    if (own && atomic_fetch_sub(&own->refs, 1) == 1) {
        KnArena *arena = own->arena;
        (void)kn_arena_free(arena);
    }
    return NULL;
}

KnCode kn_service_config_find(const KnServiceConfig *config, const char *name,
                              const KnServiceDelivery **ret, KnErr *err)
{
    KN_BUF_AUTO names;
    kn_buf_init(&names, 512);
    for (size_t i = 0; i < config->n; i++) {
        if (!strcmp(config->deliveries[i].name, name)) {
            *ret = &config->deliveries[i];
            return KN_OK;
        }
        kn_buf_printf(&names, "%s%s", i ? ", " : "", config->deliveries[i].name);
    }
    return kn_err_set(err, KN_E_NOTFOUND, "%s has no delivery '%.100s'; it has: %s%s", config->path,
                      name, names.failed ? "many, '" : names.data,
                      names.failed ? "knut cdc check -c' lists them" : "");
}
