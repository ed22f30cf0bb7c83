/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commits.c - knut.catalog.v1.Commits/Watch: the log of commits as a stream.
 *
 * A pull sends what the log has after the last event that was sent or passed over, in portions, so
 * that a reader that begins at 1 in a log of millions neither fills memory nor keeps others
 * waiting.
 */
#include "catalog/grpc/front_internal.h"

enum { PORTION = 256 };

typedef struct Watch {
    const KnPrincipal *who; /* asked again at each pull: rights may go */
    KnWireRequest req;
    int64_t after;
} Watch;

typedef struct Portion {
    Watch *watch;
    KnBuf *out;
    size_t seen;
} Portion;

static KnWireIdent wire_ident(const KnTableIdent *ident)
{
    return (KnWireIdent){{ident->levels, ident->n_levels}, ident->name};
}

static bool lies_in(const KnTableIdent *ident, const KnPbTexts *ns)
{
    if (ident->n_levels < ns->n)
        return false;
    for (size_t i = 0; i < ns->n; ++i)
        if (strcmp(ident->levels[i], ns->items[i]) != 0)
            return false;
    return true;
}

static bool may_see(const Watch *watch, const KnTableIdent *ident)
{
    KnNamespace ns = {ident->levels, ident->n_levels};
    return lies_in(ident, &watch->req.levels) &&
           kn_principal_right(watch->who, &ns) >= KN_RIGHT_READ;
}

/* A rename is shown to whoever may see one of its names; the other one stays hidden. */
static KnCode add_event(void *arg, const KnCommitEvent *event, KnErr *err)
{
    (void)err;
    Portion *portion = arg;
    Watch *watch = portion->watch;
    watch->after = event->seq;
    ++portion->seen;
    bool renamed = event->kind == KN_EVENT_RENAME;
    bool sees_to = may_see(watch, &event->ident);
    bool sees_from = renamed && may_see(watch, &event->from);
    if (!sees_to && !sees_from)
        return KN_OK;
    KnWireCommit commit = {.sequence = event->seq,
                           .timestamp_ms = event->timestamp_ms,
                           .kind = kn_event_kind_name(event->kind),
                           .is_view = event->is_view,
                           .snapshot_id = event->snapshot_id,
                           .metadata_location = sees_to ? event->metadata_location : ""};
    if (sees_to)
        commit.table = wire_ident(&event->ident);
    if (sees_from)
        commit.from = wire_ident(&event->from);
    size_t begin = kn_grpc_frame_begin(portion->out);
    kn_pb_encode(&kn_wire_commit, &commit, portion->out);
    kn_grpc_frame_end(portion->out, begin);
    return KN_OK;
}

static KnCode send_more(KnGrpcFront *front, Watch *watch, KnBuf *out, KnErr *err)
{
    Portion portion = {.watch = watch, .out = out};
    do {
        portion.seen = 0;
        KN_TRY(kn_core_commits_since(front->ctx.core, watch->after, PORTION, add_event, &portion,
                                     err));
    } while (!out->len && portion.seen == PORTION && !atomic_load(&front->closing));
    return KN_OK;
}

/* A position that this log never had: events would be passed over without a word. */
static int check_start(KnGrpcFront *front, const Watch *watch, KnErr *err)
{
    int64_t last = 0;
    KnCode rc = kn_core_commits_last(front->ctx.core, &last, err);
    if (rc != KN_OK)
        return kn_wire_code(rc, err);
    if (watch->after < 0) {
        kn_err_set(err, KN_E_INVAL, "'after' is %lld: sequence numbers begin with 1",
                   (long long)watch->after);
        return KN_GRPC_INVALID_ARGUMENT;
    }
    if (watch->after > last) {
        kn_err_set(err, KN_E_INVAL,
                   "the log ends at %lld, before %lld: this is another catalog, or one restored "
                   "from a backup",
                   (long long)last, (long long)watch->after);
        return KN_GRPC_OUT_OF_RANGE;
    }
    return KN_GRPC_OK;
}

static int begin_watch(KnGrpcFront *front, KnGrpcCall *call, KnErr *err)
{
    Watch *watch = kn_arena_zalloc(call->arena, sizeof(*watch));
    KnCode rc = kn_pb_decode(&kn_wire_watch_request, call->message, call->arena, &watch->req, err);
    if (rc != KN_OK)
        return KN_GRPC_INVALID_ARGUMENT;
    watch->after = watch->req.after;
    int code = check_start(front, watch, err);
    if (code != KN_GRPC_OK)
        return code;
    call->state = watch;
    kn_grpc_watcher_add(front);
    return KN_GRPC_OK;
}

int kn_grpc_watch_commits(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err)
{
    KnGrpcFront *front = self;
    const KnPrincipal *who = NULL;
    if (kn_grpc_authenticate(front, call, &who, err) != KN_OK)
        return KN_GRPC_UNAUTHENTICATED;
    int code = call->state ? KN_GRPC_OK : begin_watch(front, call, err);
    if (code != KN_GRPC_OK)
        return code;
    Watch *watch = call->state;
    watch->who = who;
    KnCode rc = send_more(front, watch, out, err);
    if (rc == KN_E_NOTFOUND) /* its position is older than the log */
        return KN_GRPC_OUT_OF_RANGE;
    return rc == KN_OK ? KN_GRPC_GO_ON : kn_wire_code(rc, err);
}

void kn_grpc_watch_ended(void *self, KnGrpcCall *call)
{
    if (call->state)
        kn_grpc_watcher_remove(self);
}
