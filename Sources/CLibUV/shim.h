/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
#ifndef MESHHOST_CLIBUV_SHIM_H
#define MESHHOST_CLIBUV_SHIM_H
#include <uv.h>
#endif
