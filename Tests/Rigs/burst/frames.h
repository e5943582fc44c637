/* SPDX-License-Identifier: Apache-2.0 */
/* meshhost: a host for mesh radios and other byte-link devices */

/* What burst_radio and load_client share: companion frames, events, time, sockets. Written apart from the Swift
 * implementation, on purpose: a mistake there is not repeated here. */
#ifndef FRAMES_H
#define FRAMES_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER = 3,
    LARGEST_PAYLOAD = 512,        /* the firmware's limit is 176 */
    PUSH_CODE = 0x88,             /* LOG_RX; behind SNR and RSSI: sequence u32, nanoseconds u64, filler */
    PUSH_SEQUENCE = 3,
    PUSH_TIME = 7,
    SMALLEST_PUSH = 15,
};

static inline _Noreturn void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(64);
}

static inline void *need(void *memory) {
    if (!memory) die("out of memory");
    return memory;
}

static inline uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint16_t get16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }
static inline uint32_t get32(const uint8_t *at) { return get16(at) | (uint32_t)get16(at + 2) << 16; }
static inline uint64_t get64(const uint8_t *at) { return get32(at) | (uint64_t)get32(at + 4) << 32; }
static inline void put16(uint8_t *at, uint16_t value) { at[0] = (uint8_t)value, at[1] = (uint8_t)(value >> 8); }
static inline void put32(uint8_t *at, uint32_t value) {
    put16(at, (uint16_t)value);
    put16(at + 2, (uint16_t)(value >> 16));
}
static inline void put64(uint8_t *at, uint64_t value) {
    put32(at, (uint32_t)value);
    put32(at + 4, (uint32_t)(value >> 32));
}

static inline size_t put_frame(uint8_t *at, uint8_t marker, const void *payload, size_t length) {
    at[0] = marker;
    put16(at + 1, (uint16_t)length);
    memcpy(at + HEADER, payload, length);
    return HEADER + length;
}

/* The next whole frame in `bytes`: its payload, with `*used` bytes to drop afterwards; NULL when more is needed.
 * Bytes that begin no frame are dropped and counted in `*noise`. */
static inline const uint8_t *next_frame(const uint8_t *bytes, size_t count, uint8_t marker, size_t *length,
                                        size_t *used, uint64_t *noise) {
    size_t at = 0;
    for (;;) {
        while (at < count && bytes[at] != marker) at++, (*noise)++;
        *used = at;
        if (count - at < HEADER) return NULL;
        *length = get16(bytes + at + 1);
        if (*length > 0 && *length <= LARGEST_PAYLOAD) break;
        at++, (*noise)++;
    }
    if (count - at < HEADER + *length) return NULL;
    *used = at + HEADER + *length;
    return bytes + at + HEADER;
}

/* One JSON object a line on standard output: {"t":seconds,"ev":name,...}. `fields` is JSON without the braces. */
static inline void event(const char *name, const char *fields, ...) {
    static uint64_t start;
    if (!start) start = now_ns();
    printf("{\"t\":%.4f,\"ev\":\"%s\"", (double)(now_ns() - start) / 1e9, name);
    if (*fields) {
        putchar(',');
        va_list arguments;
        va_start(arguments, fields);
        vprintf(fields, arguments);
        va_end(arguments);
    }
    puts("}");
    fflush(stdout);
}

static inline void nonblocking(int descriptor) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

/* `HOST:PORT` (numbers), `[HOST]:PORT` or `unix:PATH`. */
static inline socklen_t parse_address(const char *text, struct sockaddr_storage *address) {
    memset(address, 0, sizeof *address);
    if (strncmp(text, "unix:", 5) == 0) {
        struct sockaddr_un *local = (struct sockaddr_un *)address;
        local->sun_family = AF_UNIX;
        if (strlen(text + 5) >= sizeof local->sun_path) die("%s: too long for a Unix socket", text);
        strcpy(local->sun_path, text + 5);
        return sizeof *local;
    }
    const char *colon = strrchr(text, ':');
    if (!colon) die("%s: HOST:PORT or unix:PATH", text);
    char host[64];
    size_t length = (size_t)(colon - text);
    if (*text == '[' && length > 2) text++, length -= 2;
    if (length >= sizeof host) die("%s: no address", text);
    memcpy(host, text, length);
    host[length] = 0;
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)atoi(colon + 1));
        return sizeof *four;
    }
    if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)atoi(colon + 1));
        return sizeof *six;
    }
    die("%s: not a numeric address", text);
}

#endif
