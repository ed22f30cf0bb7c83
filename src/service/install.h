/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * install.h - a spec on this machine: the unit and its environment file are written, and systemd is
 * told, by its own program `systemctl`. What is there already as it should be is left alone.
 */
#include "service/spec.h"

/* Where things are, for one scope and name; in arena. */
typedef struct KnUnitPlace {
    const char *unit; /* /etc/systemd/system/NAME.service, ~/.config/systemd/user/NAME.service */
    const char *env;  /* /etc/knut/NAME.env, ~/.config/knut/NAME.env */
    const char *name; /* NAME.service */
    bool system;
} KnUnitPlace;
KN_NODISCARD KnCode kn_unit_place(KnArena *arena, const char *name, bool system, KnUnitPlace *ret,
                                  KnErr *err);

/* One file, and what became of it. */
typedef void (*KnFileChangeFn)(void *arg, const char *file, const char *change);

/** Writes what differs, then reloads, enables and (re)starts; nothing at all when nothing differs.
 * Tells of each file: "written", "unchanged". */
KN_NODISCARD KnCode kn_unit_install(const KnUnitPlace *place, const KnServiceSpec *spec,
                                    KnFileChangeFn tell, void *arg, KnErr *err);
/** Stops, disables and removes unit and environment file; journal and configuration are kept, or
 * with purge removed. Tells of each: "removed", "kept". KN_E_NOTFOUND: there is no such unit. */
KN_NODISCARD KnCode kn_unit_uninstall(const KnUnitPlace *place, bool purge, KnFileChangeFn tell,
                                      void *arg, KnErr *err);
/** systemctl VERB NAME.service. */
KN_NODISCARD KnCode kn_unit_control(const KnUnitPlace *place, const char *verb, KnErr *err);

/** Writes a file whole or not at all; *ret_changed false: it was so before. */
KN_NODISCARD KnCode kn_file_put(const char *path, KnStr text, unsigned mode, bool *ret_changed,
                                KnErr *err);
