/* SPDX-License-Identifier: Apache-2.0 */
/* meshhost: a host for mesh radios and other byte-link devices */

/* The baseline: one radio, many clients, in C on libuv. Parses each frame of the radio and writes it to every client;
 * parses each frame of a client and writes it to the radio. Nothing more: no owner of a reply, no bounded queues, no
 * events. A frame is stored once and shared by the writes of all clients.
 *
 *   relay HOST PORT         prints {"ev":"ready","port":N} when it listens and the radio is connected
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { HEADER = 3, LARGEST_PAYLOAD = 176, BUFFER = 1 << 16 };

/* One end of a connection, with the bytes of an unfinished frame. */
struct peer {
    uv_tcp_t tcp;
    struct peer *next, **link;    /* clients only */
    size_t count;
    char bytes[BUFFER];
};

/* A frame on its way to one or more peers. */
struct frame {
    unsigned writes;
    size_t length;
    char bytes[];
};

struct write {
    uv_write_t request;
    struct frame *frame;
};

static uv_loop_t *loop;
static struct peer radio, *clients;
static uv_tcp_t listener;

static void check(int status, const char *what) {
    if (status >= 0) return;
    fprintf(stderr, "relay: %s: %s\n", what, uv_strerror(status));
    exit(1);
}

static void *need(void *memory) {
    if (!memory) abort();
    return memory;
}

static void written(uv_write_t *request, int status) {
    (void)status;
    struct write *write = (struct write *)request;
    if (--write->frame->writes == 0) free(write->frame);
    free(write);
}

static void write_frame(struct frame *frame, struct peer *peer) {
    struct write *write = need(malloc(sizeof *write));
    uv_buf_t buffer = uv_buf_init(frame->bytes, (unsigned)frame->length);
    write->frame = frame;
    frame->writes++;
    if (uv_write(&write->request, (uv_stream_t *)&peer->tcp, &buffer, 1, written) < 0) {
        frame->writes--;
        free(write);
    }
}

static void relay(const char *bytes, size_t length, bool from_radio) {
    struct frame *frame = need(malloc(sizeof *frame + length));
    frame->writes = 1;            /* ours, while writes are being made */
    frame->length = length;
    memcpy(frame->bytes, bytes, length);
    if (from_radio)
        for (struct peer *client = clients; client; client = client->next) write_frame(frame, client);
    else
        write_frame(frame, &radio);
    if (--frame->writes == 0) free(frame);
}

static void parse(struct peer *peer) {
    bool from_radio = peer == &radio;
    char marker = from_radio ? '>' : '<';
    size_t at = 0;
    while (peer->count - at >= HEADER) {
        const unsigned char *head = (const unsigned char *)peer->bytes + at;
        size_t length = (size_t)(head[1] | head[2] << 8);
        if ((char)head[0] != marker || length == 0 || length > LARGEST_PAYLOAD) {
            at++;
            continue;
        }
        if (peer->count - at < HEADER + length) break;
        relay(peer->bytes + at, HEADER + length, from_radio);
        at += HEADER + length;
    }
    memmove(peer->bytes, peer->bytes + at, peer->count - at);
    peer->count -= at;
}

static void freed(uv_handle_t *handle) { free(handle); }

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    (void)suggested;
    struct peer *peer = (struct peer *)handle;
    *buffer = uv_buf_init(peer->bytes + peer->count, (unsigned)(BUFFER - peer->count));
}

static void was_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer) {
    (void)buffer;
    struct peer *peer = (struct peer *)stream;
    if (count > 0) {
        peer->count += (size_t)count;
        parse(peer);
    } else if (count < 0 && peer == &radio) {
        fprintf(stderr, "relay: the radio is gone\n");
        exit(1);
    } else if (count < 0) {
        *peer->link = peer->next;
        if (peer->next) peer->next->link = peer->link;
        uv_close((uv_handle_t *)peer, freed);
    }
}

static void accepted(uv_stream_t *server, int status) {
    check(status, "accept");
    struct peer *client = need(calloc(1, sizeof *client));
    uv_tcp_init(loop, &client->tcp);
    check(uv_accept(server, (uv_stream_t *)&client->tcp), "accept");
    uv_tcp_nodelay(&client->tcp, 1);
    client->next = clients, client->link = &clients;
    if (clients) clients->link = &client->next;
    clients = client;
    uv_read_start((uv_stream_t *)&client->tcp, give_buffer, was_read);
}

static void connected(uv_connect_t *request, int status) {
    check(status, "connect");
    free(request);
    uv_tcp_nodelay(&radio.tcp, 1);
    uv_read_start((uv_stream_t *)&radio.tcp, give_buffer, was_read);

    struct sockaddr_in address;
    int size = sizeof address;
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(loop, &listener);
    check(uv_tcp_bind(&listener, (struct sockaddr *)&address, 0), "bind");
    check(uv_listen((uv_stream_t *)&listener, 128, accepted), "listen");
    check(uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &size), "getsockname");
    printf("{\"ev\":\"ready\",\"port\":%u}\n", (unsigned)ntohs(address.sin_port));
    fflush(stdout);
}

int main(int count, char **words) {
    struct sockaddr_in address;
    if (count != 3 || uv_ip4_addr(words[1], atoi(words[2]), &address)) {
        fprintf(stderr, "usage: relay HOST PORT\n");
        return 64;
    }
    signal(SIGPIPE, SIG_IGN);
    loop = uv_default_loop();
    uv_tcp_init(loop, &radio.tcp);
    check(uv_tcp_connect(need(malloc(sizeof(uv_connect_t))), &radio.tcp, (struct sockaddr *)&address, connected),
          "connect");
    return uv_run(loop, UV_RUN_DEFAULT);
}
