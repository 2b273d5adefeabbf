#!/bin/sh
# Write the man pages of the four programs to a folder, from what the programs say about themselves:
# their help is made from commands.def, options.def and the tables of settings.
# Usage: man.sh BIN OUT
set -eu
here=$(dirname "$0")
bin=$1
out=$2
version=$("$bin/droverd" --version | cut -d' ' -f2)
day=$(date -u -r "$here/../CHANGELOG.md" +%Y-%m-%d)
mkdir -p "$out"

escape() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"; }
head_of() { # NAME SECTION SUMMARY
    printf '.TH %s %s "%s" "drover %s" "drover"\n.SH NAME\n%s \\- %s\n' \
        "$(printf %s "$1" | tr '[:lower:]' '[:upper:]' | sed 's/-/\\-/g')" "$2" "$day" "$version" "$(printf %s "$1" | escape)" "$3"
}
block() { # text on stdin, kept as it is
    printf '.nf\n'
    escape
    printf '.fi\n'
}
section() { printf '.SH %s\n' "$1"; }
prose() { escape <"$here/$1"; }

# Lines of "from" up to a line that matches "to", without that line.
between() { awk -v from="$1" -v to="$2" '$0 ~ to && on {exit} on {print} $0 ~ from {on = 1}'; }

drover() {
    head_of drover 1 "command line of droverd"
    section SYNOPSIS
    printf '.B drover\n.I VERB\n[\\fICAMPAIGN\\fR[/\\fISTAGE\\fR[/\\fIPART\\fR[/\\fIATTEMPT\\fR]]]] [options]\n'
    section DESCRIPTION
    prose drover.txt
    section COMMANDS
    "$bin/drover" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' | grep -v -x -e help | while read -r verb; do
        "$bin/drover" "$verb" --help >"$out/.verb" </dev/null
        printf '.SS %s\n' "$(awk '/^drover / {print; exit}' "$out/.verb" | escape)"
        awk '/^drover / {on = 1; next} on && NF {sub(/^ */, ""); print; exit}' "$out/.verb" | escape
        printf '.PP\n'
        awk '/^options:/ {on = 1} on' "$out/.verb" | block
        printf '.PP\n'
        between '^examples:' '^$' <"$out/.verb" | block
    done
    rm -f "$out/.verb"
    section "EXIT STATUS"
    "$bin/drover" --help | between '^exit status:' '^examples' | block
    section ENVIRONMENT
    printf 'The option \\-\\-context goes before both.\n'
    printf '.TP\n.B DROVER_URL\nAddress of droverd; by default of the server that drover login chose, else http://127.0.0.1:8080.\n'
    printf '.TP\n.B DROVER_TOKEN_FILE\nFile with the token; by default that of drover login, else the one droverd made.\n'
    section "SEE ALSO"
    printf '.BR droverd (8),\n.BR drover\\-worker (1),\n.BR drover\\-local (1)\n'
}

droverd() {
    head_of droverd 8 "controller of SageMaker campaigns"
    section SYNOPSIS
    "$bin/droverd" --help | awk '/^$/ {exit} {sub(/^usage: /, "       "); print}' | sed 's/^       //' | block
    section DESCRIPTION
    prose droverd.txt
    section EXAMPLES
    "$bin/droverd" --help | between '^examples:' '^$' | block
    section SETTINGS
    printf 'Keys of the JSON file of \\-\\-config, each with its environment variable and default.\n'
    "$bin/droverd" --example-config | awk -F'": ' '
        /^  "\/\/ / {help = $2; sub(/^"/, "", help); sub(/",?$/, "", help); next}
        /^  "/ {name = $1; sub(/^  "/, "", name); v = $2; sub(/,$/, "", v)
            gsub(/\\"/, "\"", help)
            print ".TP"; print ".B " name; print help "; default " v "."}' | sed -e 's/\\/\\e/g' -e 's/-/\\-/g'
    section SIGNALS
    printf 'SIGTERM and SIGINT stop droverd in order; jobs continue at SageMaker.\n'
    section "SEE ALSO"
    printf '.BR drover (1),\n.BR drover\\-local (1)\n'
}

worker() {
    head_of drover-worker 1 "entry point of the worker containers"
    section SYNOPSIS
    printf '.B drover\\-worker\n.I VERB\n[\\-\\-setting value ...]\n'
    section DESCRIPTION
    prose drover-worker.txt
    for verb in download index; do
        section "$(printf %s $verb | tr '[:lower:]' '[:upper:]')"
        "$bin/drover-worker" $verb --help | block
    done
    section "EXIT STATUS"
    sed -n 's,^#define WP_EXIT_\([A-Z_]*\)  *\([0-9]*\).*,  \2 \1,p' "$here/../../include/worker_protocol.h" |
        tr 'A-Z_' 'a-z ' | block
    section "SEE ALSO"
    printf '.BR drover (1),\n.BR droverd (8)\n'
}

local_() {
    head_of drover-local 1 "AWS endpoint for one machine"
    section SYNOPSIS
    "$bin/drover-local" --help | sed -n '1s/^usage: //p' | block
    section DESCRIPTION
    prose drover-local.txt
    section OPTIONS
    "$bin/drover-local" --help | sed -n '/^  --/,$p' | block
    section SETTINGS
    printf 'Keys of the JSON file of \\-\\-config; all are optional, times are in seconds.\n'
    awk '/^struct local_settings/ {on = 1; next} /^};/ {exit}
        on && match($0, /[a-z_]+; +\/\*/) {
            name = substr($0, RSTART, RLENGTH); sub(/;.*/, "", name)
            help = substr($0, RSTART + RLENGTH); sub(/ *\*\/ *$/, "", help); sub(/^ */, "", help)
            if (name == "all") next
            sub(/_us$/, "_seconds", name)
            print ".TP"; print ".B " name; print help "."}' "$here/../../worker/local/settings.h" | sed 's/-/\\-/g'
    section "SEE ALSO"
    printf '.BR drover (1),\n.BR droverd (8)\n'
}

drover >"$out/drover.1"
droverd >"$out/droverd.8"
worker >"$out/drover-worker.1"
local_ >"$out/drover-local.1"
