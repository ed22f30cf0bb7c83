/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* capture.h - what a piece of code writes to stderr, as text. One capture at a time. */
#include <stddef.h>

void capture_begin(void);
/** Restores stderr; up to cap-1 bytes, NUL-terminated, in out. */
const char *capture_end(char *out, size_t cap);
