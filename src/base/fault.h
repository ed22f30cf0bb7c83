/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * fault.h - named points at which a test kills the process or makes a call fail.
 *
 * KNUT_FAULT="name:n:action" in the environment: at the n-th pass (from 1) of point `name` do
 * action `kill` (SIGKILL to self), `exit` (status 70), `fail` (the point reports KN_E_IO), `stop`
 * (SIGTERM to self), or `pause` (SIGSTOP to self: SIGCONT goes on from here). Several are separated
 * by commas; name `*` counts every pass of every point. KNUT_FAULT_TRACE=FILE appends the name of
 * each point passed, so that a test can enumerate them. Not set: one load and a branch.
 * Thread-safe. Built without KN_FAULTS, KN_FAULT is nothing.
 */
#include "base/err.h"

/** Pass the point: KN_OK, or KN_E_IO when the environment asks for `fail` here. Use KN_FAULT where
 * the function may just return; call this where something must be cleaned up first. */
KN_NODISCARD KnCode kn_fault_at(const char *name, KnErr *err);
/** Put these in place of what the environment says (NULL = nothing) and count from 0; for tests. */
KN_NODISCARD KnCode kn_fault_set(const char *spec, const char *trace_file, KnErr *err);
#ifdef KN_FAULTS
#define KN_FAULT(name, err) KN_TRY(kn_fault_at((name), (err)))
#else
#define KN_FAULT(name, err) ((void)(err))
#endif
