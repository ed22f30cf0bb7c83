/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.c - what the core of a served catalog needs in-process, without HTTP around it.
 *
 *   bench_core FOLDER [DB]      DB: a SQLite file (default FOLDER/catalog.db) or postgresql://…
 *
 * One line per operation: calls, wall and CPU time of each. FOLDER is filled with tables and left.
 * The goals: table_exists within 0.2 us, a commit within 0.3 ms of CPU (SQLite).
 */
#include "catalog/core/core.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TABLES = 50, LOOKUPS = 1000000, LOADS = 200000, LISTS = 2000, COMMITS = 400, THREADS = 16 };

typedef struct Bench {
    KnCatalogCore *core;
    KnErr err;
    int table; /* of a committing thread */
} Bench;

static const char *const levels[] = {"ns"};

static double seconds(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void must(KnCode rc, const Bench *bench)
{
    if (rc == KN_OK)
        return;
    fprintf(stderr, "bench_core: %s\n", bench->err.msg);
    exit(1);
}

static KnTableIdent ident_of(char name[16], int i)
{
    (void)snprintf(name, 16, "t%02d", i);
    return (KnTableIdent){.levels = levels, .n_levels = 1, .name = name};
}

static void make_tables(Bench *bench)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnNamespace ns = {levels, 1};
    KnSchema *schema = NULL;
    must(kn_core_namespace_create(bench->core, &ns, NULL, &bench->err), bench);
    must(kn_schema_parse_text(arena, kn_str("id long required, name string, ts timestamp"), &schema,
                              &bench->err),
         bench);
    const KnCreateTable create = {.format_version = 2, .schema = schema};
    for (int i = 0; i < TABLES; i++) {
        char name[16];
        KnTableIdent ident = ident_of(name, i);
        KN_DOCUMENT_AUTO doc = NULL;
        must(kn_core_table_create(bench->core, &ident, &create, false, &doc, &bench->err), bench);
    }
}

static void look_up(Bench *bench, int i)
{
    char name[16];
    KnTableIdent ident = ident_of(name, i % TABLES);
    bool there = false;
    must(kn_core_table_exists(bench->core, &ident, &there, &bench->err), bench);
}

/* What of a look-up is the making of the name. */
static void name_only(Bench *bench, int i)
{
    char name[16];
    KnTableIdent ident = ident_of(name, i % TABLES);
    __asm__ volatile("" : : "r"(ident.name), "r"(bench) : "memory");
}

static void load(Bench *bench, int i)
{
    char name[16];
    KnTableIdent ident = ident_of(name, i % TABLES);
    KN_DOCUMENT_AUTO doc = NULL;
    must(kn_core_table_load(bench->core, &ident, &doc, &bench->err), bench);
}

static void list(Bench *bench, int i)
{
    (void)i;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnNamespace ns = {levels, 1};
    KnNameList names;
    must(kn_core_table_list(bench->core, arena, &ns, NULL, &names, &bench->err), bench);
}

static void commit_to(Bench *bench, int table, int i)
{
    char name[16], value[16];
    KnTableIdent ident = ident_of(name, table);
    (void)snprintf(value, sizeof(value), "%d", i);
    KN_JSON_AUTO props = json_pack("{s:s}", "k", value);
    const KnUpdate update = {.kind = KN_UPDATE_SET_PROPERTIES, .properties = props};
    const KnTableCommit commit = {.updates = &update, .n_updates = 1};
    KN_DOCUMENT_AUTO doc = NULL;
    must(kn_core_table_commit(bench->core, &ident, &commit, &doc, &bench->err), bench);
}

static void commit(Bench *bench, int i)
{
    commit_to(bench, i % TABLES, i);
}

static void *commit_often(void *arg)
{
    Bench *bench = arg;
    for (int i = 0; i < COMMITS / THREADS; i++)
        commit_to(bench, bench->table, COMMITS + i);
    return NULL;
}

static void commit_at_once(Bench *bench, bool apart)
{
    pthread_t threads[THREADS];
    Bench each[THREADS];
    for (int t = 0; t < THREADS; t++) {
        each[t] = (Bench){.core = bench->core, .table = apart ? t : 0};
        if (pthread_create(&threads[t], NULL, commit_often, &each[t]) != 0)
            abort();
    }
    for (int t = 0; t < THREADS; t++)
        (void)pthread_join(threads[t], NULL);
}

/* Each thread has a table of its own: they share transactions. */
static void commit_apart(Bench *bench, int i)
{
    (void)i;
    commit_at_once(bench, true);
}

/* All have the same: they share documents too. */
static void commit_together(Bench *bench, int i)
{
    (void)i;
    commit_at_once(bench, false);
}

static void measure(Bench *bench, const char *what, int calls, int each, void (*fn)(Bench *, int))
{
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < calls; i++)
        fn(bench, i);
    cpu = (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / calls / each * 1e6;
    wall = (seconds(CLOCK_MONOTONIC) - wall) / calls / each * 1e6;
    printf("%-30s %9d  wall %10.3f us  cpu %10.3f us\n", what, calls * each, wall, cpu);
}

int main(int argc, char **argv)
{
    Bench bench = {0};
    char db[4096];
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: bench_core FOLDER [DB]\n");
        return 2;
    }
    (void)snprintf(db, sizeof(db), "%s/catalog.db", argv[1]);
    const KnCoreOptions opts = {
        .warehouse = argv[1], .db = argc > 2 ? argv[2] : db, .catalog = "bench", .create_db = true};
    must(kn_core_open(&opts, &bench.core, &bench.err), &bench);
    make_tables(&bench);
    measure(&bench, "(a name)", LOOKUPS, 1, name_only);
    bool memory = argc <= 2;
    measure(&bench, "table_exists", memory ? LOOKUPS : LISTS, 1, look_up);
    measure(&bench, "table_load", memory ? LOADS : LISTS, 1, load);
    measure(&bench, "table_list of 50", LISTS, 1, list);
    measure(&bench, "commit", COMMITS, 1, commit);
    measure(&bench, "commit, 16 threads, 16 tables", 1, COMMITS / THREADS * THREADS, commit_apart);
    measure(&bench, "commit, 16 threads, 1 table", 1, COMMITS / THREADS * THREADS, commit_together);
    kn_core_close(bench.core);
    return 0;
}
