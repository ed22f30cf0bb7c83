/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* version.h - which knut this is. */

#ifdef __cplusplus
extern "C" {
#endif

/** "0.1.0". Never NULL. */
const char *knut_version(void);

#ifdef __cplusplus
}
#endif
