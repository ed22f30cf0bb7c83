/* SPDX-License-Identifier: Apache-2.0 */
/* test_option.c - what words do to a struct, what messages say, what help looks like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/option.h"

typedef struct Sub {
    bool flag;
    int mode;
} Sub;

typedef struct Target {
    const char *table;
    KnOptList columns, where;
    int64_t limit, at_least;
    uint64_t memory;
    double interval;
    Sub sub;
} Target;

static const KnOption where_rows[] = {
    {.name = "table",
     .type = KN_OPT_TEXT,
     .offset = offsetof(Target, table),
     .value = "NS.NAME",
     .doc = "Table to read"},
    {.name = "columns",
     .type = KN_OPT_LIST,
     .offset = offsetof(Target, columns),
     .value = "C,...",
     .dflt = "a,b",
     .doc = "Columns to give"},
    {.name = "where",
     .type = KN_OPT_REPEAT,
     .offset = offsetof(Target, where),
     .value = "EXPR",
     .doc = "Condition"},
    {.name = "limit",
     .type = KN_OPT_INT,
     .offset = offsetof(Target, limit),
     .value = "N",
     .dflt = "10",
     .doc = "Most rows",
     .min = 1,
     .max = 100,
     .letter = 'n'},
    {.name = "at-least",
     .type = KN_OPT_INT,
     .offset = offsetof(Target, at_least),
     .value = "N",
     .doc = "Fewest rows",
     .min = 1,
     .max = INT64_MAX},
    {.name = "memory-limit",
     .type = KN_OPT_BYTES,
     .offset = offsetof(Target, memory),
     .value = "SIZE",
     .dflt = "64MiB",
     .doc = "Memory that the engine may use before it writes to the disk, which is slower but "
            "does not fail"},
    {.name = "interval",
     .type = KN_OPT_SECONDS,
     .offset = offsetof(Target, interval),
     .value = "TIME",
     .doc = "Pause"},
};
static const KnOption sub_rows[] = {
    {.name = "dry-run", .type = KN_OPT_FLAG, .offset = offsetof(Sub, flag), .doc = "Only say"},
    {.name = "mode",
     .type = KN_OPT_CHOICE,
     .offset = offsetof(Sub, mode),
     .value = "append|upsert",
     .dflt = "upsert",
     .doc = "How rows are written"},
};
static const KnOptGroup groups[] = {
    {"What to read", where_rows, sizeof(where_rows) / sizeof(where_rows[0]), 0},
    {"How", sub_rows, sizeof(sub_rows) / sizeof(sub_rows[0]), offsetof(Target, sub)},
};
static const KnOptSpec no_words = {groups, 2, NULL};
static const KnOptSpec with_words = {groups, 2, "FILE..."};

enum { MAX_WORDS = 32 };

/* Words are given separated by blanks. */
static KnCode parse(const KnOptSpec *spec, KnArena *arena, const char *line, Target *target,
                    KnOptList *words, KnErr *err)
{
    char *argv[MAX_WORDS];
    int argc = 0;
    char *text = kn_arena_strdup(arena, line), *save = NULL;
    for (char *w = strtok_r(text, " ", &save); w && argc < MAX_WORDS;
         w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    return kn_options_parse(spec, (KnArgs){argc, argv}, arena, target, words, err);
}

static void defaults_come_first(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Target t;
    memset(&t, 0xff, sizeof(t));
    assert_int_equal(parse(&no_words, arena, "", &t, NULL, NULL), KN_OK);
    assert_null(t.table);
    assert_int_equal(t.columns.len, 2);
    assert_string_equal(t.columns.items[1], "b");
    assert_int_equal(t.where.len, 0);
    assert_int_equal(t.limit, 10);
    assert_int_equal(t.at_least, 0);
    assert_int_equal(t.memory, 64 << 20);
    assert_true(t.interval == 0);
    assert_false(t.sub.flag);
    assert_int_equal(t.sub.mode, 1);
}

static void every_type_is_taken_in_both_spellings(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Target t;
    KnErr err = {0};
    if (parse(&no_words, arena,
              "--table ns.t --columns=x --columns y,z --where a<1,2 --where b -n 7 --at-least=-3",
              &t, NULL, &err) == KN_OK)
        fail_msg("a value below the bound was taken");
    assert_int_equal(parse(&no_words, arena,
                           "--table ns.t --columns=x --columns y,z --where a<1,2 --where b -n 7 "
                           "--memory-limit=1k --interval 500ms --dry-run --mode append",
                           &t, NULL, &err),
                     KN_OK);
    assert_string_equal(t.table, "ns.t");
    assert_int_equal(t.columns.len, 3); /* the default a,b is gone */
    assert_string_equal(t.columns.items[0], "x");
    assert_string_equal(t.columns.items[2], "z");
    assert_int_equal(t.where.len, 2);
    assert_string_equal(t.where.items[0], "a<1,2");
    assert_int_equal(t.limit, 7);
    assert_int_equal(t.memory, 1024);
    assert_true(t.interval == 0.5);
    assert_true(t.sub.flag);
    assert_int_equal(t.sub.mode, 0);
}

static void durations_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        double seconds;
    } cases[] = {{"--interval 1.5", 1.5}, {"--interval 2m", 120},   {"--interval 1h", 3600},
                 {"--interval 30s", 30},  {"--interval 1d", 86400}, {"--interval 0", 0}};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        Target t;
        assert_int_equal(parse(&no_words, arena, cases[i].line, &t, NULL, NULL), KN_OK);
        assert_true(t.interval == cases[i].seconds);
    }
}

static void other_words_are_positional_when_they_may_be(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Target t;
    KnOptList words = {0};
    KnErr err = {0};
    assert_int_equal(parse(&with_words, arena, "a --limit 3 - -- --limit -x", &t, &words, &err),
                     KN_OK);
    assert_int_equal(words.len, 4);
    assert_string_equal(words.items[1], "-");
    assert_string_equal(words.items[2], "--limit");
    assert_int_equal(t.limit, 3);
    assert_int_equal(parse(&no_words, arena, "a", &t, NULL, &err), KN_E_INVAL);
    assert_string_equal(err.msg, "unexpected word 'a': only options are taken here");
}

static void messages_say_what_is_wrong_and_what_would_be_right(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"--tabel x", "unknown option '--tabel': did you mean --table?"},
        {"--tabel=x", "unknown option '--tabel=x': did you mean --table?"},
        {"--zzzzzzzz", "unknown option '--zzzzzzzz': see --help"},
        {"-z", "unknown option '-z': see --help"},
        {"-nx", "unknown option '-nx': see --help"},
        {"--limit 1 --limit 2", "--limit is given twice"},
        {"-n 1 --limit 2", "--limit is given twice"},
        {"--table", "--table needs a value: --table NS.NAME"},
        {"--table --dry-run", "--table needs a value: --table NS.NAME (or --table=--dry-run when "
                              "that is the value)"},
        {"--limit 0", "--limit: 0 is not within 1..100"},
        {"--limit 101", "--limit: 101 is not within 1..100"},
        {"--limit 1.5", "--limit: '1.5' is not a whole number"},
        {"--at-least 0", "--at-least: 0 is too small, give at least 1"},
        {"--memory-limit much", "--memory-limit: 'much' is not a size: give 1000000, 64MiB or 2GB"},
        {"--interval -1", "--interval: '-1' is not a duration: give 1.5, 500ms, 30s, 2m, 1h or 1d"},
        {"--interval s", "--interval: 's' is not a duration: give 1.5, 500ms, 30s, 2m, 1h or 1d"},
        {"--mode replace", "--mode: 'replace' is not one of append|upsert"},
        {"--mode append|upsert", "--mode: 'append|upsert' is not one of append|upsert"},
        {"--dry-run=true", "--dry-run takes no value"},
        {"--columns a,,b", "--columns: 'a,,b' holds an empty item"},
        {"--columns=", "--columns: '' holds an empty item"},
    };
    KN_ARENA_AUTO arena = kn_arena_new(0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        Target t;
        KnErr err = {0};
        assert_int_equal(parse(&no_words, arena, cases[i].line, &t, NULL, &err), KN_E_INVAL);
        assert_string_equal(err.msg, cases[i].message);
    }
}

static void rows_serve_configuration_files_too(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Target t = {0};
    size_t base = 0;
    const KnOption *dry_run = kn_option_find(&no_words, kn_str("dry-run"), &base);
    assert_non_null(dry_run);
    assert_int_equal(base, offsetof(Target, sub));
    assert_null(kn_option_find(&no_words, kn_str("dry"), NULL));
    KnErr err = {0};
    const char *origin = "knut.yaml: dry-run";
    assert_int_equal(kn_option_set(dry_run, origin, "true", arena, &t.sub, &err), KN_OK);
    assert_true(t.sub.flag);
    assert_int_equal(kn_option_set(dry_run, origin, "maybe", arena, &t.sub, &err), KN_E_INVAL);
    assert_string_equal(err.msg, "knut.yaml: dry-run: 'maybe' is neither true nor false");
    assert_true(t.sub.flag);
    const KnOption *limit = kn_option_find(&no_words, kn_str("limit"), NULL);
    assert_int_equal(kn_option_set(limit, "limit", NULL, arena, &t, &err), KN_E_INVAL);
    assert_string_equal(err.msg, "limit: needs a value (N)");
}

static void help_is_aligned_and_wrapped(void **state)
{
    (void)state;
    KN_BUF_AUTO out;
    kn_buf_init(&out, 10000);
    kn_options_help(&no_words, &out);
    assert_string_equal(out.data,
                        "What to read:\n"
                        "  --table NS.NAME       Table to read\n"
                        "  --columns C,...       Columns to give (may be repeated; default a,b)\n"
                        "  --where EXPR          Condition (may be repeated)\n"
                        "  -n, --limit N         Most rows (1 to 100; default 10)\n"
                        "  --at-least N          Fewest rows (at least 1)\n"
                        "  --memory-limit SIZE   Memory that the engine may use before it writes "
                        "to the disk, which "
                        "is slower\n"
                        "                        but does not fail (default 64MiB)\n"
                        "  --interval TIME       Pause\n"
                        "\n"
                        "How:\n"
                        "  --dry-run             Only say\n"
                        "  --mode append|upsert  How rows are written (default upsert)\n");
}

static void a_very_long_flag_has_its_text_on_the_next_line(void **state)
{
    (void)state;
    static const KnOption rows[] = {
        {.name = "x", .type = KN_OPT_FLAG, .doc = "Short"},
        {.name = "a-name-that-is-longer-than-the-column", .type = KN_OPT_FLAG, .doc = "Long"},
    };
    const KnOptGroup group = {"G", rows, 2, 0};
    const KnOptSpec spec = {&group, 1, NULL};
    KN_BUF_AUTO out;
    kn_buf_init(&out, 10000);
    kn_options_help(&spec, &out);
    assert_string_equal(out.data, "G:\n"
                                  "  --x  Short\n"
                                  "  --a-name-that-is-longer-than-the-column\n"
                                  "       Long\n");
}

static void markdown_escapes_the_bar(void **state)
{
    (void)state;
    KN_BUF_AUTO out;
    kn_buf_init(&out, 10000);
    kn_options_markdown(&no_words, &out);
    assert_non_null(strstr(out.data, "### What to read\n\n| option | meaning |\n| --- | --- |\n"
                                     "| `--table NS.NAME` | Table to read |\n"));
    assert_non_null(strstr(out.data, "| `--mode append\\|upsert` | How rows are written (default "
                                     "upsert) |\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_come_first),
        cmocka_unit_test(every_type_is_taken_in_both_spellings),
        cmocka_unit_test(durations_have_units),
        cmocka_unit_test(other_words_are_positional_when_they_may_be),
        cmocka_unit_test(messages_say_what_is_wrong_and_what_would_be_right),
        cmocka_unit_test(rows_serve_configuration_files_too),
        cmocka_unit_test(help_is_aligned_and_wrapped),
        cmocka_unit_test(a_very_long_flag_has_its_text_on_the_next_line),
        cmocka_unit_test(markdown_escapes_the_bar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
