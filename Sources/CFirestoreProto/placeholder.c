#include "placeholder.h"
void firestore_proto_placeholder(void) {}
