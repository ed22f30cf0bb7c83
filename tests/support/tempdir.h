/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* tempdir.h - a folder for one test case, and its removal with all that is in it. */
#include <stddef.h>

/** Makes a new folder under $TMPDIR (or /tmp) and writes its absolute path; aborts on failure. */
const char *test_tempdir_make(char out[256]);
/** Removes the folder and everything below; does not follow symbolic links. */
void test_tempdir_remove(const char *path);
/** Number of entries of a folder, hidden ones too, without "." and "..". */
size_t test_dir_count(const char *path);
