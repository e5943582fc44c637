/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * Nothing to see: the module exports what meshhost_transport.h declares. */
