// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices
