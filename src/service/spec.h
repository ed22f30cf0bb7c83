/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * spec.h - one description of the service, and what is made from it: a systemd unit with its
 * environment file, and Kubernetes' manifests. Both run the same words. Secrets stand in the
 * environment file and in the Secret and nowhere else.
 *
 * Texts live in the arena that the spec was made with. Nothing here runs anything.
 */
#include "service/config.h"

typedef struct KnSecretValue {
    const char *name, *value;
} KnSecretValue;

typedef struct KnServiceSpec {
    const char *name;             /* "knut-cdc": of the unit and of everything in Kubernetes */
    const char *program;          /* absolute */
    const char *const *args;      /* after the program; NULL-terminated */
    const char *config;           /* absolute */
    const char *config_text;      /* what the file holds */
    const char *state;            /* absolute: the journal */
    const char *env_file;         /* absolute; NULL = no secrets by environment */
    const char *credentials;      /* folder of files called as the variables; NULL = none */
    const char *run_as;           /* system scope: a user; NULL = a dynamic one */
    const char *const *writable;  /* folders that deliveries write to, NULL-terminated */
    const KnSecretValue *secrets; /* those that are set, in the order of kn_secret_names */
    size_t n_secrets;
    bool system;                                /* the machine's manager, not the user's */
    int port;                                   /* of probes; 0 = they are not answered */
    bool loopback;                              /* probes are answered on this machine only */
    const char *image, *namespace, *state_size; /* Kubernetes */
} KnServiceSpec;

typedef struct KnSpecOptions {
    const char *config, *name, *program; /* program NULL = this one */
    const char *listen;                  /* in place of the file's */
    const char *env_file, *credentials, *run_as;
    bool system;
    const char *image, *namespace, *state_size;
} KnSpecOptions;

/** Reads and checks the file. KN_E_INVAL: a name or path that cannot be in a unit. */
KN_NODISCARD KnCode kn_service_spec_make(const KnSpecOptions *opts, KnArena *arena,
                                         KnServiceSpec *ret, KnErr *err);

void kn_service_unit_write(const KnServiceSpec *spec, KnBuf *out);
void kn_service_env_write(const KnServiceSpec *spec, KnBuf *out);

/* The files of Kubernetes, in the order in which they are applied. */
typedef enum KnK8sFile {
    KN_K8S_CONFIGMAP,
    KN_K8S_SECRET, /* not there when there are no secrets */
    KN_K8S_PVC,
    KN_K8S_SERVICE,
    KN_K8S_STATEFULSET,
} KnK8sFile;
enum { KN_N_K8S_FILES = KN_K8S_STATEFULSET + 1 };
const char *kn_k8s_file_name(KnK8sFile file); /* "configmap" */
void kn_k8s_write(const KnServiceSpec *spec, KnK8sFile file, KnBuf *out);
/** KN_E_INVAL unless the spec can run there: an image, probes that the kubelet can reach. */
KN_NODISCARD KnCode kn_k8s_check(const KnServiceSpec *spec, KnErr *err);
