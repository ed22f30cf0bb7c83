/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * credentials.h - the keys that requests are signed with: a chain of sources, refreshed in time.
 *
 * Order: keys or a provider that were given; the environment, where the first of the prefixes
 * KNUT_S3_, SKADE_S3_, AWS_, MINIO_ with an access key wins; the profile (AWS_PROFILE of
 * AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE); web identity (AWS_WEB_IDENTITY_TOKEN_FILE,
 * AWS_ROLE_ARN); the container's endpoint (AWS_CONTAINER_CREDENTIALS_*); the instance's metadata
 * (IMDSv2). The first source that has keys is kept.
 *
 * Keys that expire are fetched anew five minutes before (or at half of a shorter life), by one
 * thread while others wait; when that fails, what is still valid is used. Secrets never get into a
 * message or a log line. Thread-safe.
 */
#include "net/http_client.h"
#include "storage/s3/s3.h"

typedef struct KnS3Credentials KnS3Credentials;

/** http is borrowed. region is for STS. */
KnS3Credentials *kn_s3_credentials_new(const KnS3Options *options, KnHttpClient *http,
                                       const char *region);
KnS3Credentials *kn_s3_credentials_free(KnS3Credentials *creds); /* overwrites secrets */

/** Copies of the keys in arena. KN_E_INVAL: none found, the message lists where was looked. */
KN_NODISCARD KnCode kn_s3_credentials_get(KnS3Credentials *creds, KnArena *arena, KnS3Keys *ret,
                                          KnErr *err);
/** The store has refused these as expired: true when the next get will bring others. */
bool kn_s3_credentials_refused(KnS3Credentials *creds, const char *access_key_id);

/** Copies of texts; "" becomes NULL. */
void kn_s3_keys_copy(KnArena *arena, const KnS3Keys *from, KnS3Keys *ret);
/** Overwrites the secrets where they lie, and forgets them. */
void kn_s3_keys_wipe(KnS3Keys *keys);

/* ---- the sources (for this folder) ---- */

typedef enum KnS3Found { KN_S3_NO_KEYS, KN_S3_KEYS } KnS3Found;

/** A variable that is set and not empty, or NULL. */
const char *kn_s3_env(const char *name);
/** The first variable that is set, of names ended by NULL. */
const char *kn_s3_env_first(const char *const *names);
KN_NODISCARD KnCode kn_s3_keys_environment(KnArena *arena, KnS3Keys *ret, KnS3Found *ret_found,
                                           KnErr *err);
KN_NODISCARD KnCode kn_s3_keys_profile(KnArena *arena, KnS3Keys *ret, KnS3Found *ret_found,
                                       KnErr *err);
/** The profile's region, or NULL. */
const char *kn_s3_profile_region(KnArena *arena);
typedef struct KnS3Remote {
    KnHttpClient *http;
    const char *region;
} KnS3Remote;
KN_NODISCARD KnCode kn_s3_keys_web_identity(const KnS3Remote *remote, KnArena *arena, KnS3Keys *ret,
                                            KnS3Found *ret_found, KnErr *err);
KN_NODISCARD KnCode kn_s3_keys_container(const KnS3Remote *remote, KnArena *arena, KnS3Keys *ret,
                                         KnS3Found *ret_found, KnErr *err);
KN_NODISCARD KnCode kn_s3_keys_instance(const KnS3Remote *remote, KnArena *arena, KnS3Keys *ret,
                                        KnS3Found *ret_found, KnErr *err);
/** A small text file without the white space around it. */
KN_NODISCARD KnCode kn_s3_read_text(KnArena *arena, const char *path, const char **ret, KnErr *err);

/** Sections and keys of an AWS profile file: the value of key in [section] (or [profile section]),
 * in arena; NULL = none. */
const char *kn_s3_ini_find(KnArena *arena, KnStr text, const char *section, const char *key);
