/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.c - grpc.health.v1.Health, for probes.
 *
 * The whole server ("") and each of its services are well while the database answers. Whoever
 * watches is told at once, and then of each change.
 */
#include "catalog/grpc/front_internal.h"

enum { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

typedef struct Health {
    bool known;
    int64_t told; /* 0 = nothing yet */
} Health;

static bool is_service(const char *name)
{
    static const char *const names[] = {"", "skade.katalog.v1.Catalog", "knut.catalog.v1.Commits",
                                        "grpc.health.v1.Health"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

int kn_grpc_look_at_health(KnGrpcFront *front)
{
    bool well = !atomic_load(&front->closing) && kn_core_ping(front->ctx.core, NULL) == KN_OK;
    int status = well ? SERVING : NOT_SERVING;
    atomic_store(&front->health, status);
    return status;
}

static KnCode read_service(const KnGrpcCall *call, const char **ret, KnErr *err)
{
    KnWireRequest req;
    KN_TRY(kn_pb_decode(&kn_wire_health_request, call->message, call->arena, &req, err));
    *ret = req.service;
    return KN_OK;
}

int kn_grpc_check_health(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err)
{
    const char *service = NULL;
    if (read_service(call, &service, err) != KN_OK)
        return KN_GRPC_INVALID_ARGUMENT;
    if (!is_service(service)) {
        kn_err_set(err, KN_E_NOTFOUND, "there is no such service here");
        return KN_GRPC_NOT_FOUND;
    }
    KnWireAnswer answer = {.number = kn_grpc_look_at_health(self)};
    kn_pb_encode(&kn_wire_health, &answer, out);
    return KN_GRPC_OK;
}

int kn_grpc_watch_health(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err)
{
    KnGrpcFront *front = self;
    Health *health = call->state;
    if (!health) {
        const char *service = NULL;
        if (read_service(call, &service, err) != KN_OK)
            return KN_GRPC_INVALID_ARGUMENT;
        health = kn_arena_zalloc(call->arena, sizeof(*health));
        health->known = is_service(service);
        call->state = health;
        kn_grpc_watcher_add(front);
    }
    KnWireAnswer answer = {.number = SERVICE_UNKNOWN};
    if (health->known)
        answer.number = kn_grpc_look_at_health(front);
    if (answer.number == health->told)
        return KN_GRPC_GO_ON;
    health->told = answer.number;
    size_t begin = kn_grpc_frame_begin(out);
    kn_pb_encode(&kn_wire_health, &answer, out);
    kn_grpc_frame_end(out, begin);
    return KN_GRPC_GO_ON;
}
