// The processor's prefetch instruction, which Swift has no word for.

#ifndef HEARTH_PREFETCH_H
#define HEARTH_PREFETCH_H

/// Begins to fetch the cache line at an address, to be written. Never faults, whatever the address.
static inline void prefetch_for_writing(const void *_Nonnull address) { __builtin_prefetch(address, 1, 3); }

/// Begins to fetch the cache line at an address, to be read. Never faults, whatever the address.
static inline void prefetch_for_reading(const void *_Nonnull address) { __builtin_prefetch(address, 0, 3); }

/// Reads a byte, also if nothing uses it, so that its page is in memory.
static inline void touch_for_reading(const void *_Nonnull address) { (void)*(const volatile char *)address; }

#endif
