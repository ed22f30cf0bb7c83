/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * secrets.h - the environment variables that hold secrets, and systemd's credentials in their
 * place.
 *
 * Nothing secret has a flag or a key of knut.yaml. A service gets its secrets as variables (an
 * EnvironmentFile, a Secret of Kubernetes) or as credentials: files in $CREDENTIALS_DIRECTORY that
 * are called as the variables are.
 */
#include <stddef.h>

#include "base/err.h"

/** Their names, NULL-terminated. */
extern const char *const kn_secret_names[];

/** Each file of $CREDENTIALS_DIRECTORY that is called as a variable may be (A-Z, 0-9, _) and is not
 * set becomes that variable, without its last newline. Before threads are started. KN_E_IO: a
 * credential cannot be read; KN_E_INVAL: it holds a NUL or is larger than 1 MiB. */
KN_NODISCARD KnCode kn_secrets_take(KnErr *err);
