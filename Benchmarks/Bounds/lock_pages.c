// Keeps files in memory, so that a measurement with a warm cache is one: reads them, locks their pages, and waits.
// usage: lock_pages FILE...
// Prints a line when all pages are in memory, and waits for a signal or the end of its parent. Needs the right to lock
// memory.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    long long total = 0;
    for (int i = 1; i < argc; i++) {
        struct stat status;
        int file = open(argv[i], O_RDONLY);
        if (file < 0 || fstat(file, &status) < 0) {
            perror(argv[i]);
            return 1;
        }
        if (status.st_size > 0) {
            void *map = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0);
            if (map == MAP_FAILED || mlock(map, status.st_size) < 0) {
                perror(argv[i]);
                return 1;
            }
        }
        total += status.st_size;
        close(file);
    }
    printf("%lld bytes in memory\n", total);
    fflush(stdout);
    for (;;) pause();
}
