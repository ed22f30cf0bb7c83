/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_series.c - several manifests, one after the other; from a far storage several at once.
 *
 * Fetching threads take the files in their order, and wait while KN_MANIFESTS_AHEAD of them are
 * there that nobody has read: so much memory is used and no more. Entries are decoded by the
 * caller, in order: what is made of them does not depend on which file came first.
 */
#include "iceberg/manifest/manifest_series.h"

#include <pthread.h>
#include <stdlib.h>

#include "iceberg/manifest/manifest_internal.h"

typedef struct Slot {
    bool there;
    KnCode code;
    KnErr err;
    KnManifestBytes bytes;
} Slot;

typedef struct Fetch {
    KnFileIO *io;
    const KnManifestSeries *series;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Slot slots[KN_MANIFESTS_AHEAD]; /* of file i: i % KN_MANIFESTS_AHEAD */
    size_t next;                    /* to be fetched */
    size_t read;                    /* files before this one are done with */
    bool ended;                     /* nobody wants more */
} Fetch;

static KnCode fetch_one(Fetch *fetch, const KnManifestFile *mf, KnManifestBytes *ret, KnErr *err)
{
    if (mf->key_metadata.len)
        return kn_err_set(err, KN_E_UNSUPPORTED, "manifest %s: encrypted", mf->path);
    KnCode code = kn_manifest_bytes_open(fetch->io, mf->path, mf->length, ret, err);
    return code == KN_OK ? code : kn_err_wrap(err, code, "manifest");
}

static void *fetch_files(void *arg)
{
    Fetch *fetch = arg;
    pthread_mutex_lock(&fetch->lock);
    while (!fetch->ended && fetch->next < fetch->series->n) {
        if (fetch->next >= fetch->read + KN_MANIFESTS_AHEAD) {
            pthread_cond_wait(&fetch->changed, &fetch->lock);
            continue;
        }
        size_t i = fetch->next++;
        Slot *slot = &fetch->slots[i % KN_MANIFESTS_AHEAD];
        *slot = (Slot){0};
        pthread_mutex_unlock(&fetch->lock);
        slot->code = fetch_one(fetch, fetch->series->files[i], &slot->bytes, &slot->err);
        pthread_mutex_lock(&fetch->lock);
        slot->there = true;
        pthread_cond_broadcast(&fetch->changed);
    }
    pthread_mutex_unlock(&fetch->lock);
    return NULL;
}

static KnCode take(Fetch *fetch, const KnMetadata *md, size_t i, KnErr *err)
{
    const KnManifestSeries *series = fetch->series;
    Slot *slot = &fetch->slots[i % KN_MANIFESTS_AHEAD];
    pthread_mutex_lock(&fetch->lock);
    while (fetch->next <= i || !slot->there)
        pthread_cond_wait(&fetch->changed, &fetch->lock);
    pthread_mutex_unlock(&fetch->lock);
    KnCode code = slot->code;
    if (code != KN_OK && err)
        *err = slot->err;
    if (code == KN_OK)
        code = kn_manifest_read_bytes(&slot->bytes, md, series->files[i], &series->visit, err);
    kn_manifest_bytes_close(&slot->bytes);
    pthread_mutex_lock(&fetch->lock);
    slot->there = false;
    fetch->read = i + 1;
    pthread_cond_broadcast(&fetch->changed);
    pthread_mutex_unlock(&fetch->lock);
    return code;
}

static KnCode begin(const KnManifestSeries *series, size_t i, KnErr *err)
{
    return series->begin ? series->begin(series->visit.arg, series->files[i], err) : KN_OK;
}

static KnCode take_all(Fetch *fetch, const KnMetadata *md, KnErr *err)
{
    for (size_t i = 0; i < fetch->series->n; i++) {
        KN_TRY(begin(fetch->series, i, err));
        KN_TRY(take(fetch, md, i, err));
    }
    return KN_OK;
}

static KnCode read_ahead(KnFileIO *io, const KnMetadata *md, const KnManifestSeries *series,
                         KnErr *err)
{
    pthread_t threads[KN_MANIFESTS_AHEAD];
    size_t wanted = series->n < KN_MANIFESTS_AHEAD ? series->n : KN_MANIFESTS_AHEAD, n = 0;
    Fetch *fetch = calloc(1, sizeof(*fetch));
    if (!fetch)
        abort();
    fetch->io = io;
    fetch->series = series;
    pthread_mutex_init(&fetch->lock, NULL);
    pthread_cond_init(&fetch->changed, NULL);
    while (n < wanted && pthread_create(&threads[n], NULL, fetch_files, fetch) == 0)
        n++;
    KnCode code = n ? take_all(fetch, md, err)
                    : kn_err_set(err, KN_E_NOMEM, "no thread to read manifests with");
    pthread_mutex_lock(&fetch->lock);
    fetch->ended = true;
    pthread_cond_broadcast(&fetch->changed);
    pthread_mutex_unlock(&fetch->lock);
    while (n)
        pthread_join(threads[--n], NULL);
    for (size_t i = 0; i < KN_MANIFESTS_AHEAD; i++)
        if (fetch->slots[i].there)
            kn_manifest_bytes_close(&fetch->slots[i].bytes);
    pthread_cond_destroy(&fetch->changed);
    pthread_mutex_destroy(&fetch->lock);
    free(fetch);
    return code;
}

/* Storage whose requests are worth gathering is one where each waits for a peer. */
static bool is_far(const KnFileIO *io)
{
    return kn_io_remove_batch(io) > 1;
}

KnCode kn_manifest_read_series(KnFileIO *io, const KnMetadata *md, const KnManifestSeries *series,
                               KnErr *err)
{
    if (is_far(io) && series->n > 1)
        return read_ahead(io, md, series, err);
    for (size_t i = 0; i < series->n; i++) {
        KN_TRY(begin(series, i, err));
        KN_TRY(kn_manifest_read(io, md, series->files[i], &series->visit, err));
    }
    return KN_OK;
}
