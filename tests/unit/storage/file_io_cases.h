/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* file_io_cases.h - what every storage scheme must do, as checks to be called from its own test. */
#include "storage/file_io.h"

/** All of the contract that needs no engine. base is a fresh location without final slash. */
void check_file_io_contract(KnFileIO *io, const char *base);
/** Eight threads create one name at the same time: one wins, seven see KN_E_EXISTS, no mixing. */
void check_file_io_create_race(KnFileIO *io, const char *base);

KnStr at(KnArena *arena, const char *base, const char *name);
/** Locations that a listing gives, without base + "/", each followed by a blank. */
const char *listed(KnArena *arena, KnFileIO *io, const char *base);
KnCode put(KnFileIO *io, KnStr location, const char *text, KnWriteMode mode);
/** The whole object as text in arena; fails the test when it cannot be read. */
const char *get(KnArena *arena, KnFileIO *io, KnStr location);
