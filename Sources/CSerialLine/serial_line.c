/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
#include "mh_serial_line.h"

#include <asm/termbits.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

_Static_assert(sizeof(struct termios2) == 44, "the kernel's struct is not what TCSETS2 was made for");

int mh_serial_line_configure(int descriptor, uint32_t baud, bool hardware_flow_control, uint32_t *actual_baud)
{
    struct termios2 line;
    if (ioctl(descriptor, TCGETS2, &line) != 0)
        return errno;
    line.c_iflag = IGNBRK;
    line.c_oflag = 0;
    line.c_lflag = 0;
    line.c_cflag &= ~(unsigned)(CBAUD | (CBAUD << IBSHIFT) | CSIZE | CSTOPB | PARENB | CMSPAR | HUPCL | CRTSCTS);
    line.c_cflag |= BOTHER | (BOTHER << IBSHIFT) | CS8 | CREAD | CLOCAL;
    if (hardware_flow_control)
        line.c_cflag |= CRTSCTS;
    line.c_ispeed = baud;
    line.c_ospeed = baud;
    /* A read without bytes must say EAGAIN: with VMIN 0 it would say 0, which is the end. */
    line.c_cc[VMIN] = 1;
    line.c_cc[VTIME] = 0;
    if (ioctl(descriptor, TCSETS2, &line) != 0 || ioctl(descriptor, TCGETS2, &line) != 0)
        return errno;
    /* A driver that cannot do a speed takes another one and says so here only. Divisors of UARTs are off by up to 3 %. */
    *actual_baud = line.c_ospeed;
    if (llabs((long long)line.c_ospeed - (long long)baud) * 100 > (long long)baud * 3)
        return EDOM;
    return ioctl(descriptor, TCFLSH, TCIFLUSH) == 0 ? 0 : errno;
}

/* EINVAL: a driver without lines. EPIPE: a USB device that does not know the request (cdc_acm). */
static int without_lines(int failure)
{
    return failure == EINVAL || failure == EPIPE ? ENOTTY : failure;
}

int mh_serial_line_set_control(int descriptor, bool dtr, bool rts)
{
    int lines = 0;
    if (ioctl(descriptor, TIOCMGET, &lines) != 0)
        return without_lines(errno);
    lines &= ~(TIOCM_DTR | TIOCM_RTS);
    lines |= (dtr ? TIOCM_DTR : 0) | (rts ? TIOCM_RTS : 0);
    return ioctl(descriptor, TIOCMSET, &lines) == 0 ? 0 : without_lines(errno);
}

int mh_serial_line_make_exclusive(int descriptor)
{
    return ioctl(descriptor, TIOCEXCL) == 0 ? 0 : errno;
}
