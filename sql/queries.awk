# Turns sql/queries/*.sql into build/gen/queries.h: one string SQL_<NAME> for each "-- name: <name>",
# and QUERY_LIST(X), which names them all, so that a test can prepare every one.
function flush_query() {
    if (name == "") return
    up = toupper(name)
    printf "#define SQL_%s_NAME \"%s\"\n#define SQL_%s \\\n%s    \"\"\n\n", up, name, up, text
    list = list sprintf(" \\\n    X(%s, SQL_%s)", name, up)
    name = ""; text = ""
}
BEGIN { print "/* Generated from sql/queries by sql/queries.awk. */\n#pragma once\n" }
FNR == 1 { flush_query() }
/^-- name: / { flush_query(); name = $3; if (name in seen) { print "duplicate query " name > "/dev/stderr"; exit 1 }; seen[name] = 1; next }
/^--/ || /^[ \t]*$/ { next }
name != "" { sub(/;[ \t]*$/, ""); gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); text = text "    \"" $0 "\\n\" \\\n" }
END { flush_query(); print "#define QUERY_LIST(X)" list }
