/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - checkpoints: which of them counts, and which can go.
 *
 * The target decides: its mark names a stream and an epoch. A checkpoint fits when the last epoch
 * of which the target got rows, as the checkpoint knows it, is the target's. One that is newer was
 * made for a commit that never came; it goes. One that is damaged goes as well, and the one before
 * it counts if it fits: it does when the epochs between gave the target nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/path.h"
#include "base/random.h"
#include "pipeline/native/stream/state_internal.h"

enum { DIGITS = 12 };
typedef KN_VEC(int64_t) Epochs;

void kn_stream_point_done(KnStreamPoint *point)
{
    json_decref(point->offsets);
    json_decref(point->inputs);
    point->offsets = point->inputs = NULL;
}

const char *kn_state_path(const KnStreamState *state, const char *file)
{
    return kn_path_join(state->run->arena, kn_str(state->location), kn_str(file));
}

const char *kn_state_manifest_path(const KnStreamState *state, int64_t epoch)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%0*" PRId64 ".json", DIGITS, epoch);
    return kn_state_path(state, name);
}

void kn_state_push(KnStreamState *state, json_t *doc)
{
    json_decref(state->docs[KN_STATE_KEPT - 1]);
    memmove(&state->docs[1], &state->docs[0], (KN_STATE_KEPT - 1) * sizeof(state->docs[0]));
    state->docs[0] = doc;
}

static KnCode lock_local(KnStreamState *state, KnErr *err)
{
    const char *folder = NULL;
    if (kn_path_local(state->arena, kn_str(state->location), &folder, NULL) != KN_OK)
        return KN_OK;
    state->lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state->lock < 0)
        return kn_err_set(err, KN_E_IO, "%s: %s", folder, kn_errno_text(errno));
    if (flock(state->lock, LOCK_EX | LOCK_NB) != 0)
        return kn_err_set(err, KN_E_BUSY, "%s: another run goes on with this stream", folder);
    return KN_OK;
}

KnCode kn_state_open(KnNativeRun *run, const KnutFlow *flow, const char *location,
                     KnStreamState **ret, KnErr *err)
{
    KnArena *arena = kn_arena_new(0);
    KnStreamState *state = kn_arena_zalloc(arena, sizeof(*state));
    *state = (KnStreamState){.run = run,
                             .flow = flow,
                             .arena = arena,
                             .location = kn_arena_strdup(arena, location),
                             .lock = -1};
    KnCode rc = kn_io_open_with(kn_str(location), run->opts->s3, &state->io, err);
    if (rc == KN_OK)
        rc = kn_io_prepare_dir(state->io, kn_str(location), err);
    if (rc == KN_OK)
        rc = lock_local(state, err);
    if (rc != KN_OK) {
        (void)kn_state_close(state);
        return kn_err_wrap(err, rc, "state of flow %s", flow->name);
    }
    *ret = state;
    return KN_OK;
}

KnStreamState *kn_state_close(KnStreamState *state)
{
    if (!state)
        return NULL;
    for (size_t i = 0; i < KN_STATE_KEPT; i++)
        json_decref(state->docs[i]);
    if (state->lock >= 0)
        (void)close(state->lock);
    (void)kn_io_close(state->io);
    (void)kn_arena_free(state->arena);
    return NULL;
}

/* ---- what is there ---- */

/* Ours begin with the number of an epoch. */
static bool epoch_of(KnStr name, int64_t *ret)
{
    if (name.len <= DIGITS || strspn(name.ptr, "0123456789") != DIGITS)
        return false;
    return kn_str_to_i64((KnStr){name.ptr, DIGITS}, ret);
}

typedef struct Sweep {
    const KnStreamState *state;
    bool all;
    Epochs *epochs; /* of manifests; NULL = not wanted */
    KN_VEC(const char *) doomed;
} Sweep;

static bool names_part(const json_t *doc, KnStr file)
{
    const json_t *table, *part;
    size_t i, j;
    json_array_foreach(json_object_get(doc, "tables"), i, table)
    {
        json_array_foreach(json_object_get(table, "parts"), j, part)
        {
            if (kn_str_eq(kn_str(json_string_value(json_object_get(part, "file"))), file))
                return true;
        }
    }
    return false;
}

static bool is_needed(const KnStreamState *state, KnStr file, int64_t epoch)
{
    bool manifest = kn_str_ends_with(file, KN_STR_LIT(".json"));
    for (size_t i = 0; i < KN_STATE_KEPT; i++) {
        const json_t *doc = state->docs[i];
        if (doc && (manifest ? json_integer_value(json_object_get(doc, "epoch")) == epoch
                             : names_part(doc, file)))
            return true;
    }
    return false;
}

static KnCode sweep_one(void *arg, const KnFileInfo *info, KnErr *err)
{
    (void)err;
    Sweep *sweep = arg;
    int64_t epoch = 0;
    KnStr name = kn_path_basename(kn_str(info->location));
    if (!epoch_of(name, &epoch))
        return KN_OK;
    if (sweep->epochs && kn_str_ends_with(name, KN_STR_LIT(".json")))
        *kn_vec_push(sweep->epochs) = epoch;
    if (!sweep->epochs && (sweep->all || !is_needed(sweep->state, name, epoch)))
        *kn_vec_push(&sweep->doomed) = kn_arena_strdup(sweep->state->run->arena, info->location);
    return KN_OK;
}

static KnCode sweep(const KnStreamState *state, bool all, KnErr *err)
{
    Sweep s = {.state = state, .all = all};
    KnCode rc = kn_io_list(state->io, kn_str(state->location), sweep_one, &s, err);
    /* Manifests before their parts: what is left by a kill in between is swept next time. */
    for (int parts = 0; parts < 2; parts++)
        for (size_t i = 0; rc == KN_OK && i < s.doomed.len; i++)
            if (kn_str_ends_with(kn_str(s.doomed.items[i]), KN_STR_LIT(".json")) == !parts)
                rc = kn_io_remove(state->io, kn_str(s.doomed.items[i]), err);
    kn_vec_done(&s.doomed);
    return rc;
}

KnCode kn_state_clear(KnStreamState *state, KnErr *err)
{
    return sweep(state, true, err);
}

void kn_state_tidy(KnStreamState *state)
{
    KN_IGNORE(sweep(state, false, NULL));
}

/* ---- which one counts ---- */

typedef struct Search {
    KnStreamState *state;
    const KnStreamMark *mark;
    bool repeats;
    KnErr damage;    /* of the newest damaged one */
    bool newer;      /* one was made for a commit that never came */
    bool from_start; /* nothing was ever committed, as far as can be told */
    int64_t newest;
    char other[37]; /* a stream that is not the target's */
} Search;

static bool fits(Search *s, const KnStreamPoint *point)
{
    int64_t have = s->mark->epoch;
    if (have >= 0 && strcmp(point->mark.stream, s->mark->stream) != 0) {
        memcpy(s->other, point->mark.stream, sizeof(s->other));
        return false;
    }
    s->newer |= point->sink_epoch > have;
    s->from_start |= point->mark.epoch == 0 && point->sink_epoch == 0;
    return point->sink_epoch == have || (s->repeats && point->sink_epoch < have);
}

/* KN_E_NOTFOUND: not this one. */
static KnCode try_epoch(Search *s, int64_t epoch, KnStreamPoint *ret, KnErr *err)
{
    KN_JSON_AUTO doc = NULL;
    KnStreamPoint point = {0};
    KN_TRY(kn_state_manifest_read(s->state, epoch, &doc, err));
    KN_TRY(kn_state_manifest_point(doc, &point, err));
    if (!fits(s, &point)) {
        kn_stream_point_done(&point);
        return kn_err_set(err, KN_E_NOTFOUND, "epoch %" PRId64 " is not the target's", epoch);
    }
    KnCode rc = kn_state_verify(s->state, doc, err);
    if (rc != KN_OK) {
        kn_stream_point_done(&point);
        return rc;
    }
    kn_state_push(s->state, json_incref(doc));
    *ret = point;
    return KN_OK;
}

static KnCode nothing_fits(const Search *s, KnErr *err)
{
    const char *flow = s->state->flow->name, *target = s->state->flow->target;
    if (s->damage.msg[0])
        return kn_err_set(err, KN_E_CORRUPT,
                          "flow %s: its state is damaged (%.300s), and %s cannot be continued from "
                          "an older one: --full-refresh %s makes it anew",
                          flow, s->damage.msg, target, target);
    if (s->newest < 0)
        return kn_err_set(err, KN_E_REFUSED,
                          "flow %s: %s has its rows up to epoch %" PRId64
                          ", and there is no state of it in %s: name the place where it is, or "
                          "make the target anew with --full-refresh %s",
                          flow, target, s->mark->epoch, s->state->location, target);
    if (s->other[0])
        return kn_err_set(err, KN_E_REFUSED,
                          "flow %s: %s was written by stream %s, and the state in %s is of stream "
                          "%s: --full-refresh %s makes it anew",
                          flow, target, s->mark->stream, s->state->location, s->other, target);
    return kn_err_set(err, KN_E_REFUSED,
                      "flow %s: its state is of epoch %" PRId64 ", and %s is at epoch %" PRId64
                      " (-1: it has none of its rows): --full-refresh %s makes it anew",
                      flow, s->newest, target, s->mark->epoch, target);
}

static KnCode search(Search *s, const Epochs *epochs, KnStreamPoint *ret, KnErr *err)
{
    s->newest = epochs->len ? epochs->items[epochs->len - 1] : -1;
    for (size_t i = epochs->len; i-- > 0;) {
        KnErr why = {0};
        KnCode rc = try_epoch(s, epochs->items[i], ret, &why);
        if (rc == KN_OK)
            return KN_OK;
        if (rc != KN_E_NOTFOUND && rc != KN_E_CORRUPT && rc != KN_E_INVAL) {
            *err = why;
            return rc;
        }
        if (!strstr(why.msg, "is not the target's") && !s->damage.msg[0])
            s->damage = why;
    }
    bool fresh = s->newest < 0 || (s->from_start && !s->damage.msg[0]) || s->newest == 0;
    if (s->mark->epoch >= 0 || !fresh)
        return nothing_fits(s, err);
    *ret = (KnStreamPoint){.mark = {.epoch = -1}, .sink_epoch = -1, .watermark = INT64_MIN};
    char id[37];
    memcpy(ret->mark.stream, kn_random_uuid7(id), sizeof(id));
    return KN_OK;
}

KnCode kn_state_recover(KnStreamState *state, const KnStreamMark *mark, bool repeats,
                        KnStreamPoint *ret, const char **ret_note, KnErr *err)
{
    Epochs epochs = {0};
    Sweep s = {.state = state, .epochs = &epochs};
    Search found = {.state = state, .mark = mark, .repeats = repeats};
    KnCode rc = kn_io_list(state->io, kn_str(state->location), sweep_one, &s, err);
    if (rc == KN_OK)
        rc = search(&found, &epochs, ret, err);
    kn_vec_done(&epochs);
    *ret_note = NULL;
    if (rc != KN_OK)
        return rc;
    if (found.damage.msg[0])
        *ret_note = kn_arena_printf(state->run->arena,
                                    "a damaged checkpoint was left aside (%.300s); it goes on "
                                    "behind epoch %" PRId64,
                                    found.damage.msg, ret->mark.epoch);
    else if (found.newer)
        *ret_note = kn_arena_printf(state->run->arena,
                                    "epoch %" PRId64 " was not committed; it goes on behind epoch "
                                    "%" PRId64,
                                    found.newest, ret->mark.epoch);
    return found.damage.msg[0] || found.newer ? sweep(state, false, err) : KN_OK;
}

KnCode kn_state_check_plan(const KnStreamState *state, const json_t *plan, KnErr *err)
{
    const json_t *had = json_object_get(state->docs[0], "plan"), *value;
    const char *key;
    if (!had)
        return KN_OK;
    json_object_foreach((json_t *)plan, key, value)
    {
        const char *now = json_string_value(value);
        const char *then = json_string_value(json_object_get(had, key));
        if (!then || strcmp(now, then) != 0)
            return kn_err_set(err, KN_E_REFUSED,
                              "flow %s: its state was made with another %s ('%.200s', now "
                              "'%.200s'): --full-refresh %s starts anew",
                              state->flow->name, key, then ? then : "", now, state->flow->target);
    }
    return KN_OK;
}

KnCode kn_state_save(KnStreamState *state, const KnStreamPoint *point, const json_t *plan,
                     KnStreamTable *const *tables, size_t n, KnErr *err)
{
    KN_FAULT("stream-parts", err);
    json_t *doc = kn_state_manifest_of(point, plan, tables, n);
    KnCode rc = kn_state_manifest_write(state, doc, point->mark.epoch, err);
    if (rc != KN_OK) {
        json_decref(doc);
        return kn_err_wrap(err, kn_io_settled(rc, err), "state of flow %s", state->flow->name);
    }
    kn_state_push(state, doc);
    KN_FAULT("stream-saved", err);
    return KN_OK;
}
