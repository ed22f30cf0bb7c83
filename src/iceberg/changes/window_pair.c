/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_pair.c - two sides paired file by file: added, removed, touched.
 *
 * A file is the same on both sides when its path and its data sequence number are (the number
 * decides which equality deletes apply). A path may be listed more than once: every listing counts,
 * so each is paired with one listing of the other side.
 */
#include "base/map.h"
#include "iceberg/changes/window_internal.h"

/* Listings of one side that are not paired yet, chained by key. */
typedef struct Chain {
    KnMap *heads; /* key -> index + 1 */
    size_t *next; /* index -> index + 1 of the next listing of the key */
    bool *paired;
} Chain;

static Chain chain_new(KnArena *arena, const KnSide *side, KnBuf *buf)
{
    Chain chain = {
        .heads = kn_map_new(),
        .next = kn_arena_zalloc(arena, (side->n_tasks + 1) * sizeof(*chain.next)),
        .paired = kn_arena_zalloc(arena, (side->n_tasks + 1) * sizeof(*chain.paired)),
    };
    for (size_t i = side->n_tasks; i-- > 0;) {
        void **slot =
            kn_map_get_or_add(chain.heads, kn_manifest_entry_key(buf, side->tasks[i].data), NULL);
        chain.next[i] = (size_t)*slot;
        *slot = (void *)(i + 1);
    }
    return chain;
}

/* Takes the next listing of task's file; false = none left. */
static bool chain_take(Chain *chain, const KnScanTask *task, KnBuf *buf, size_t *ret)
{
    KnStr key = kn_manifest_entry_key(buf, task->data);
    size_t head = (size_t)kn_map_find(chain->heads, key);
    if (head == 0)
        return false;
    *ret = head - 1;
    chain->paired[head - 1] = true;
    *kn_map_get_or_add(chain->heads, key, NULL) = (void *)chain->next[head - 1];
    return true;
}

static bool same_delete(const KnManifestEntry *a, const KnManifestEntry *b)
{
    return a->sequence_number == b->sequence_number &&
           a->file.content_offset == b->file.content_offset &&
           strcmp(a->file.path, b->file.path) == 0;
}

static bool has_delete(const KnScanTask *task, const KnManifestEntry *entry)
{
    for (size_t i = 0; i < task->n_deletes; i++) {
        if (same_delete(task->deletes[i], entry))
            return true;
    }
    return false;
}

bool kn_window_same_deletes(const KnScanTask *a, const KnScanTask *b)
{
    if (a->n_deletes != b->n_deletes)
        return false;
    for (size_t i = 0; i < a->n_deletes; i++) {
        if (!same_delete(a->deletes[i], b->deletes[i]) && !has_delete(b, a->deletes[i]))
            return false;
    }
    return true;
}

void kn_window_pair(KnWindow *win, const KnSide sides[2])
{
    KnArena *arena = win->arena;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    Chain before = chain_new(arena, &sides[0], &buf);
    win->added = kn_arena_zalloc(arena, (sides[1].n_tasks + 1) * sizeof(KnScanTask));
    win->removed = kn_arena_zalloc(arena, (sides[0].n_tasks + 1) * sizeof(KnScanTask));
    win->touched = kn_arena_zalloc(arena, (sides[0].n_tasks + 1) * sizeof(KnScanTask));
    win->touched_after = kn_arena_zalloc(arena, (sides[0].n_tasks + 1) * sizeof(KnScanTask));
    for (size_t i = 0; i < sides[1].n_tasks; i++) {
        size_t was = 0;
        if (!chain_take(&before, &sides[1].tasks[i], &buf, &was)) {
            win->added[win->n_added++] = sides[1].tasks[i];
        } else if (!kn_window_same_deletes(&sides[0].tasks[was], &sides[1].tasks[i])) {
            win->touched[win->n_touched] = sides[0].tasks[was];
            win->touched_after[win->n_touched++] = sides[1].tasks[i];
        }
    }
    for (size_t i = 0; i < sides[0].n_tasks; i++) {
        if (!before.paired[i])
            win->removed[win->n_removed++] = sides[0].tasks[i];
    }
    kn_map_free(before.heads);
}
