/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document_cache.c - documents by location, within a number of bytes.
 *
 * Chained buckets and a list from the most to the least recently used; both under one lock, which
 * is held for a look-up and no longer. A document that is larger than a quarter of the cache is not
 * kept: it would drive out everything else.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "catalog/core/document_internal.h"

enum { N_BUCKETS = 1 << 13 };

typedef struct Node {
    struct Node *chain;         /* of its bucket */
    struct Node *newer, *older; /* by use */
    KnDocument *doc;
    uint64_t hash;
    size_t cost;
} Node;

struct KnDocumentCache {
    pthread_mutex_t lock;
    Node *buckets[N_BUCKETS];
    Node *newest, *oldest;
    size_t bytes, max_bytes;
};

KnDocumentCache *kn_document_cache_new(size_t max_bytes)
{
    KnDocumentCache *cache = calloc(1, sizeof(*cache));
    if (!cache)
        abort();
    (void)pthread_mutex_init(&cache->lock, NULL);
    cache->max_bytes = max_bytes;
    return cache;
}

static void unlink_use(KnDocumentCache *cache, Node *node)
{
    *(node->newer ? &node->newer->older : &cache->newest) = node->older;
    *(node->older ? &node->older->newer : &cache->oldest) = node->newer;
}

static void link_newest(KnDocumentCache *cache, Node *node)
{
    node->newer = NULL;
    node->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = node;
    cache->newest = node;
}

static void drop(KnDocumentCache *cache, Node *node)
{
    Node **at = &cache->buckets[node->hash % N_BUCKETS];
    while (*at != node)
        at = &(*at)->chain;
    *at = node->chain;
    unlink_use(cache, node);
    cache->bytes -= node->cost;
    kn_document_unref(node->doc);
    free(node);
}

KnDocumentCache *kn_document_cache_free(KnDocumentCache *cache)
{
    if (!cache)
        return NULL;
    while (cache->oldest)
        drop(cache, cache->oldest);
    (void)pthread_mutex_destroy(&cache->lock);
    free(cache);
    return NULL;
}

static Node *find(KnDocumentCache *cache, const char *location, uint64_t hash)
{
    Node *node = cache->buckets[hash % N_BUCKETS];
    while (node && (node->hash != hash || strcmp(kn_document_location(node->doc), location) != 0))
        node = node->chain;
    return node;
}

KnDocument *kn_document_cache_find(KnDocumentCache *cache, const char *location)
{
    uint64_t hash = kn_hash64(location, strlen(location), 0);
    KnDocument *doc = NULL;
    pthread_mutex_lock(&cache->lock);
    Node *node = find(cache, location, hash);
    if (node) {
        doc = kn_document_ref(node->doc);
        if (cache->newest != node) {
            unlink_use(cache, node);
            link_newest(cache, node);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return doc;
}

static Node *node_new(KnDocument *doc)
{
    const char *location = kn_document_location(doc);
    Node *node = calloc(1, sizeof(*node));
    if (!node)
        abort();
    *node = (Node){.doc = kn_document_ref(doc),
                   .hash = kn_hash64(location, strlen(location), 0),
                   .cost = kn_document_cost(doc)};
    return node;
}

/* Under its location a document never changes: one that is there already is as good. */
void kn_document_cache_put(KnDocumentCache *cache, KnDocument *doc)
{
    const char *location = kn_document_location(doc);
    uint64_t hash = kn_hash64(location, strlen(location), 0);
    if (kn_document_cost(doc) > cache->max_bytes / 4)
        return;
    pthread_mutex_lock(&cache->lock);
    if (!find(cache, location, hash)) {
        Node *node = node_new(doc);
        node->chain = cache->buckets[hash % N_BUCKETS];
        cache->buckets[hash % N_BUCKETS] = node;
        link_newest(cache, node);
        cache->bytes += node->cost;
    }
    while (cache->oldest && cache->bytes > cache->max_bytes)
        drop(cache, cache->oldest);
    pthread_mutex_unlock(&cache->lock);
}

void kn_document_cache_drop(KnDocumentCache *cache, const char *location)
{
    uint64_t hash = kn_hash64(location, strlen(location), 0);
    pthread_mutex_lock(&cache->lock);
    Node *node = find(cache, location, hash);
    if (node)
        drop(cache, node);
    pthread_mutex_unlock(&cache->lock);
}
