/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
#ifndef MESHHOST_CBLUETOOTH_SHIM_H
#define MESHHOST_CBLUETOOTH_SHIM_H

/* The kernel's HCI sockets, which only libbluetooth's headers declare. Definitions alone: nothing is linked. */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>

_Static_assert(sizeof(struct sockaddr_hci) == 6, "what the kernel's bind takes");
_Static_assert(sizeof(struct hci_dev_info) == 92, "what HCIGETDEVINFO fills in");

/* Swift imports no macros that compute. */
static const unsigned long mh_hci_device_up = HCIDEVUP;
static const unsigned long mh_hci_device_down = HCIDEVDOWN;
static const unsigned long mh_hci_device_information = HCIGETDEVINFO;

#endif
