#include "CBuild.h"

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

#ifndef HEARTH_COMMIT
#define HEARTH_COMMIT
#endif
#ifndef HEARTH_RELEASE
#define HEARTH_RELEASE 0
#endif

const char *hearth_build_commit(void) { return TEXT(HEARTH_COMMIT); }

int hearth_build_is_release(void) { return HEARTH_RELEASE; }
