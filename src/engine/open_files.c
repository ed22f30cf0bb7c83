/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_files.c - the list of open database files, by device and inode.
 *
 * One mutex is held from begin to end of an open, because a new file has no inode before it is
 * open.
 */
#include "engine/open_files.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct KnOpenFile {
    KnOpenFile *next;
    dev_t dev;
    ino_t ino;
    bool read_only;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static KnOpenFile *files;

KnCode kn_open_file_begin(const char *path, bool read_only, KnErr *err)
{
    struct stat st;
    pthread_mutex_lock(&lock);
    if (stat(path, &st) == 0) {
        for (KnOpenFile *f = files; f; f = f->next) {
            if (f->dev != st.st_dev || f->ino != st.st_ino || (f->read_only && read_only))
                continue;
            pthread_mutex_unlock(&lock);
            return kn_err_set(err, KN_E_BUSY,
                              "database %s is open already in this process (PID %d)", path,
                              (int)getpid());
        }
    }
    return KN_OK;
}

KnOpenFile *kn_open_file_end(const char *path, bool read_only, bool opened)
{
    struct stat st;
    KnOpenFile *file = NULL;
    if (opened && stat(path, &st) == 0) {
        file = calloc(1, sizeof(*file));
        if (!file)
            abort();
        *file = (KnOpenFile){files, st.st_dev, st.st_ino, read_only};
        files = file;
    }
    pthread_mutex_unlock(&lock);
    return file;
}

KnOpenFile *kn_open_file_forget(KnOpenFile *file)
{
    pthread_mutex_lock(&lock);
    for (KnOpenFile **at = &files; *at; at = &(*at)->next) {
        if (*at == file) {
            *at = file->next;
            free(file);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}
