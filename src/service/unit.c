/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.c - a spec as a systemd unit and its environment file.
 *
 * Words of ExecStart are quoted so that systemd gives them back as they are: '%' and '$' doubled,
 * quotes and backslashes escaped. Values of the environment file stand in double quotes, where
 * systemd takes a backslash before " \ $ ` and nothing else as special; a newline stays one.
 */
#include "service/spec.h"

static void write_word(KnBuf *out, const char *word)
{
    kn_buf_char(out, '"');
    for (const char *p = word; *p; p++) {
        if (*p == '%' || *p == '$')
            kn_buf_char(out, *p);
        if (*p == '"' || *p == '\\')
            kn_buf_char(out, '\\');
        kn_buf_char(out, *p);
    }
    kn_buf_char(out, '"');
}

/* A path as the value of a key: specifiers only. */
static void write_path(KnBuf *out, const char *path)
{
    for (const char *p = path; *p; p++) {
        if (*p == '%')
            kn_buf_char(out, '%');
        kn_buf_char(out, *p);
    }
}

static void write_key(KnBuf *out, const char *key, const char *path)
{
    kn_buf_printf(out, "%s=", key);
    write_path(out, path);
    kn_buf_char(out, '\n');
}

static void write_identity(const KnServiceSpec *spec, KnBuf *out)
{
    if (!spec->system)
        return;
    if (spec->run_as)
        kn_buf_printf(out, "User=%s\n", spec->run_as);
    else
        kn_buf_printf(out, "DynamicUser=yes\nStateDirectory=%s\n", spec->name);
}

/* What the process may not do. A user's manager cannot make name spaces of its own for all of it.
 */
static void write_sandbox(const KnServiceSpec *spec, KnBuf *out)
{
    kn_buf_text(out, "UMask=0077\nNoNewPrivileges=yes\nLockPersonality=yes\nRestrictRealtime=yes\n"
                     "RestrictSUIDSGID=yes\nMemoryDenyWriteExecute=yes\n"
                     "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n"
                     "SystemCallArchitectures=native\nSystemCallFilter=@system-service\n");
    if (!spec->system)
        return;
    kn_buf_text(out, "CapabilityBoundingSet=\nAmbientCapabilities=\nProtectSystem=strict\n"
                     "ProtectHome=read-only\nPrivateTmp=yes\nPrivateDevices=yes\n"
                     "ProtectKernelTunables=yes\nProtectKernelModules=yes\nProtectKernelLogs=yes\n"
                     "ProtectControlGroups=yes\nProtectClock=yes\nProtectHostname=yes\n"
                     "RestrictNamespaces=yes\n");
    for (const char *const *path = spec->writable; *path; path++) {
        kn_buf_text(out, "ReadWritePaths=");
        write_word(out, *path);
        kn_buf_char(out, '\n');
    }
}

static void write_secrets(const KnServiceSpec *spec, KnBuf *out)
{
    for (size_t i = 0; spec->credentials && i < spec->n_secrets; i++) {
        kn_buf_printf(out, "LoadCredential=%s:", spec->secrets[i].name);
        write_path(out, spec->credentials);
        kn_buf_printf(out, "/%s\n", spec->secrets[i].name);
    }
    if (spec->env_file && spec->n_secrets && !spec->credentials)
        write_key(out, "EnvironmentFile", spec->env_file);
}

void kn_service_unit_write(const KnServiceSpec *spec, KnBuf *out)
{
    kn_buf_text(out,
                "# Made by `knut cdc install`; it is made anew when that runs again.\n[Unit]\n");
    kn_buf_text(out, "Description=Deliveries of ");
    write_path(out, spec->config);
    kn_buf_char(out, '\n');
    if (spec->system)
        kn_buf_text(out, "Wants=network-online.target\nAfter=network-online.target\n");
    kn_buf_text(out, "\n[Service]\nType=notify\nNotifyAccess=main\nExecStart=");
    write_word(out, spec->program);
    for (const char *const *arg = spec->args; *arg; arg++) {
        kn_buf_char(out, ' ');
        write_word(out, *arg);
    }
    kn_buf_text(out, "\nExecReload=/bin/kill -HUP $MAINPID\nRestart=on-failure\nRestartSec=5\n"
                     "RestartPreventExitStatus=2\nTimeoutStartSec=infinity\nTimeoutStopSec=15min\n"
                     "WatchdogSec=2min\n");
    write_identity(spec, out);
    write_secrets(spec, out);
    write_sandbox(spec, out);
    kn_buf_printf(out, "\n[Install]\nWantedBy=%s\n",
                  spec->system ? "multi-user.target" : "default.target");
    kn_buf_text(out, "\n[X-Knut]\n");
    write_key(out, "Config", spec->config);
    write_key(out, "State", spec->state);
    if (spec->env_file && spec->n_secrets && !spec->credentials)
        write_key(out, "Environment", spec->env_file);
}

void kn_service_env_write(const KnServiceSpec *spec, KnBuf *out)
{
    for (size_t i = 0; i < spec->n_secrets; i++) {
        kn_buf_printf(out, "%s=\"", spec->secrets[i].name);
        for (const char *p = spec->secrets[i].value; *p; p++) {
            if (strchr("\"\\$`", *p))
                kn_buf_char(out, '\\');
            kn_buf_char(out, *p);
        }
        kn_buf_text(out, "\"\n");
    }
}
