/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - several local targets change as one, whenever the run is killed.
 *
 * Each target takes its place in one step, and between two of them a run may be killed. So before
 * the first step the run writes down what it is about to do: beside every target /d/t a record
 * /d/.t.knut.commit, which names the one beside the first target, and last that one, the head,
 * which has all the steps. The head is the decision. While it is there, the steps that are missing
 * are taken by the next run that wants to write one of the targets, before it reads or writes
 * anything else; a record whose head is not there decides nothing, and the stage beside it is
 * discarded.
 *
 * Whether a step was taken is seen by the inode: what was staged is then under the target's name.
 * Whoever takes steps holds the locks of the targets' folders.
 *
 * A run of an id that was given from outside leaves it in /d/.t.runs, which changes with the rows:
 * a run of that id adds nothing to /d/t again.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/path.h"
#include "pipeline/native/native.h"
#include "storage/place.h"

enum { MAX_RECORD = 16 << 20, MAX_RUNS = 1 << 20, WITH_ONE_MORE = 2 << 20 };

/* ---- writing ---- */

static uint64_t inode_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? (uint64_t)st.st_ino & INT64_MAX : 0;
}

static void head_text(const KnNativeRun *run, KnBuf *text)
{
    size_t n = 0;
    kn_buf_char(text, '{');
    kn_json_put_text(text, "run", run->id);
    kn_buf_text(text, ",\"steps\":[");
    kn_vec_foreach (&run->staged, staged) {
        if (!kn_native_stays(staged))
            continue;
        kn_buf_text(text, n++ ? ",{" : "{");
        kn_json_put_text(text, "stage", staged->stage);
        kn_buf_char(text, ',');
        kn_json_put_text(text, "target", staged->target);
        kn_buf_printf(text, ",\"inode\":\"%" PRIu64 "\"}", inode_of(staged->stage));
    }
    kn_buf_text(text, "]}\n");
}

static KnCode write_record(KnNativeRun *run, const char *target, const KnBuf *text, KnErr *err)
{
    const char *path = kn_native_beside(run->arena, target, ".knut.commit");
    return kn_io_settled(
        kn_io_write(run->io, kn_str(path), text->data, text->len, KN_IO_REPLACE, err), err);
}

KnCode kn_native_journal_begin(KnNativeRun *run, KnErr *err)
{
    const char *first = NULL;
    size_t n = 0;
    KN_BUF_AUTO head = {.max = MAX_RECORD};
    KN_BUF_AUTO other = {.max = 1 << 16};
    kn_vec_foreach (&run->staged, staged) {
        first = !first && kn_native_stays(staged) ? staged->target : first;
        n += kn_native_stays(staged);
    }
    if (n < 2)
        return KN_OK;
    kn_buf_char(&other, '{');
    kn_json_put_text(&other, "head", kn_native_beside(run->arena, first, ".knut.commit"));
    kn_buf_text(&other, "}\n");
    head_text(run, &head);
    KN_TRY(kn_buf_check(&other, err));
    KN_TRY(kn_buf_check(&head, err));
    kn_vec_foreach (&run->staged, staged) {
        if (kn_native_stays(staged) && staged->target != first)
            KN_TRY(write_record(run, staged->target, &other, err));
    }
    KN_FAULT("pipeline-decide", err);
    KN_TRY(write_record(run, first, &head, err));
    run->decided = true;
    KN_FAULT("pipeline-decided", err);
    return KN_OK;
}

static KnCode forget(KnNativeRun *run, const char *target, KnErr *err)
{
    return kn_io_remove(run->io, kn_str(kn_native_beside(run->arena, target, ".knut.commit")), err);
}

KnCode kn_native_journal_end(KnNativeRun *run, KnErr *err)
{
    if (!run->decided)
        return KN_OK;
    kn_vec_foreach (&run->staged, staged) { /* the head is the first */
        if (kn_native_stays(staged))
            KN_TRY(forget(run, staged->target, err));
    }
    run->decided = false;
    return KN_OK;
}

/* ---- what a killed run decided ---- */

static KnCode read_record(KnNativeRun *run, const char *path, json_t **ret, KnErr *err)
{
    KN_BUF_AUTO text = {0};
    KN_TRY(kn_io_read_all(run->io, kn_str(path), MAX_RECORD, &text, err));
    return kn_err_wrap(err, kn_json_parse(text.data, text.len, ret, err), "%s", path);
}

static KnCode take_step(KnNativeRun *run, const char *head, const json_t *step, KnErr *err)
{
    const char *stage = NULL, *target = NULL, *digits = NULL;
    int64_t inode = 0;
    KN_TRY(kn_json_get_str(step, "stage", &stage, err));
    KN_TRY(kn_json_get_str(step, "target", &target, err));
    KN_TRY(kn_json_get_str(step, "inode", &digits, err));
    if (!kn_str_to_i64(kn_str(digits), &inode))
        return kn_err_set(err, KN_E_CORRUPT, "%s: inode %s", head, digits);
    KN_TRY(kn_native_lock_beside(run, target, err));
    if (inode_of(target) != (uint64_t)inode) {
        if (inode_of(stage) != (uint64_t)inode)
            return kn_err_set(err, KN_E_CORRUPT,
                              "%s: a run that was killed has staged %s, which is gone: what it "
                              "wrote into other targets stays; remove this record to go on",
                              head, stage);
        KN_TRY(kn_place_swap(stage, target, err));
    }
    return kn_place_remove(stage, err);
}

static KnCode finish(KnNativeRun *run, const char *head, const json_t *doc, KnErr *err)
{
    json_t *steps = NULL;
    const char *id = NULL, *target = NULL;
    KN_TRY(kn_json_get_str(doc, "run", &id, err));
    KN_TRY(kn_json_get_array(doc, "steps", &steps, err));
    for (size_t i = 0; i < json_array_size(steps); i++)
        KN_TRY(take_step(run, head, json_array_get(steps, i), err));
    for (size_t i = 0; i < json_array_size(steps); i++) { /* the head is the first */
        KN_TRY(kn_json_get_str(json_array_get(steps, i), "target", &target, err));
        KN_TRY(forget(run, target, err));
    }
    kn_native_tell(run, &(KnRunEvent){.phase = KN_PHASE_PLANNING},
                   "run %s was killed while its %zu target(s) changed: finished", id,
                   json_array_size(steps));
    return KN_OK;
}

KnCode kn_native_recover(KnNativeRun *run, const char *path, KnErr *err)
{
    const char *target = kn_native_resolved(run->arena, path), *head = NULL;
    const char *record = kn_native_beside(run->arena, target, ".knut.commit");
    KN_JSON_AUTO doc = NULL;
    KN_JSON_AUTO whole = NULL;
    if (access(record, F_OK) != 0)
        return KN_OK;
    KN_TRY(kn_native_lock_beside(run, target, err)); /* else it is that of a run that goes on */
    if (access(record, F_OK) != 0)
        return KN_OK;
    KN_TRY(read_record(run, record, &doc, err));
    KN_TRY(kn_err_wrap(err, kn_json_opt_str(doc, "head", &head, err), "%s", record));
    if (!head)
        return kn_err_wrap(err, finish(run, record, doc, err), "%s", record);
    if (access(head, F_OK) != 0) /* nothing was decided, or all is done */
        return kn_io_remove(run->io, kn_str(record), err);
    KN_TRY(read_record(run, head, &whole, err));
    return kn_err_wrap(err, finish(run, head, whole, err), "%s", head);
}

/* ---- runs that have an id ---- */

static bool is_counted(const KnNativeRun *run, const KnNativeNode *node)
{
    return run->opts->run_id && node->place == KN_NATIVE_LOCAL && !node->replace;
}

static KnCode read_runs(KnNativeRun *run, const char *path, KnBuf *ret, KnErr *err)
{
    if (access(path, F_OK) != 0)
        return KN_OK;
    return kn_io_read_all(run->io, kn_str(path), MAX_RUNS, ret, err);
}

static const char *runs_path(const KnNativeRun *run, const KnNativeNode *node)
{
    return kn_native_beside(run->arena, kn_native_resolved(run->arena, node->path), ".runs");
}

KnCode kn_native_ran_before(KnNativeRun *run, const KnNativeNode *node, bool *ret, KnErr *err)
{
    KN_BUF_AUTO runs = {.max = MAX_RUNS};
    *ret = false;
    if (!is_counted(run, node) || access(node->path, F_OK) != 0)
        return KN_OK;
    KN_TRY(read_runs(run, runs_path(run, node), &runs, err));
    size_t len = strlen(run->id);
    for (const char *at = runs.data, *end = at + runs.len; at && at < end && !*ret;) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((line ? line : end) - at);
        *ret = n == len && !memcmp(at, run->id, len);
        at += n + 1;
    }
    return KN_OK;
}

KnCode kn_native_stage_run(KnNativeRun *run, const KnNativeNode *node, KnErr *err)
{
    KN_BUF_AUTO runs = {.max = WITH_ONE_MORE};
    if (!is_counted(run, node))
        return KN_OK;
    const char *path = runs_path(run, node);
    if (access(node->path, F_OK) == 0)
        KN_TRY(read_runs(run, path, &runs, err));
    runs.max = WITH_ONE_MORE;
    kn_buf_printf(&runs, "%s\n", run->id);
    /* The oldest go: whoever repeats a run does so soon. */
    size_t from = runs.len > MAX_RUNS / 2 ? runs.len - MAX_RUNS / 2 : 0;
    while (from && from < runs.len && runs.data[from - 1] != '\n')
        from++;
    KN_TRY(kn_buf_check(&runs, err));
    return kn_native_stage_text(run, path, (KnStr){runs.data + from, runs.len - from}, err);
}
