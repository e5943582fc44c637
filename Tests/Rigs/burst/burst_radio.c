/* SPDX-License-Identifier: Apache-2.0 */
/* meshhost: a host for mesh radios and other byte-link devices */

/* Companion radios on TCP that answer what a host asks for, and push numbered frames as fast as they are taken.
 * See README.md for options, commands and events. */
#define _GNU_SOURCE
#include "frames.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

enum { BUFFER = 1 << 16, LISTEN_QUEUE = 1024, WRITES_A_TURN = 8 };

enum kind { COMMANDS, SIGNALS, CLOCK, LISTENER, HOST, FILLER };

struct radio;

/* Whatever epoll watches. */
struct watched {
    enum kind kind;
    int descriptor;
    struct radio *radio;
};

/* The connection of a host. A frame is only made when there is room for it, so nothing is ever dropped. */
struct host {
    struct watched watched;
    uint32_t wanted;              /* what epoll watches for */
    bool greeted;
    uint64_t held_until;          /* the answer to the greeting is late */
    struct host *next_held;
    size_t in_count, out_first, out_count;
    uint8_t in[4096], out[BUFFER];
};

struct radio {
    unsigned number, port;
    struct watched listener, filler;
    struct host *host;
    uint32_t sequence;            /* of the next push; goes on over connections */
    uint64_t to_push;             /* pushes of the running burst not yet made */
    size_t push_length;
    uint64_t mail;                /* messages that wait to be read */
    uint32_t next_mail;
};

/* A burst in portions. */
static struct {
    uint64_t left, interval_ns, next_ns;
    unsigned batch;
    size_t length;
} pace;

static struct {
    uint64_t accepted, lost, frames_in, pushes, noise;
    unsigned connected, handshaking, peak_handshaking;
} counted;

static struct radio *radios;
static unsigned radio_count = 1;
static const char *bind_address = "127.0.0.1";
static unsigned first_port;
static uint64_t handshake_ns;
static bool quiet;
static int epoll, clock_descriptor;
static struct host *held_first, *held_last;

static void watch(struct watched *watched, uint32_t events, int operation) {
    struct epoll_event wanted = {.events = events, .data.ptr = watched};
    if (epoll_ctl(epoll, operation, watched->descriptor, &wanted)) die("epoll_ctl: %s", strerror(errno));
}

/* Writing ---------------------------------------------------------------------------------------------------------- */

static size_t room(const struct host *host) { return BUFFER - host->out_first - host->out_count; }

static void append(struct host *host, const uint8_t *payload, size_t length) {
    host->out_count += put_frame(host->out + host->out_first + host->out_count, '>', payload, length);
}

static void close_host(struct radio *radio, const char *why);

/* Makes pushes while there is room. */
static void make_pushes(struct radio *radio) {
    struct host *host = radio->host;
    uint8_t payload[LARGEST_PAYLOAD];
    if (!radio->to_push || room(host) < HEADER + radio->push_length) return;
    memset(payload, 0x55, radio->push_length);
    payload[0] = PUSH_CODE, payload[1] = 20, payload[2] = (uint8_t)-85;
    put64(payload + PUSH_TIME, now_ns());
    while (radio->to_push && room(host) >= HEADER + radio->push_length) {
        put32(payload + PUSH_SEQUENCE, radio->sequence++);
        append(host, payload, radio->push_length);
        counted.pushes++;
        if (!--radio->to_push && !pace.left) event("burst_end", "\"radio\":%u,\"next\":%u", radio->number,
                                                   radio->sequence);
    }
}

static void want(struct host *host, uint32_t events) {
    if (events != host->wanted) watch(&host->watched, events, EPOLL_CTL_MOD);
    host->wanted = events;
}

/* Writes what is there, and goes on when the socket takes more. Bounded, so that a long burst leaves a turn to
 * everything else. */
static void flush(struct radio *radio) {
    struct host *host = radio->host;
    for (int turn = 0; turn < WRITES_A_TURN; turn++) {
        make_pushes(radio);
        if (!host->out_count) break;
        ssize_t sent = send(host->watched.descriptor, host->out + host->out_first, host->out_count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            memmove(host->out, host->out + host->out_first, host->out_count);
            host->out_first = 0;
            break;
        }
        if (sent < 0) {
            close_host(radio, strerror(errno));
            return;
        }
        host->out_first += (size_t)sent, host->out_count -= (size_t)sent;
        if (!host->out_count) host->out_first = 0;
    }
    want(host, (host->in_count < sizeof host->in ? EPOLLIN : 0) | (host->out_count || radio->to_push ? EPOLLOUT : 0));
}

/* Answers ---------------------------------------------------------------------------------------------------------- */

static void put_text(uint8_t *at, size_t size, const char *text) {
    memset(at, 0, size);
    memcpy(at, text, strlen(text) < size ? strlen(text) : size - 1);
}

static void answer(struct radio *radio, const uint8_t *asked, size_t length) {
    struct host *host = radio->host;
    uint8_t reply[LARGEST_PAYLOAD] = {0};
    char name[32];
    counted.frames_in++;
    switch (asked[0]) {
    case 1:                                       /* APP_START: SELF_INFO */
        if (length < 8) break;
        snprintf(name, sizeof name, "Burst %u", radio->number);
        reply[0] = 5, reply[1] = 1, reply[2] = 20, reply[3] = 22;
        memset(reply + 4, 0xB0, 32);
        put32(reply + 4, radio->number);
        put32(reply + 48, 869525), put32(reply + 52, 250000), reply[56] = 11, reply[57] = 5;
        memcpy(reply + 58, name, strlen(name));
        append(host, reply, 58 + strlen(name));
        if (!host->greeted) host->greeted = true, counted.handshaking--;
        return;
    case 22:                                      /* DEVICE_QUERY: DEVICE_INFO */
        if (length < 2) break;
        reply[0] = 13, reply[1] = 13, reply[2] = 175, reply[3] = 40;
        put_text(reply + 8, 12, "30 Nov 2026"), put_text(reply + 20, 40, "Burst"), put_text(reply + 60, 20, "v1.17.1");
        append(host, reply, 82);
        return;
    case 5:                                       /* GET_TIME: CURR_TIME */
        reply[0] = 9;
        put32(reply + 1, (uint32_t)time(NULL));
        append(host, reply, 5);
        return;
    case 20:                                      /* GET_BATT_STORAGE: BATT_STORAGE */
        reply[0] = 12;
        put16(reply + 1, 4100), put32(reply + 3, 12), put32(reply + 7, 1024);
        append(host, reply, 11);
        return;
    case 31:                                      /* GET_CHANNEL: CHANNEL_INFO; there are all 256 */
        if (length < 2) break;
        snprintf(name, sizeof name, "channel %u", asked[1]);
        reply[0] = 18, reply[1] = asked[1];
        put_text(reply + 2, 32, name);
        memset(reply + 34, asked[1], 16);
        append(host, reply, 50);
        return;
    case 10:                                      /* SYNC_NEXT_MESSAGE: CONTACT_MSG_RECV_V3, NO_MORE_MESSAGES */
        if (!radio->mail) {
            append(host, (const uint8_t[]){10}, 1);
            return;
        }
        radio->mail--;
        snprintf(name, sizeof name, "mail %u", radio->next_mail);
        reply[0] = 16, reply[1] = 20;
        memset(reply + 4, 0xC0, 6);
        reply[10] = 0xFF;
        put32(reply + 12, 1704067200 + radio->next_mail++);
        memcpy(reply + 16, name, strlen(name));
        append(host, reply, 16 + strlen(name));
        return;
    case 42:                                      /* GET_ADVERT_PATH: ADVERT_PATH, its time the key's first four bytes */
        if (length < 34) break;
        reply[0] = 22;
        memcpy(reply + 1, asked + 2, 4);
        append(host, reply, 6);
        return;
    case 56:                                      /* GET_STATS: STATS of the radio */
        if (length < 2 || asked[1] != 1) break;
        reply[0] = 24, reply[1] = 1;
        append(host, reply, 14);
        return;
    case 4:                                       /* GET_CONTACTS: none */
        append(host, (const uint8_t[]){2, 0, 0, 0, 0}, 5);
        append(host, (const uint8_t[]){4, 0, 0, 0, 0}, 5);
        return;
    default: break;
    }
    append(host, (const uint8_t[]){1, 1}, 2);     /* as the firmware: unsupported */
}

/* Answers every whole frame; stops while a late greeting is due, or there is no room for an answer. */
static void take_frames(struct radio *radio) {
    struct host *host = radio->host;
    size_t used = 0, length = 0, done = 0;
    while (!host->held_until && room(host) >= 4 * LARGEST_PAYLOAD) {
        const uint8_t *payload = next_frame(host->in + done, host->in_count - done, '<', &length, &used,
                                            &counted.noise);
        if (!payload) {
            done += used;
            break;
        }
        if (payload[0] == 1 && !host->greeted && handshake_ns) {
            host->held_until = now_ns() + handshake_ns;
            if (held_last) held_last->next_held = host;
            else held_first = host;
            held_last = host;
            break;                                /* the frame stays, and is answered when its time has come */
        }
        answer(radio, payload, length);
        done += used;
    }
    memmove(host->in, host->in + done, host->in_count - done);
    host->in_count -= done;
    flush(radio);
}

static void unhold(struct host *host) {
    struct host *before = NULL;
    for (struct host *each = held_first; each; before = each, each = each->next_held) {
        if (each != host) continue;
        if (before) before->next_held = host->next_held;
        else held_first = host->next_held;
        if (held_last == host) held_last = before;
        host->next_held = NULL;
        return;
    }
}

/* Connections ------------------------------------------------------------------------------------------------------ */

static void close_host(struct radio *radio, const char *why) {
    struct host *host = radio->host;
    if (!host) return;
    radio->host = NULL;
    unhold(host);
    close(host->watched.descriptor);
    counted.connected--, counted.lost++;
    if (!host->greeted) counted.handshaking--;
    if (!quiet) event("lost", "\"radio\":%u,\"why\":\"%s\"", radio->number, why);
    free(host);
}

static void accept_host(struct radio *radio) {
    int descriptor = accept4(radio->listener.descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) return;
    close_host(radio, "a newer client");          /* the firmware's rule */
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct host *host = need(calloc(1, sizeof *host));
    host->watched = (struct watched){HOST, descriptor, radio};
    radio->host = host;
    watch(&host->watched, host->wanted = EPOLLIN, EPOLL_CTL_ADD);
    counted.accepted++, counted.connected++;
    if (++counted.handshaking > counted.peak_handshaking) counted.peak_handshaking = counted.handshaking;
    if (!quiet) event("connected", "\"radio\":%u,\"connection\":%lu", radio->number, counted.accepted);
}

static void listen_on(struct radio *radio) {
    struct sockaddr_storage address;
    char text[80];
    unsigned port = radio->port ? radio->port : first_port ? first_port + radio->number : 0;
    snprintf(text, sizeof text, "%s:%u", bind_address, port);
    socklen_t size = parse_address(text, &address);
    int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) die("socket: %s", strerror(errno));
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(descriptor, (struct sockaddr *)&address, size) || listen(descriptor, LISTEN_QUEUE))
        die("%s: %s", text, strerror(errno));
    getsockname(descriptor, (struct sockaddr *)&address, &size);
    radio->port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    radio->listener = (struct watched){LISTENER, descriptor, radio};
    watch(&radio->listener, EPOLLIN, EPOLL_CTL_ADD);
}

static void stop_listening(struct radio *radio) {
    if (radio->listener.descriptor < 0) return;
    close(radio->listener.descriptor);
    radio->listener.descriptor = -1;
}

/* Out of range: the kernel answers no SYN, because the queue of connections to accept is full. One connection of our
 * own fills it. */
static void go_dark(struct radio *radio) {
    close_host(radio, "dark");
    if (radio->listener.descriptor < 0 || radio->filler.descriptor >= 0) return;
    epoll_ctl(epoll, EPOLL_CTL_DEL, radio->listener.descriptor, NULL);
    listen(radio->listener.descriptor, 0);
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    getsockname(radio->listener.descriptor, (struct sockaddr *)&address, &size);
    int filler = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (filler < 0) die("socket: %s", strerror(errno));
    connect(filler, (struct sockaddr *)&address, size);
    radio->filler = (struct watched){FILLER, filler, radio};
}

static void go_light(struct radio *radio) {
    if (radio->filler.descriptor < 0) return;
    int waiting = accept4(radio->listener.descriptor, NULL, NULL, SOCK_CLOEXEC);
    if (waiting >= 0) close(waiting);
    close(radio->filler.descriptor);
    radio->filler.descriptor = -1;
    listen(radio->listener.descriptor, LISTEN_QUEUE);
    watch(&radio->listener, EPOLLIN, EPOLL_CTL_ADD);
}

/* Commands --------------------------------------------------------------------------------------------------------- */

static void push(uint64_t count, size_t length) {
    for (unsigned i = 0; i < radio_count; i++) {
        radios[i].to_push += count, radios[i].push_length = length;
        if (radios[i].host) flush(&radios[i]);
    }
}

static const char *command(char *line) {
    char word[16] = "";
    unsigned long count = 0, length = 0, interval = 0, batch = 1;
    int words = sscanf(line, "%15s %lu %lu %lu %lu", word, &count, &length, &interval, &batch);
    bool is_burst = !strcmp(word, "burst"), is_pace = !strcmp(word, "pace");
    if (is_burst || is_pace) {
        if (words < (is_burst ? 3 : 4)) return "burst N LEN | pace N LEN INTERVAL_US [BATCH]";
        if (length < SMALLEST_PUSH || length > LARGEST_PAYLOAD) return "LEN is 15 to 512";
        if (is_burst) {
            push(count, length);
            return NULL;
        }
        if (!interval || !batch) return "INTERVAL_US and BATCH are at least 1";
        pace.left = count, pace.length = length, pace.interval_ns = interval * 1000, pace.batch = (unsigned)batch;
        pace.next_ns = now_ns();
        return NULL;
    }
    for (unsigned i = 0; i < radio_count; i++) {
        if (!strcmp(word, "stop")) stop_listening(&radios[i]), close_host(&radios[i], "stopped");
        else if (!strcmp(word, "serve")) {
            if (radios[i].listener.descriptor < 0) listen_on(&radios[i]);
        } else if (!strcmp(word, "kick")) close_host(&radios[i], "kicked");
        else if (!strcmp(word, "dark")) go_dark(&radios[i]);
        else if (!strcmp(word, "light")) go_light(&radios[i]);
        else if (!strcmp(word, "mail")) {
            radios[i].mail += count;
            if (radios[i].host) append(radios[i].host, (const uint8_t[]){0x83}, 1), flush(&radios[i]);
        } else if (!strcmp(word, "reset")) counted.peak_handshaking = counted.handshaking;
        else if (strcmp(word, "status")) return "unknown command";
    }
    return NULL;
}

/* False at the end of standard input. */
static bool read_commands(void) {
    static char text[4096];
    static size_t count;
    ssize_t got = read(0, text + count, sizeof text - count);
    if (got <= 0) return false;
    count += (size_t)got;
    char *begin = text, *end;
    while ((end = memchr(begin, '\n', (size_t)(text + count - begin)))) {
        *end = 0;
        const char *error = command(begin);
        if (error) event("command", "\"cmd\":\"%s\",\"ok\":false,\"error\":\"%s\"", begin, error);
        else
            event("command",
                  "\"cmd\":\"%s\",\"ok\":true,\"connected\":%u,\"handshaking\":%u,\"peak_handshaking\":%u,"
                  "\"accepted\":%lu,\"lost\":%lu,\"frames_in\":%lu,\"pushes\":%lu,\"noise\":%lu",
                  begin, counted.connected, counted.handshaking, counted.peak_handshaking, counted.accepted,
                  counted.lost, counted.frames_in, counted.pushes, counted.noise);
        begin = end + 1;
    }
    count -= (size_t)(begin - text);
    memmove(text, begin, count);
    return count < sizeof text;
}

/* Time ------------------------------------------------------------------------------------------------------------- */

static void set_clock(void) {
    uint64_t due = pace.left ? pace.next_ns : 0;
    if (held_first && (!due || held_first->held_until < due)) due = held_first->held_until;
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(due / 1000000000u), .tv_nsec = (long)(due % 1000000000u)}};
    timerfd_settime(clock_descriptor, TFD_TIMER_ABSTIME, &at, NULL);
}

static void clock_due(void) {
    uint64_t expirations;
    if (read(clock_descriptor, &expirations, sizeof expirations) < 0) return;
    uint64_t now = now_ns();
    while (held_first && held_first->held_until <= now) {
        struct host *host = held_first;
        unhold(host);
        host->held_until = 0;
        size_t length = 0, used = 0;
        const uint8_t *payload = next_frame(host->in, host->in_count, '<', &length, &used, &counted.noise);
        if (payload) answer(host->watched.radio, payload, length);
        memmove(host->in, host->in + used, host->in_count - used);
        host->in_count -= used;
        take_frames(host->watched.radio);
    }
    while (pace.left && pace.next_ns <= now) {
        uint64_t count = pace.left < pace.batch ? pace.left : pace.batch;
        pace.left -= count, pace.next_ns += pace.interval_ns;
        push(count, pace.length);
    }
}

static void readable(struct watched *watched) {
    struct radio *radio = watched->radio;
    struct host *host = radio->host;
    ssize_t got = recv(watched->descriptor, host->in + host->in_count, sizeof host->in - host->in_count, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        close_host(radio, got ? strerror(errno) : "closed");
        return;
    }
    host->in_count += (size_t)got;
    take_frames(radio);
}

static void read_options(char **words) {
    for (; *words; words += 2) {
        if (!strcmp(words[0], "--quiet")) {
            quiet = true;
            words--;
            continue;
        }
        if (!words[1]) die("%s: needs a value", words[0]);
        if (!strcmp(words[0], "--port")) first_port = (unsigned)atoi(words[1]);
        else if (!strcmp(words[0], "--bind")) bind_address = words[1];
        else if (!strcmp(words[0], "--ports")) radio_count = (unsigned)atoi(words[1]);
        else if (!strcmp(words[0], "--handshake-ms")) handshake_ns = (uint64_t)atoi(words[1]) * 1000000u;
        else die("unknown option %s", words[0]);
    }
}

int main(int count, char **words) {
    (void)count;
    read_options(words + 1);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    epoll = epoll_create1(EPOLL_CLOEXEC);

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    struct watched stop = {SIGNALS, signalfd(-1, &signals, SFD_CLOEXEC), NULL};
    clock_descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct watched clock = {CLOCK, clock_descriptor, NULL}, commands = {COMMANDS, 0, NULL};
    watch(&stop, EPOLLIN, EPOLL_CTL_ADD);
    watch(&clock, EPOLLIN, EPOLL_CTL_ADD);
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = &commands};
    bool take_commands = epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &wanted) == 0;   /* not for /dev/null or a plain file */

    radios = need(calloc(radio_count, sizeof *radios));
    for (unsigned i = 0; i < radio_count; i++) {
        radios[i].number = i;
        radios[i].filler.descriptor = -1;
        listen_on(&radios[i]);
        if (!quiet || radio_count == 1) event("radio", "\"name\":\"Burst %u\",\"port\":%u", i, radios[i].port);
    }
    char *ports = need(malloc(8 * radio_count + 1)), *end = ports;
    for (unsigned i = 0; i < radio_count; i++) end += sprintf(end, "%s%u", i ? "," : "", radios[i].port);
    event("ready", "\"ports\":[%s]", ports);
    free(ports);

    for (;;) {
        set_clock();
        /* One event at a time: what it closes and frees cannot be in a later one of the same round. */
        struct epoll_event ready;
        if (epoll_wait(epoll, &ready, 1, -1) < 1) continue;
        struct watched *watched = ready.data.ptr;
        switch (watched->kind) {
        case SIGNALS: return 0;
        case CLOCK: clock_due(); break;
        case COMMANDS:
            if (take_commands && !read_commands()) {
                take_commands = false;
                epoll_ctl(epoll, EPOLL_CTL_DEL, 0, NULL);
            }
            break;
        case LISTENER: accept_host(watched->radio); break;
        case HOST: {
            struct radio *radio = watched->radio;
            if (ready.events & ~(uint32_t)EPOLLOUT) readable(watched);
            if ((ready.events & EPOLLOUT) && radio->host) take_frames(radio);
            break;
        }
        case FILLER: break;
        }
    }
}
