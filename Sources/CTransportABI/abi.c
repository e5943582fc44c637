/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * Holds the layout of the module ABI in place: sizes and offsets may only grow at the end of a struct. */
#include "meshhost_transport.h"

/* Where the field is: with n pointer-sized fields before it and b bytes of 32-bit ones. */
#define AT(type, field, bytes, pointers) \
  _Static_assert(offsetof(type, field) == (bytes) + (pointers) * sizeof(void *), #type "." #field " has moved")
#define SIZE(type, bytes, pointers) \
  _Static_assert(sizeof(type) == (bytes) + (pointers) * sizeof(void *), "the size of " #type " has changed")

_Static_assert(sizeof(void *) == 8 || sizeof(void *) == 4, "the ABI is defined for 64-bit and 32-bit pointers");
_Static_assert(sizeof(size_t) == sizeof(void *), "size_t has the size of a pointer");
_Static_assert(sizeof(void (*)(void)) == sizeof(void *), "function pointers have the size of a pointer");
_Static_assert(sizeof(mh_status) == 4, "mh_status has 32 bits");
_Static_assert(sizeof(mh_link) == 8, "mh_link has 64 bits");

SIZE(mh_str, 0, 2);
SIZE(mh_bytes, 0, 2);

AT(mh_host_api, ctx, 8, 0);
AT(mh_host_api, loop, 8, 1);
AT(mh_host_api, log, 8, 2);
AT(mh_host_api, now_ns, 8, 3);
AT(mh_host_api, rx_frame, 8, 4);
AT(mh_host_api, link_up, 8, 5);
AT(mh_host_api, link_down, 8, 6);
AT(mh_host_api, writable, 8, 7);
AT(mh_host_api, tx_done, 8, 8);
AT(mh_host_api, found, 8, 9);
AT(mh_host_api, metric, 8, 10);
AT(mh_host_api, stopped, 8, 11);
AT(mh_host_api, secret, 8, 12);
AT(mh_host_api, link_event, 8, 13);
AT(mh_host_api, managed, 8, 14); /* 1.1 */
AT(mh_host_api, scan_failed, 8, 15); /* 1.2 */
SIZE(mh_host_api, 8, 16);

AT(mh_transport_ops, validate, 8, 0);
AT(mh_transport_ops, create, 8, 1);
AT(mh_transport_ops, start, 8, 2);
AT(mh_transport_ops, scan, 8, 3);
AT(mh_transport_ops, connect, 8, 4);
AT(mh_transport_ops, send, 8, 5);
AT(mh_transport_ops, disconnect, 8, 6);
AT(mh_transport_ops, probe, 8, 7);
AT(mh_transport_ops, diagnostics, 8, 8);
AT(mh_transport_ops, stop, 8, 9);
AT(mh_transport_ops, destroy, 8, 10);
AT(mh_transport_ops, rx_ready, 8, 11);
AT(mh_transport_ops, send_without_response, 8, 12);
AT(mh_transport_ops, manage, 8, 13); /* 1.1 */
AT(mh_transport_ops, manage_cancel, 8, 14);
AT(mh_transport_ops, identity, 8, 15); /* 1.2 */
SIZE(mh_transport_ops, 8, 16);

AT(mh_option, type, 4, 0);
AT(mh_option, name, 8, 0);
AT(mh_option, default_text, 8, 1);
AT(mh_option, help, 8, 2);
AT(mh_option, secret, 8, 3);
SIZE(mh_option, 16, 3);

AT(mh_transport_info, abi_major, 4, 0);
AT(mh_transport_info, abi_minor_built, 8, 0);
AT(mh_transport_info, abi_minor_needed, 12, 0);
AT(mh_transport_info, name, 16, 0);
AT(mh_transport_info, version, 16, 1);
AT(mh_transport_info, vendor, 16, 2);
AT(mh_transport_info, license, 16, 3);
AT(mh_transport_info, url, 16, 4);
#if UINTPTR_MAX == UINT64_MAX
AT(mh_transport_info, caps, 16, 5);
AT(mh_transport_info, ops, 24, 5);
AT(mh_transport_info, options, 24, 6);
AT(mh_transport_info, option_count, 24, 7);
SIZE(mh_transport_info, 24, 8);
#elif defined(__i386__)
/* The i386 psABI aligns uint64_t in a struct to 4 bytes. */
_Static_assert(offsetof(mh_transport_info, caps) == 36, "mh_transport_info.caps has moved");
_Static_assert(sizeof(mh_transport_info) == 56, "the size of mh_transport_info has changed");
#else
/* 32-bit arm and others align it to 8: four bytes of padding stand before caps and after option_count. */
_Static_assert(offsetof(mh_transport_info, caps) == 40, "mh_transport_info.caps has moved");
_Static_assert(offsetof(mh_transport_info, ops) == 48, "mh_transport_info.ops has moved");
_Static_assert(sizeof(mh_transport_info) == 64, "the size of mh_transport_info has changed");
#endif
