#pragma once
// What the build was made of. Package.swift passes it on from the environment, which Tools/package sets.

/// The commit of the sources, in hexadecimal digits; empty if the build does not say.
const char *hearth_build_commit(void);

/// 1 for a build of a commit with a version's tag, otherwise 0.
int hearth_build_is_release(void);
