/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
#ifndef MESHHOST_CDBUS_SHIM_H
#define MESHHOST_CDBUS_SHIM_H
#include <dbus/dbus.h>
#endif
