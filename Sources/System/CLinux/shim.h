#pragma once
// Calls of glibc that Swift's Glibc module does not declare.

#include <malloc.h>
#include <sys/types.h>

/// fallocate(2); declared in <fcntl.h> only for _GNU_SOURCE.
extern int fallocate(int descriptor, int mode, off_t offset, off_t length);

/// memfd_create(2); declared in <sys/mman.h> only for _GNU_SOURCE.
extern int memfd_create(const char *name, unsigned int flags);

/// renameat2(2); declared in <stdio.h> only for _GNU_SOURCE.
extern int renameat2(int directory, const char *path, int new_directory, const char *new_path, unsigned int flags);

/// RENAME_EXCHANGE: both names exist, and are exchanged at once.
enum { HEARTH_RENAME_EXCHANGE = 2 };

/// O_DIRECT, which <fcntl.h> declares only for _GNU_SOURCE: reads come from the disk and not from the page cache.
#if defined(__aarch64__) || defined(__arm__)
enum { HEARTH_O_DIRECT = 0200000 };
#else
enum { HEARTH_O_DIRECT = 040000 };
#endif

/// MFD_CLOEXEC: programs that are started do not get the file.
enum { HEARTH_MEMFD_CLOEXEC = 1 };

/// FALLOC_FL_KEEP_SIZE: blocks beyond the end of the file do not move its end.
enum { HEARTH_FALLOCATE_KEEP_SIZE = 1 };

/// eventfd(2), which Swift's Glibc module does not have.
extern int eventfd(unsigned int count, int flags);

/// EFD_CLOEXEC and EFD_NONBLOCK.
enum { HEARTH_EVENT_FLAGS = 02000000 | 04000 };
