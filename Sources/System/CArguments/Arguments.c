#include "CArguments.h"

static int argument_count;
static char **arguments;

// glibc passes constructors what it passes main.
__attribute__((constructor)) static void keep_arguments(int count, char **values) {
    argument_count = count;
    arguments = values;
}

int hearth_argument_count(void) { return argument_count; }

const char *hearth_argument(int index) { return arguments[index]; }
