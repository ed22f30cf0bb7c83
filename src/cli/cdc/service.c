/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - `knut cdc unit`, `install`, `uninstall`, `start`, `stop` and `k8s`: the deliveries of
 * a file as a service of systemd or Kubernetes, from one description (service/spec.h).
 */
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "service/install.h"

typedef struct ServiceOptions {
    KnCommonOptions common;
    const char *config, *name, *listen, *credentials, *run_as;
    bool system, dry_run, purge;
    const char *image, *namespace, *state_size, *out;
} ServiceOptions;

#define ROW(n, t, f, v, dd, d)                                                                     \
    {                                                                                              \
        .name = (n), .type = (t), .offset = offsetof(ServiceOptions, f), .value = (v),             \
        .dflt = (dd), .doc = (d)                                                                   \
    }
#define ROW_CONFIG                                                                                 \
    {                                                                                              \
        .name = "config", .type = KN_OPT_TEXT, .letter = 'c',                                      \
        .offset = offsetof(ServiceOptions, config), .value = "FILE", .dflt = "knut.yaml",          \
        .doc = "The deliveries (docs/many-tables.md)"                                              \
    }
#define ROW_NAME ROW("name", KN_OPT_TEXT, name, "NAME", "knut-cdc", "Name of the service")
#define ROW_SYSTEM                                                                                 \
    ROW("system", KN_OPT_FLAG, system, NULL, NULL,                                                 \
        "A service of the machine (as root), not of the user")
#define ROW_LISTEN                                                                                 \
    ROW("listen", KN_OPT_TEXT, listen, "ADDR", NULL,                                               \
        "Answer probes there, in place of the file's 'listen'")
#define ROW_CREDENTIALS                                                                            \
    ROW("credentials", KN_OPT_TEXT, credentials, "DIR", NULL,                                      \
        "Secrets are files of this folder, called as the variables: systemd hands them over "      \
        "(LoadCredential), and there is no environment file")
#define ROW_RUN_AS                                                                                 \
    ROW("run-as", KN_OPT_TEXT, run_as, "USER", NULL,                                               \
        "With --system: this user (default: one that systemd makes while the service runs)")

static const KnOption unit_rows[] = {ROW_CONFIG, ROW_NAME,        ROW_SYSTEM,
                                     ROW_LISTEN, ROW_CREDENTIALS, ROW_RUN_AS};
static const KnOption install_rows[] = {
    ROW_CONFIG,
    ROW_NAME,
    ROW_SYSTEM,
    ROW_LISTEN,
    ROW_CREDENTIALS,
    ROW_RUN_AS,
    ROW("dry-run", KN_OPT_FLAG, dry_run, NULL, NULL,
        "Print the unit and the names of secrets, never their values; write nothing"),
};
static const KnOption uninstall_rows[] = {
    ROW_NAME,
    ROW_SYSTEM,
    ROW("purge", KN_OPT_FLAG, purge, NULL, NULL,
        "Remove journal and configuration too, and say so: the next run would start over"),
};
static const KnOption control_rows[] = {ROW_NAME, ROW_SYSTEM};
static const KnOption k8s_rows[] = {
    ROW_CONFIG,
    ROW_NAME,
    ROW_LISTEN,
    ROW("image", KN_OPT_TEXT, image, "IMAGE", NULL, "Container image with the program"),
    ROW("namespace", KN_OPT_TEXT, namespace, "NAME", "default", "Where it runs"),
    ROW("state-size", KN_OPT_TEXT, state_size, "SIZE", "1Gi", "Size of the journal's volume"),
    ROW("out", KN_OPT_TEXT, out, "DIR", NULL, "Folder for the manifests; made when absent"),
};
#define N(rows) (sizeof(rows) / sizeof((rows)[0]))

static KnCode make_spec(const KnCall *call, const KnUnitPlace *place, KnServiceSpec *ret,
                        KnErr *err)
{
    const ServiceOptions *opts = call->options;
    if (opts->run_as && !opts->system)
        return kn_err_set(err, KN_E_INVAL, "--run-as goes with --system");
    const KnSpecOptions spec = {.config = opts->config,
                                .name = opts->name,
                                .listen = opts->listen,
                                .env_file = place ? place->env : NULL,
                                .credentials = opts->credentials,
                                .run_as = opts->run_as,
                                .system = opts->system,
                                .image = opts->image,
                                .namespace = opts->namespace,
                                .state_size = opts->state_size};
    return kn_service_spec_make(&spec, call->arena, ret, err);
}

/* ---- unit, install ---- */

static KnCode print_unit(const KnCall *call, const KnServiceSpec *spec, bool with_names, KnErr *err)
{
    KN_BUF_AUTO text;
    kn_buf_init(&text, 1 << 20);
    kn_service_unit_write(spec, &text);
    if (with_names)
        kn_buf_printf(&text, "\n# secrets (values are not shown):%s\n",
                      spec->n_secrets ? "" : " none are set");
    for (size_t i = 0; with_names && i < spec->n_secrets; i++)
        kn_buf_printf(&text, "#   %s\n", spec->secrets[i].name);
    KN_TRY(kn_buf_check(&text, err));
    if (call->common->output == KN_OUTPUT_TEXT)
        return kn_out_line((KnStr){text.data, text.len - 1}, err);
    static const KnOutColumn columns[] = {{"unit", false}};
    KnOut *out = kn_out_open(KN_OUTPUT_JSON, columns, 1);
    kn_out_text(out, text.data);
    return kn_out_close(out, err);
}

static KnCode run_unit(KnCall *call, KnErr *err)
{
    const ServiceOptions *opts = call->options;
    KnUnitPlace place;
    KnServiceSpec spec;
    KN_TRY(kn_unit_place(call->arena, opts->name, opts->system, &place, err));
    KN_TRY(make_spec(call, &place, &spec, err));
    return print_unit(call, &spec, false, err);
}

static const KnOutColumn change_columns[] = {{"file", false}, {"change", false}};

static void tell_change(void *arg, const char *file, const char *change)
{
    kn_out_text(arg, file);
    kn_out_text(arg, change);
}

static KnCode run_install(KnCall *call, KnErr *err)
{
    const ServiceOptions *opts = call->options;
    KnUnitPlace place;
    KnServiceSpec spec;
    KN_TRY(kn_unit_place(call->arena, opts->name, opts->system, &place, err));
    KN_TRY(make_spec(call, &place, &spec, err));
    if (opts->dry_run)
        return print_unit(call, &spec, true, err);
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, change_columns, 2);
    KnCode rc = kn_unit_install(&place, &spec, tell_change, out, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    return rc != KN_OK ? rc : closed;
}

const KnCommand kn_cmd_cdc_unit = {
    .group = "cdc",
    .name = "unit",
    .summary = "Print the systemd unit that install would write",
    .about = "  knut cdc unit -c knut.yaml --system",
    .options_size = sizeof(ServiceOptions),
    .rows = unit_rows,
    .n_rows = N(unit_rows),
    .run = run_unit,
};

const KnCommand kn_cmd_cdc_install = {
    .group = "cdc",
    .name = "install",
    .summary = "Make the deliveries of a file a service of systemd, and start it",
    .about = "  knut cdc install -c /etc/knut/knut.yaml --system\n\n"
             "Secrets of the environment (see docs/service.md) go into a file of mode 0600 that "
             "only systemd reads.\nNothing is done when everything is as it should be.",
    .options_size = sizeof(ServiceOptions),
    .rows = install_rows,
    .n_rows = N(install_rows),
    .run = run_install,
};

/* ---- uninstall, start, stop ---- */

static KnCode run_uninstall(KnCall *call, KnErr *err)
{
    const ServiceOptions *opts = call->options;
    KnUnitPlace place;
    KN_TRY(kn_unit_place(call->arena, opts->name, opts->system, &place, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, change_columns, 2);
    KnCode rc = kn_unit_uninstall(&place, opts->purge, tell_change, out, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    return rc != KN_OK ? rc : closed;
}

static KnCode control(const KnCall *call, const char *verb, KnErr *err)
{
    const ServiceOptions *opts = call->options;
    KnUnitPlace place;
    KN_TRY(kn_unit_place(call->arena, opts->name, opts->system, &place, err));
    return kn_unit_control(&place, verb, err);
}

static KnCode run_start(KnCall *call, KnErr *err)
{
    return control(call, "start", err);
}

static KnCode run_stop(KnCall *call, KnErr *err)
{
    return control(call, "stop", err);
}

const KnCommand kn_cmd_cdc_uninstall = {
    .group = "cdc",
    .name = "uninstall",
    .summary = "Stop the service and remove its unit; journal and configuration stay",
    .about = "  knut cdc uninstall --system",
    .options_size = sizeof(ServiceOptions),
    .rows = uninstall_rows,
    .n_rows = N(uninstall_rows),
    .run = run_uninstall,
};

const KnCommand kn_cmd_cdc_start = {
    .group = "cdc",
    .name = "start",
    .summary = "Start the installed service",
    .about = "  knut cdc start --system",
    .options_size = sizeof(ServiceOptions),
    .rows = control_rows,
    .n_rows = N(control_rows),
    .run = run_start,
};

const KnCommand kn_cmd_cdc_stop = {
    .group = "cdc",
    .name = "stop",
    .summary = "Stop the installed service: windows in flight are finished first",
    .about = "  knut cdc stop --system",
    .options_size = sizeof(ServiceOptions),
    .rows = control_rows,
    .n_rows = N(control_rows),
    .run = run_stop,
};

/* ---- k8s ---- */

static KnCode write_manifest(const KnCall *call, const KnServiceSpec *spec, KnK8sFile file,
                             KnOut *out, KnErr *err)
{
    const ServiceOptions *opts = call->options;
    const char *path = kn_arena_printf(call->arena, "%s/%s-%s.yaml", opts->out, spec->name,
                                       kn_k8s_file_name(file));
    KN_BUF_AUTO text;
    bool changed = false;
    kn_buf_init(&text, (size_t)32 << 20);
    kn_k8s_write(spec, file, &text);
    KN_TRY(kn_buf_check(&text, err));
    KN_TRY(kn_file_put(path, (KnStr){text.data, text.len}, file == KN_K8S_SECRET ? 0600 : 0644,
                       &changed, err));
    tell_change(out, path, changed ? "written" : "unchanged");
    return KN_OK;
}

static KnCode run_k8s(KnCall *call, KnErr *err)
{
    const ServiceOptions *opts = call->options;
    KnServiceSpec spec;
    if (!opts->out)
        return kn_err_set(err, KN_E_INVAL, "where to? give --out DIR");
    KN_TRY(make_spec(call, NULL, &spec, err));
    KN_TRY(kn_k8s_check(&spec, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, change_columns, 2);
    KnCode rc = KN_OK;
    for (int i = 0; i < KN_N_K8S_FILES && rc == KN_OK; i++)
        if (i != KN_K8S_SECRET || spec.n_secrets)
            rc = write_manifest(call, &spec, (KnK8sFile)i, out, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    return rc != KN_OK ? rc : closed;
}

const KnCommand kn_cmd_cdc_k8s = {
    .group = "cdc",
    .name = "k8s",
    .summary = "Write Kubernetes' manifests for the deliveries of a file",
    .about = "  knut cdc k8s -c knut.yaml --image registry.example/knut:1 --out manifests\n\n"
             "ConfigMap, Secret (mode 0600; from the environment), PersistentVolumeClaim, Service "
             "and StatefulSet.",
    .options_size = sizeof(ServiceOptions),
    .rows = k8s_rows,
    .n_rows = N(k8s_rows),
    .run = run_k8s,
};
