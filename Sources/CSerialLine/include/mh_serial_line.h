/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
#ifndef MESHHOST_SERIAL_LINE_H
#define MESHHOST_SERIAL_LINE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What of a serial line glibc cannot say: <termios.h> knows a list of speeds, the kernel any (`struct termios2`, BOTHER).
 * The kernel's header cannot be included beside glibc's, so it stays in this target's one C file.
 *
 * All functions return 0 or an errno, and may wait for a USB device: do not call them on the loop. */

/* Raw bytes, 8N1, at `baud` both ways, receiver on, modem lines ignored, no hang-up at close. What had been received before
 * is dropped. EDOM: the driver took the settings with another speed, which is stored in `actual_baud`. */
int mh_serial_line_configure(int descriptor, uint32_t baud, bool hardware_flow_control, uint32_t *actual_baud);

/* Sets DTR and RTS together, in one request to the device: boards with an auto-reset circuit take the state between two
 * requests for a reset. ENOTTY: the port has no such lines. */
int mh_serial_line_set_control(int descriptor, bool dtr, bool rts);

/* Keeps others from opening the port (TIOCEXCL), as far as the kernel does: not root. */
int mh_serial_line_make_exclusive(int descriptor);

#ifdef __cplusplus
}
#endif

#endif
