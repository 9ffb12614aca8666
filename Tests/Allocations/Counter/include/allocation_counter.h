// Counts the allocations of a whole process, all threads. See allocation_counter.c.
#pragma once
#include <stdint.h>

/// Calls of malloc, calloc, realloc and their aligned relatives since the start of the process.
uint64_t allocation_count(void);

/// Calls `connect` to a port of 127.0.0.1; returns the socket, or -1.
int loopback_connect(uint16_t port);

/// Sends all bytes and receives one frame of the native protocol into a buffer of its own. Allocates nothing.
/// Returns the frame's kind and flags (kind * 256 + flags), or -1 when the connection is closed, or silent for a minute.
int exchange(int socket, const uint8_t *request, int64_t request_count);
