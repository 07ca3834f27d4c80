/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_SETTINGS_H
#define VB_CLI_SETTINGS_H

#include <stddef.h>

/*
 * Checks the settings of the environment as the library will read them. Returns 0; or EINVAL, or
 * the errno for a file that a setting names, after reporting it. The library itself has no way to
 * report: programs would find no device and not know why.
 */
int vb_cli_settings_check(void);

/* The same, without reporting: the text says why, and is empty if all are right. */
int vb_cli_settings_why(char *chars, size_t bytes);

#endif
