// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices
/* Preloaded into BlueZ's btvirt so that it starts anywhere and beside others:
 *  - kernels without AF_ALG: bt_crypto_new() opens AF_ALG sockets that only LE_Encrypt and RPA hashing would use
 *    (link encryption in btdev compares keys and needs no AES); they become plain Unix sockets.
 *  - `btvirt -s` binds sockets with fixed names; they move to the folder in BTVIRT_DIR.
 * cc -shared -fPIC -o btvirt_preload.so btvirt_preload.c -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef AF_ALG
#define AF_ALG 38
#endif

static const char *moved(const char *path, char *out, size_t size) {
	const char *dir = getenv("BTVIRT_DIR"), *name = strrchr(path, '/');
	if (!dir || !name || strncmp(name, "/bt-server-", 11))
		return path;
	snprintf(out, size, "%s%s", dir, name);
	return out;
}

int socket(int domain, int type, int protocol) {
	static int (*real)(int, int, int);
	if (!real)
		real = dlsym(RTLD_NEXT, "socket");
	return real(domain == AF_ALG ? AF_UNIX : domain, type, domain == AF_ALG ? 0 : protocol);
}

int bind(int fd, const struct sockaddr *address, socklen_t length) {
	static int (*real)(int, const struct sockaddr *, socklen_t);
	struct sockaddr_un other;
	if (!real)
		real = dlsym(RTLD_NEXT, "bind");
	if (address && address->sa_family == AF_ALG)
		return 0;
	if (address && address->sa_family == AF_UNIX) {
		char path[sizeof other.sun_path + 1] = "";
		memcpy(path, ((const struct sockaddr_un *)address)->sun_path, length - sizeof(sa_family_t));
		memset(&other, 0, sizeof other);
		other.sun_family = AF_UNIX;
		const char *to = moved(path, other.sun_path, sizeof other.sun_path);
		if (to != path)
			return real(fd, (struct sockaddr *)&other, sizeof other);
	}
	return real(fd, address, length);
}

int unlink(const char *path) {
	static int (*real)(const char *);
	char other[108];
	if (!real)
		real = dlsym(RTLD_NEXT, "unlink");
	return real(moved(path, other, sizeof other));
}
