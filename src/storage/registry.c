/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c - which scheme is served by which implementation: one row each.
 *
 * `memory` and `fault` are not here: nobody's table should land in them by its location.
 */
#include "base/path.h"
#include "storage/s3/s3.h"

typedef struct Scheme {
    const char *name;
    KnCode (*open)(const KnS3Options *s3, KnFileIO **ret, KnErr *err);
} Scheme;

static KnCode open_local(const KnS3Options *s3, KnFileIO **ret, KnErr *err)
{
    (void)s3;
    return kn_io_local_open(ret, err);
}

static const Scheme schemes[] = {
    {"file", open_local},
    {"s3", kn_io_s3_open},
    {"s3a", kn_io_s3_open}, /* Hadoop's names of the same */
    {"s3n", kn_io_s3_open},
};
enum { N_SCHEMES = sizeof(schemes) / sizeof(schemes[0]) };

KnCode kn_io_open_with(KnStr location, const KnS3Options *s3, KnFileIO **ret, KnErr *err)
{
    char name[16];
    KN_TRY(kn_path_scheme(location, name, err));
    for (size_t i = 0; i < N_SCHEMES; ++i)
        if (strcmp(schemes[i].name, name) == 0)
            return schemes[i].open(s3, ret, err);
    KN_BUF_AUTO known;
    kn_buf_init(&known, 256);
    for (size_t i = 0; i < N_SCHEMES; ++i)
        kn_buf_printf(&known, "%s%s", i ? ", " : "", schemes[i].name);
    return kn_err_set(err, KN_E_UNSUPPORTED,
                      "location '" KN_STR_FMT "': storage '%s' is not supported (supported: %s)",
                      KN_STR_ARG(location), name, known.data);
}

KnCode kn_io_open_for(KnStr location, KnFileIO **ret, KnErr *err)
{
    return kn_io_open_with(location, NULL, ret, err);
}
