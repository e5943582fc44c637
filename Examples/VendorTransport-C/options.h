/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * Options arrive as a JSON object that the host has written and checked against the option table. A module with text options
 * only needs no more than this; one with nested values takes a JSON library. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <meshhost_transport.h>

/* Copies the text of a member into buffer, NUL-ended. Returns 1, or 0 if there is no such member, or -1 if its value is no
 * text, does not fit, or holds a NUL. */
int read_option(mh_str json, const char *name, char *buffer, size_t size);

#endif
