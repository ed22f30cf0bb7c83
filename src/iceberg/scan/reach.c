/* SPDX-License-Identifier: Apache-2.0 */
/* reach.c - see reach.h: storage knows the keys, the engine wants them; neither knows the other. */
#include "iceberg/scan/reach.h"

#include "engine/remote.h"

KnCode kn_engine_reach(KnEngine *eng, KnFileIO *io, KnStr location, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnIoAccess access = {0};
    KN_TRY(kn_io_engine_access(io, arena, location, &access, err));
    if (!access.remote)
        return KN_OK;
    const KnRemoteS3 s3 = {
        .scope = access.scope,
        .endpoint = access.endpoint,
        .region = access.region,
        .ca_file = access.ca_file,
        .access_key_id = access.access_key_id,
        .secret_access_key = access.secret_access_key,
        .session_token = access.session_token,
        .tls = access.tls,
        .path_style = access.path_style,
    };
    return kn_engine_reach_s3(eng, &s3, err);
}
