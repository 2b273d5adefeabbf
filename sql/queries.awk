# Turns sql/queries/*.sql into build/gen/queries.h: one string SQL_<NAME> for each "-- name: <name>",
# and QUERY_LIST(X), which names them all, so that a test can prepare every one. Parameters are $1, $2
# .. or have names, :like_this; a statement of more than 12 has to name them. Named ones become $1 ..
# in order of their first use, and enum sql_<name>_param has their places: SQL_<NAME>_P_<PARAMETER>,
# and how many there are, SQL_<NAME>_PARAMS.
function fail(text) { print "query " name ": " text > "/dev/stderr"; failed = 1 }
function flush_query(   i) {
    if (name == "") return
    up = toupper(name)
    if (most > 12) fail("names its parameters, it has " most)
    if (most > 0 && params_n > 0) fail("has parameters with and without names")
    printf "#define SQL_%s_NAME \"%s\"\n#define SQL_%s \\\n%s    \"\"\n", up, name, up, text
    if (params_n > 0) {
        printf "enum sql_%s_param {\n", name
        for (i = 1; i <= params_n; i++) printf "    SQL_%s_P_%s,\n", up, toupper(params[i])
        printf "    SQL_%s_PARAMS\n};\n", up
    }
    print ""
    list = list sprintf(" \\\n    X(%s, SQL_%s)", name, up)
    name = ""; text = ""; most = 0; params_n = 0
    delete place
}
# The line with $n in place of its names; :: is a cast.
function numbered(line,   done, word) {
    done = ""
    while (match(line, /\$[0-9]+|::|:[a-z][a-z0-9_]*/)) {
        word = substr(line, RSTART, RLENGTH)
        done = done substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        if (word ~ /^\$/ && substr(word, 2) + 0 > most) most = substr(word, 2) + 0
        if (word ~ /^:[a-z]/) {
            word = substr(word, 2)
            if (!(word in place)) { params[++params_n] = word; place[word] = params_n }
            word = "$" place[word]
        }
        done = done word
    }
    return done line
}
BEGIN { print "/* Generated from sql/queries by sql/queries.awk. */\n#pragma once\n" }
FNR == 1 { flush_query() }
/^-- name: / { flush_query(); name = $3; if (name in seen) fail("is there twice"); seen[name] = 1; next }
/^--/ || /^[ \t]*$/ { next }
name != "" { sub(/;[ \t]*$/, ""); $0 = numbered($0); gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); text = text "    \"" $0 "\\n\" \\\n" }
END { flush_query(); print "#define QUERY_LIST(X)" list; exit failed }
