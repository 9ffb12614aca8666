// The files of the folder web as bytes of the binary. The compiler reads them with #embed (C23), so that they need no
// copy and no tool, and it knows by them when to compile this file again. A new file has two entries here; a test
// compares the table with the folder.

#include "CConsole.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "web/index.html"
};
static const unsigned char style_css[] = {
#embed "web/style.css"
};
static const unsigned char app_js[] = {
#embed "web/app.js"
};
static const unsigned char ui_js[] = {
#embed "web/ui.js"
};
static const unsigned char values_js[] = {
#embed "web/values.js"
};
static const unsigned char rest_js[] = {
#embed "web/rest.js"
};
static const unsigned char webchannel_js[] = {
#embed "web/webchannel.js"
};
static const unsigned char listen_hub_js[] = {
#embed "web/listen-hub.js"
};
static const unsigned char live_js[] = {
#embed "web/live.js"
};
static const unsigned char worker_js[] = {
#embed "web/worker.js"
};
static const unsigned char query_text_js[] = {
#embed "web/query-text.js"
};
static const unsigned char chart_js[] = {
#embed "web/chart.js"
};
static const unsigned char rows_js[] = {
#embed "web/rows.js"
};
static const unsigned char backups_js[] = {
#embed "web/backups.js"
};
static const unsigned char plan_js[] = {
#embed "web/plan.js"
};
static const unsigned char palette_js[] = {
#embed "web/palette.js"
};
static const unsigned char value_editor_js[] = {
#embed "web/value-editor.js"
};
static const unsigned char view_start_js[] = {
#embed "web/view-start.js"
};
static const unsigned char view_data_js[] = {
#embed "web/view-data.js"
};
static const unsigned char view_query_js[] = {
#embed "web/view-query.js"
};
static const unsigned char view_watch_js[] = {
#embed "web/view-watch.js"
};
static const unsigned char view_indexes_js[] = {
#embed "web/view-indexes.js"
};
static const unsigned char rules_colours_js[] = {
#embed "web/rules-colours.js"
};
static const unsigned char view_rules_js[] = {
#embed "web/view-rules.js"
};
static const unsigned char view_time_js[] = {
#embed "web/view-time.js"
};
static const unsigned char view_about_js[] = {
#embed "web/view-about.js"
};

#define HTML "text/html; charset=utf-8"
#define CSS "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"

static const hearth_console_file files[] = {
    {"", HTML, index_html, sizeof index_html},
    {"style.css", CSS, style_css, sizeof style_css},
    {"app.js", SCRIPT, app_js, sizeof app_js},
    {"ui.js", SCRIPT, ui_js, sizeof ui_js},
    {"values.js", SCRIPT, values_js, sizeof values_js},
    {"rest.js", SCRIPT, rest_js, sizeof rest_js},
    {"webchannel.js", SCRIPT, webchannel_js, sizeof webchannel_js},
    {"listen-hub.js", SCRIPT, listen_hub_js, sizeof listen_hub_js},
    {"live.js", SCRIPT, live_js, sizeof live_js},
    {"worker.js", SCRIPT, worker_js, sizeof worker_js},
    {"query-text.js", SCRIPT, query_text_js, sizeof query_text_js},
    {"chart.js", SCRIPT, chart_js, sizeof chart_js},
    {"rows.js", SCRIPT, rows_js, sizeof rows_js},
    {"backups.js", SCRIPT, backups_js, sizeof backups_js},
    {"plan.js", SCRIPT, plan_js, sizeof plan_js},
    {"palette.js", SCRIPT, palette_js, sizeof palette_js},
    {"value-editor.js", SCRIPT, value_editor_js, sizeof value_editor_js},
    {"view-start.js", SCRIPT, view_start_js, sizeof view_start_js},
    {"view-data.js", SCRIPT, view_data_js, sizeof view_data_js},
    {"view-query.js", SCRIPT, view_query_js, sizeof view_query_js},
    {"view-watch.js", SCRIPT, view_watch_js, sizeof view_watch_js},
    {"view-indexes.js", SCRIPT, view_indexes_js, sizeof view_indexes_js},
    {"rules-colours.js", SCRIPT, rules_colours_js, sizeof rules_colours_js},
    {"view-rules.js", SCRIPT, view_rules_js, sizeof view_rules_js},
    {"view-time.js", SCRIPT, view_time_js, sizeof view_time_js},
    {"view-about.js", SCRIPT, view_about_js, sizeof view_about_js},
};

const hearth_console_file *hearth_console_files(int *count) {
    *count = sizeof files / sizeof files[0];
    return files;
}
