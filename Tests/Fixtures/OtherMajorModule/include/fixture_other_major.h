/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
const void *mh_transport_entry_v2(void);
