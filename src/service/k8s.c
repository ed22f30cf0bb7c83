/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k8s.c - a spec as Kubernetes' manifests.
 *
 * Every text is a JSON string, which YAML takes as a string whatever it looks like: a number, a
 * date, a certificate of many lines. The program's words are those of the unit; the file lies where
 * it lies on this machine, so that they are the same to the byte.
 */
#include "base/json.h"
#include "base/path.h"
#include "service/spec.h"

static void write_text(KnBuf *out, const char *before, const char *text)
{
    kn_buf_text(out, before);
    kn_json_quote(out, kn_str(text));
    kn_buf_char(out, '\n');
}

/* "name-suffix", as a value. */
static void write_name(KnBuf *out, const char *before, const KnServiceSpec *spec,
                       const char *suffix)
{
    kn_buf_printf(out, "%s\"%s%s\"\n", before, spec->name, suffix);
}

static void write_labels(KnBuf *out, const char *indent, const KnServiceSpec *spec)
{
    kn_buf_printf(out, "%sapp.kubernetes.io/name: \"knut\"\n%sapp.kubernetes.io/instance: \"%s\"\n",
                  indent, indent, spec->name);
}

static void write_head(KnBuf *out, const KnServiceSpec *spec, const char *version, const char *kind,
                       const char *suffix)
{
    kn_buf_printf(out, "apiVersion: %s\nkind: %s\nmetadata:\n", version, kind);
    write_name(out, "  name: ", spec, suffix);
    write_text(out, "  namespace: ", spec->namespace);
    kn_buf_text(out, "  labels:\n");
    write_labels(out, "    ", spec);
}

static void write_configmap(const KnServiceSpec *spec, KnBuf *out)
{
    write_head(out, spec, "v1", "ConfigMap", "-config");
    write_text(out, "data:\n  knut.yaml: ", spec->config_text);
}

static void write_secret(const KnServiceSpec *spec, KnBuf *out)
{
    write_head(out, spec, "v1", "Secret", "-secret");
    kn_buf_text(out, "type: Opaque\nstringData:\n");
    for (size_t i = 0; i < spec->n_secrets; i++) {
        kn_buf_printf(out, "  %s: ", spec->secrets[i].name);
        write_text(out, "", spec->secrets[i].value);
    }
}

static void write_pvc(const KnServiceSpec *spec, KnBuf *out)
{
    write_head(out, spec, "v1", "PersistentVolumeClaim", "-state");
    kn_buf_text(out,
                "spec:\n  accessModes:\n    - \"ReadWriteOnce\"\n  resources:\n    requests:\n");
    write_text(out, "      storage: ", spec->state_size);
}

static void write_service(const KnServiceSpec *spec, KnBuf *out)
{
    write_head(out, spec, "v1", "Service", "");
    kn_buf_text(out, "spec:\n  clusterIP: \"None\"\n  selector:\n");
    write_labels(out, "    ", spec);
    kn_buf_printf(out,
                  "  ports:\n    - name: \"http\"\n      port: %d\n      targetPort: \"http\"\n",
                  spec->port);
}

static void write_probe(KnBuf *out, const char *name, const char *path, int period)
{
    kn_buf_printf(out,
                  "          %s:\n            httpGet:\n              path: \"%s\"\n"
                  "              port: \"http\"\n            periodSeconds: %d\n"
                  "            failureThreshold: 3\n            timeoutSeconds: 5\n",
                  name, path, period);
}

static void write_mounts(const KnServiceSpec *spec, KnBuf *out)
{
    KnStr folder = kn_path_dirname(kn_str(spec->state));
    KN_BUF_AUTO text;
    kn_buf_init(&text, 65536);
    kn_buf_str(&text, folder);
    write_text(out,
               "          volumeMounts:\n            - name: \"state\"\n              mountPath: ",
               text.data);
    write_text(out, "            - name: \"config\"\n              mountPath: ", spec->config);
    kn_buf_text(out, "              subPath: \"knut.yaml\"\n              readOnly: true\n"
                     "            - name: \"tmp\"\n              mountPath: \"/tmp\"\n");
}

static void write_container(const KnServiceSpec *spec, KnBuf *out)
{
    write_text(out, "      containers:\n        - name: \"knut\"\n          image: ", spec->image);
    write_text(out, "          command:\n            - ", "/usr/local/bin/knut");
    kn_buf_text(out, "          args:\n");
    for (const char *const *arg = spec->args; *arg; arg++)
        write_text(out, "            - ", *arg);
    if (spec->n_secrets) {
        kn_buf_text(out, "          envFrom:\n            - secretRef:\n");
        write_name(out, "                name: ", spec, "-secret");
    }
    kn_buf_printf(out,
                  "          ports:\n            - name: \"http\"\n"
                  "              containerPort: %d\n",
                  spec->port);
    write_probe(out, "livenessProbe", "/health", 20);
    write_probe(out, "readinessProbe", "/ready", 10);
    write_mounts(spec, out);
    kn_buf_text(out, "          securityContext:\n            allowPrivilegeEscalation: false\n"
                     "            readOnlyRootFilesystem: true\n            capabilities:\n"
                     "              drop:\n                - \"ALL\"\n");
}

static void write_statefulset(const KnServiceSpec *spec, KnBuf *out)
{
    write_head(out, spec, "apps/v1", "StatefulSet", "");
    write_name(out, "spec:\n  replicas: 1\n  serviceName: ", spec, "");
    kn_buf_text(out, "  selector:\n    matchLabels:\n");
    write_labels(out, "      ", spec);
    kn_buf_text(out, "  template:\n    metadata:\n      labels:\n");
    write_labels(out, "        ", spec);
    kn_buf_text(out,
                "    spec:\n      terminationGracePeriodSeconds: 900\n"
                "      automountServiceAccountToken: false\n      securityContext:\n"
                "        runAsNonRoot: true\n        runAsUser: 10001\n        fsGroup: 10001\n"
                "        seccompProfile:\n          type: \"RuntimeDefault\"\n");
    write_container(spec, out);
    kn_buf_text(out, "      volumes:\n        - name: \"state\"\n"
                     "          persistentVolumeClaim:\n");
    write_name(out, "            claimName: ", spec, "-state");
    kn_buf_text(out, "        - name: \"config\"\n          configMap:\n");
    write_name(out, "            name: ", spec, "-config");
    kn_buf_text(out, "        - name: \"tmp\"\n          emptyDir: {}\n");
}

const char *kn_k8s_file_name(KnK8sFile file)
{
    static const char *const NAMES[] = {"configmap", "secret", "pvc", "service", "statefulset"};
    return NAMES[file];
}

void kn_k8s_write(const KnServiceSpec *spec, KnK8sFile file, KnBuf *out)
{
    static void (*const WRITERS[])(const KnServiceSpec *, KnBuf *) = {
        write_configmap, write_secret, write_pvc, write_service, write_statefulset};
    WRITERS[file](spec, out);
}

KnCode kn_k8s_check(const KnServiceSpec *spec, KnErr *err)
{
    if (!spec->image || !*spec->image)
        return kn_err_set(err, KN_E_INVAL, "which image? give --image NAME:TAG");
    if (spec->port == 0 || spec->loopback)
        return kn_err_set(err, KN_E_INVAL,
                          "probes must be reachable: write 'listen: :9464' in the file, or give "
                          "--listen :9464");
    if (kn_str_eq(kn_path_dirname(kn_str(spec->state)), kn_path_dirname(kn_str(spec->config))))
        return kn_err_set(err, KN_E_INVAL,
                          "the journal needs a folder of its own, which becomes a volume: write "
                          "'state: /var/lib/%s/state.db' in the file",
                          spec->name);
    return KN_OK;
}
