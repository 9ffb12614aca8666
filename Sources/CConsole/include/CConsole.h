#pragma once
// The files of the console, as the compiler has read them from the folder web.

/// A file of the console. Its memory lasts as long as the process.
typedef struct {
    /// Below /console/, such as app.js; empty for the page itself. Ends with a zero byte.
    const char *path;
    /// The type of its contents, for Content-Type. Ends with a zero byte.
    const char *type;
    const unsigned char *bytes;
    unsigned long count;
} hearth_console_file;

/// All files. Sets the number of them.
const hearth_console_file *hearth_console_files(int *count);
