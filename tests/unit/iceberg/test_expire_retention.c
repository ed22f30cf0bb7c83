/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_expire_retention.c - which snapshots and refs stay. The rows are the cases of Java's
 * TestRemoveSnapshots, in days: now is day 100.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "iceberg/maintain/expire.h"

#define DAY (INT64_C(24) * 3600 * 1000)

typedef struct Snap {
    int id, parent, day;
} Snap;
typedef struct Ref {
    const char *name;
    int at;
    bool tag;
    int min, snapshot_days, ref_days; /* 0 = not said */
} Ref;
typedef struct Case {
    const char *what;
    Snap snaps[8];
    Ref refs[5];
    const char *props[5]; /* key, value, ... */
    int older_than_day;   /* 0 = not said */
    int retain_last;
    int ids[3];
    const char *gone; /* snapshots, then refs; or the failure */
} Case;

/* Snapshots 1 to 4, one a day from day 10 on; main at the last. */
#define FOUR                                                                                       \
    {                                                                                              \
        {1, 0, 10}, {2, 1, 20}, {3, 2, 30},                                                        \
        {                                                                                          \
            4, 3, 40                                                                               \
        }                                                                                          \
    }

static const Case cases[] = {
    {.what = "nothing in an empty table", .gone = ""},
    {.what = "only the head stays of an old branch",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .gone = "1 2 3"},
    {.what = "five days is the age when nobody says one",
     .snaps = {{1, 0, 90}, {2, 1, 95}, {3, 2, 99}},
     .refs = {{.name = "main", .at = 3}},
     .gone = "1"},
    {.what = "the table's age",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .props = {"history.expire.max-snapshot-age-ms", "6912000000"}, /* 80 days: from day 20 on */
     .gone = "1"},
    {.what = "--older-than is before the table's age",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .props = {"history.expire.max-snapshot-age-ms", "6912000000"},
     .older_than_day = 30,
     .gone = "1 2"},
    {.what = "a snapshot of exactly that time stays",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .older_than_day = 20,
     .gone = "1"},
    {.what = "retain-last keeps the newest whatever their age",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .older_than_day = 99,
     .retain_last = 2,
     .gone = "1 2"},
    {.what = "retain-last with too few",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .older_than_day = 99,
     .retain_last = 9,
     .gone = ""},
    {.what = "the table's min-snapshots-to-keep",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .props = {"history.expire.min-snapshots-to-keep", "3"},
     .older_than_day = 99,
     .gone = "1"},
    {.what = "retain-last is before the table's",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .props = {"history.expire.min-snapshots-to-keep", "3"},
     .older_than_day = 99,
     .retain_last = 1,
     .gone = "1 2 3"},
    {.what = "an id goes though retain-last would keep it",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .older_than_day = 1,
     .retain_last = 4,
     .ids = {1},
     .gone = "1"},
    {.what = "two ids",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .older_than_day = 1,
     .ids = {1, 3},
     .gone = "1 3"},
    {.what = "the current snapshot's id is refused",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .older_than_day = 1,
     .ids = {4},
     .gone = "refused: cannot expire snapshot 4: branch main names it"},
    {.what = "a tag's too",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}, {.name = "v1", .at = 2, .tag = true}},
     .older_than_day = 1,
     .ids = {2},
     .gone = "refused: cannot expire snapshot 2: tag v1 names it"},
    {.what = "an id that is not there",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .ids = {7},
     .gone = "not-found: there is no snapshot 7"},
    {.what = "a tag keeps its snapshot and not its ancestors",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}, {.name = "v1", .at = 2, .tag = true}},
     .gone = "1 3"},
    {.what = "a tag that is too old goes, and its snapshot",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}, {.name = "v1", .at = 2, .tag = true, .ref_days = 70}},
     .gone = "1 2 3 v1"},
    {.what = "a tag of exactly its age stays",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}, {.name = "v1", .at = 2, .tag = true, .ref_days = 80}},
     .gone = "1 3"},
    {.what = "the table's age of refs",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4},
              {.name = "v1", .at = 2, .tag = true},
              {.name = "dev", .at = 3}},
     .props = {"history.expire.max-ref-age-ms", "6480000000"}, /* 75 days: from day 25 on */
     .gone = "1 2 v1"},
    {.what = "a ref's own age is before the table's",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}, {.name = "v1", .at = 2, .tag = true, .ref_days = 90}},
     .props = {"history.expire.max-ref-age-ms", "86400000"},
     .gone = "1 3"},
    {.what = "main never ages",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4, .ref_days = 1}},
     .older_than_day = 99,
     .gone = "1 2 3"},
    {.what = "a branch keeps its head",
     .snaps = {{1, 0, 10}, {2, 1, 20}, {3, 1, 30}},
     .refs = {{.name = "main", .at = 2}, {.name = "dev", .at = 3}},
     .gone = "1"},
    {.what = "a branch's own number",
     .snaps = {{1, 0, 10}, {2, 1, 20}, {3, 2, 25}, {4, 1, 40}},
     .refs = {{.name = "main", .at = 4}, {.name = "dev", .at = 3, .min = 2}},
     .older_than_day = 99,
     .gone = "1"},
    {.what = "a branch's own age is before --older-than",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4, .snapshot_days = 75}},
     .older_than_day = 99,
     .gone = "1 2"},
    {.what = "the most generous of two branches counts",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}, {.name = "dev", .at = 4, .min = 3}},
     .older_than_day = 99,
     .gone = "1"},
    {.what = "a branch that is too old goes with what only it had",
     .snaps = {{1, 0, 10}, {2, 1, 20}, {3, 1, 30}},
     .refs = {{.name = "main", .at = 2}, {.name = "dev", .at = 3, .ref_days = 60}},
     .older_than_day = 5,
     .gone = "dev"}, /* 3 is now of no branch, and young enough */
    {.what = "an old branch's snapshots go by the general age",
     .snaps = {{1, 0, 10}, {2, 1, 20}, {3, 1, 30}},
     .refs = {{.name = "main", .at = 2}, {.name = "dev", .at = 3, .ref_days = 60}},
     .older_than_day = 50,
     .gone = "1 3 dev"},
    {.what = "a staged snapshot stays while it is young",
     .snaps = {{1, 0, 97}, {2, 1, 98}, {3, 1, 90}},
     .refs = {{.name = "main", .at = 2}},
     .gone = "3"},
    {.what = "what was rolled back from stays while it is young",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 2}},
     .older_than_day = 35,
     .gone = "1 3"},
    {.what = "an ancestor of a tag alone is of no branch, and judged by its age",
     .snaps = {{1, 0, 96}, {2, 1, 97}, {3, 0, 98}},
     .refs = {{.name = "main", .at = 3}, {.name = "v1", .at = 2, .tag = true}},
     .older_than_day = 97,
     .gone = "1"},
    {.what = "keeping ends at the first that goes, though an older one has a younger time",
     .snaps = {{1, 0, 50}, {2, 1, 20}, {3, 2, 60}},
     .refs = {{.name = "main", .at = 3}},
     .older_than_day = 40,
     .gone = "1 2"},
    {.what = "a parent that has gone ends the walk",
     .snaps = {{3, 2, 30}, {4, 3, 40}},
     .refs = {{.name = "main", .at = 4}},
     .older_than_day = 99,
     .retain_last = 5,
     .gone = ""},
    {.what = "a ref to nothing goes",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}, {.name = "lost", .at = 9, .tag = true}},
     .older_than_day = 1,
     .gone = "lost"},
    {.what = "an endless age",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .props = {"history.expire.max-snapshot-age-ms", "9223372036854775807"},
     .gone = ""},
    {.what = "a property that is no number is refused",
     .snaps = FOUR,
     .refs = {{.name = "main", .at = 4}},
     .props = {"history.expire.max-snapshot-age-ms", "5d"},
     .gone = "invalid-argument: table property history.expire.max-snapshot-age-ms is '5d', which "
             "is no number"},
};

static size_t fill_snapshots(const Case *c, KnSnapshot *snaps)
{
    size_t n = 0;
    for (; n < 8 && c->snaps[n].id; n++)
        snaps[n] = (KnSnapshot){.snapshot_id = c->snaps[n].id,
                                .parent_id = c->snaps[n].parent ? c->snaps[n].parent : -1,
                                .timestamp_ms = c->snaps[n].day * DAY};
    return n;
}

static size_t fill_refs(const Case *c, KnRef *refs)
{
    size_t n = 0;
    for (; n < 5 && c->refs[n].name; n++) {
        const Ref *r = &c->refs[n];
        refs[n] = (KnRef){.name = r->name,
                          .snapshot_id = r->at,
                          .is_branch = !r->tag,
                          .min_snapshots_to_keep = r->min ? r->min : -1,
                          .max_snapshot_age_ms = r->snapshot_days ? r->snapshot_days * DAY : -1,
                          .max_ref_age_ms = r->ref_days ? r->ref_days * DAY : -1};
    }
    return n;
}

static void spell(KnBuf *out, KnCode rc, const KnErr *err, const KnRetention *kept)
{
    if (rc != KN_OK) {
        kn_buf_printf(out, "%s: %s", kn_code_name(rc), err->msg);
        return;
    }
    for (size_t i = 0; i < kept->n_gone; i++)
        kn_buf_printf(out, "%s%" PRId64, out->len ? " " : "", kept->gone[i]);
    for (size_t i = 0; i < kept->n_refs; i++)
        kn_buf_printf(out, "%s%s", out->len ? " " : "", kept->refs[i]->name);
}

static void check(const Case *c)
{
    KnSnapshot snaps[8];
    KnRef refs[5];
    int64_t ids[3];
    KN_JSON_AUTO props = json_object();
    for (size_t i = 0; c->props[i]; i += 2)
        json_object_set_new(props, c->props[i], json_string(c->props[i + 1]));
    KnMetadata md = {.n_snapshots = fill_snapshots(c, snaps),
                     .snapshots = snaps,
                     .n_refs = fill_refs(c, refs),
                     .refs = refs,
                     .properties = props};
    KnExpireOptions opts = {.now_ms = 100 * DAY,
                            .older_than_ms = c->older_than_day ? c->older_than_day * DAY : -1,
                            .retain_last = c->retain_last,
                            .ids = ids};
    for (; opts.n_ids < 3 && c->ids[opts.n_ids]; opts.n_ids++)
        ids[opts.n_ids] = c->ids[opts.n_ids];
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_BUF_AUTO out;
    kn_buf_init(&out, 4096);
    KnRetention kept = {0};
    KnErr err = {0};
    spell(&out, kn_expire_retention(arena, &md, &opts, &kept, &err), &err, &kept);
    const char *got = out.len ? out.data : "";
    if (strcmp(got, c->gone) != 0)
        fail_msg("%s: gone '%s', expected '%s'", c->what, got, c->gone);
}

static void each_case_of_java_decides_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_case_of_java_decides_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
