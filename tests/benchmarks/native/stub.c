/* A broker that costs next to nothing: answers requests from a file of ready answers.

   usage: stub PORT ANSWERS

   ANSWERS is a sequence of entries: int16 API key, int16 API version, int32 size, and so many bytes: the answer behind
   its correlation id. All numbers are big-endian. A request that has no entry ends its connection. Request bodies are
   passed over unread. One thread, one epoll loop. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { KEYS = 128, VERSIONS = 32, INPUT = 1 << 18, HEADER = 12, EVENTS = 256, LARGE = 1 << 14 };

struct answer {
    uint32_t size;
    const char *bytes;
};

struct connection {
    int fd;
    char header[HEADER]; /* of a request that is not all there */
    uint32_t have;       /* bytes of it */
    uint32_t skip;       /* bytes of the request's body that are still to come */
    char *out;           /* what the socket did not take, from out_at to out_end */
    size_t out_at, out_end, out_size;
    int watches_out;
};

static struct answer answers[KEYS][VERSIONS];
static char input[INPUT];
static int loop;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static uint32_t int32_at(const char *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}

static uint16_t int16_at(const char *at) {
    uint16_t value;
    memcpy(&value, at, 2);
    return ntohs(value);
}

static void load_answers(const char *path) {
    FILE *file = fopen(path, "rb");
    char header[8];
    if (!file) die(path);
    while (fread(header, 8, 1, file) == 1) {
        uint16_t key = int16_at(header), version = int16_at(header + 2);
        uint32_t size = int32_at(header + 4);
        char *bytes = malloc(size + 1);
        if (key >= KEYS || version >= VERSIONS || !bytes || fread(bytes, 1, size, file) != size) {
            fprintf(stderr, "stub: %s is malformed\n", path);
            exit(1);
        }
        answers[key][version] = (struct answer){size, bytes};
    }
    fclose(file);
}

static void watch(struct connection *c, int out) {
    struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c};
    if (out != c->watches_out && epoll_ctl(loop, EPOLL_CTL_MOD, c->fd, &event)) die("epoll_ctl");
    c->watches_out = out;
}

static void keep(struct connection *c, const char *bytes, size_t size) {
    if (c->out_end + size > c->out_size) {
        c->out_size = 2 * (c->out_end + size);
        c->out = realloc(c->out, c->out_size);
        if (!c->out) die("realloc");
    }
    memcpy(c->out + c->out_end, bytes, size);
    c->out_end += size;
}

/* 0 when the connection has broken. */
static int flush(struct connection *c) {
    while (c->out_at < c->out_end) {
        ssize_t sent = send(c->fd, c->out + c->out_at, c->out_end - c->out_at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0) return 0;
        c->out_at += sent;
    }
    if (c->out_at == c->out_end) c->out_at = c->out_end = 0;
    watch(c, c->out_end > 0);
    return 1;
}

static int reply(struct connection *c, const char *request) {
    uint16_t key = int16_at(request + 4), version = int16_at(request + 6);
    const struct answer *answer = key < KEYS && version < VERSIONS ? &answers[key][version] : NULL;
    char start[8];
    uint32_t size;
    if (!answer || !answer->bytes) {
        fprintf(stderr, "stub: no answer to API key %u v%u\n", key, version);
        return 0;
    }
    size = htonl(answer->size + 4);
    memcpy(start, &size, 4);
    memcpy(start + 4, request + 8, 4);
    if (answer->size >= LARGE) {
        struct iovec parts[2] = {{start, 8}, {(char *)answer->bytes, answer->size}};
        ssize_t sent = 0;
        if (!flush(c)) return 0;
        if (!c->out_end) sent = writev(c->fd, parts, 2);
        if (sent < 0) sent = 0; /* A broken connection shows when it is read. */
        if (sent < 8) {
            keep(c, start + sent, 8 - sent);
            sent = 8;
        }
        keep(c, answer->bytes + sent - 8, answer->size + 8 - sent);
        return 1;
    }
    keep(c, start, 8);
    keep(c, answer->bytes, answer->size);
    return 1;
}

static int take(struct connection *c, const char *at, size_t left) {
    while (left > 0) {
        if (c->skip) {
            size_t part = left < c->skip ? left : c->skip;
            at += part;
            left -= part;
            c->skip -= part;
        } else {
            size_t part = HEADER - c->have < left ? HEADER - c->have : left;
            memcpy(c->header + c->have, at, part);
            c->have += part;
            at += part;
            left -= part;
            if (c->have < HEADER) return 1;
            c->have = 0;
            c->skip = int32_at(c->header) + 4 - HEADER;
        }
        /* Answered when all of it is there, as a broker would. */
        if (!c->skip && !c->have && !reply(c, c->header)) return 0;
    }
    return 1;
}

static void end(struct connection *c) {
    close(c->fd);
    free(c->out);
    free(c);
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct epoll_event events[EVENTS], accepting = {.events = EPOLLIN};
    int listener, on = 1;
    if (argc != 3) {
        fprintf(stderr, "usage: stub PORT ANSWERS\n");
        return 2;
    }
    load_answers(argv[2]);
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) die("listen");
    loop = epoll_create1(0);
    if (epoll_ctl(loop, EPOLL_CTL_ADD, listener, &accepting)) die("epoll_ctl");
    for (;;) {
        int count = epoll_wait(loop, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (!c) {
                struct epoll_event event = {.events = EPOLLIN};
                c = calloc(1, sizeof *c);
                c->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (c->fd < 0) {
                    free(c);
                    continue;
                }
                setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                event.data.ptr = c;
                if (epoll_ctl(loop, EPOLL_CTL_ADD, c->fd, &event)) die("epoll_ctl");
                continue;
            }
            if (events[i].events & EPOLLIN) {
                ssize_t size = read(c->fd, input, INPUT);
                if (size == 0 || (size < 0 && errno != EAGAIN) || (size > 0 && !take(c, input, size))) {
                    end(c);
                    continue;
                }
            }
            if (!flush(c)) end(c);
        }
    }
}
