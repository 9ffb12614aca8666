#define _GNU_SOURCE
#include "CArguments.h"

#include <pthread.h>

static int argument_count;
static char **arguments;

// glibc passes constructors what it passes main.
__attribute__((constructor)) static void keep_arguments(int count, char **values) {
    argument_count = count;
    arguments = values;
}

int hearth_argument_count(void) { return argument_count; }

const char *hearth_argument(int index) { return arguments[index]; }

void hearth_set_stack_bytes(size_t bytes) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return;
    if (pthread_attr_setstacksize(&attributes, bytes) == 0) pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}
