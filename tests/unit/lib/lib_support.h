/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* lib_support.h - a warehouse with one table for the tests of the public library. */

enum { ROWS = 5000, ROWS_SUM = ROWS * (ROWS - 1) / 2 };

/** Table ns.t (id long, name string) with ids 0..ROWS-1 in the warehouse at dir. */
void make_warehouse(const char *dir);
/** One more snapshot of it. */
void delete_rows(const char *dir, const char *where);
