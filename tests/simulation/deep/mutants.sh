#!/usr/bin/env bash
# Planted bugs (controller, leader, SQL) that the deep simulation must find. Each patch of
# mutants/ changes copies of the files it names; only the objects made of those are compiled anew and
# linked in front of the archives. The seed that found it last, which its first line names ("# seed N"),
# runs first. When the world has changed and it finds nothing, seeds run in order until one breaks a
# promise; a seed that only takes too long does not count. "# seed N with bad-rows,verbs": only worlds
# that have both moves are tried. ONLY=word picks some, SEEDS (500) is how
# many a patch gets at most, FIRST where they begin, JOBS how many run at once, WRITE=1 writes the
# seeds into the patches. Prints TAP and a line of figures.
set -u
cd "$(dirname "$0")/../../.." || exit 1
here=tests/simulation/deep
out=build/release/$here/mutants
seeds=${SEEDS:-500}
first=${FIRST:-1}
make -s -j2 VARIANT=release deep >&2 || { echo "not ok - deep mutants: does not build"; exit 1; }

# The sources whose objects differ: a C file itself, of SQL those that use a query that changed.
objects_of() { # DIR FILE
    local dir=$1 file=$2 name names
    if [[ $file == *.c ]]; then
        echo "$file"
        return
    fi
    mkdir -p "$dir/gen"
    (cd "$dir" && for f in "$OLDPWD"/sql/queries/*.sql; do
        [ -f "sql/queries/$(basename "$f")" ] && f=sql/queries/$(basename "$f")
        cat "$f"
    done) > "$dir/all.sql"
    awk -f sql/queries.awk "$dir/all.sql" > "$dir/gen/queries.h" || return 1
    names=$(awk '/^#define SQL_[A-Z0-9_]* / { name = $2 }
        NR == FNR { old[name] = old[name] $0; next } { new[name] = new[name] $0 }
        END { for (name in new) if (new[name] != old[name]) print substr(name, 5) }' \
        build/gen/queries.h "$dir/gen/queries.h")
    for name in $names; do
        grep -lE "QUERY\($name\)" orchestrator/store/*/*.c
    done | sort -u
}

build() { # DIR: compiles what its files change, links
    local dir=$1 file src
    for file in $(cd "$dir" && find orchestrator sql -type f ! -name '*.orig' 2>/dev/null); do
        for src in $(objects_of "$dir" "$file"); do
            [ -f "$dir/$src" ] || { mkdir -p "$dir/$(dirname "$src")" && cp "$src" "$dir/$src"; }
            # shellcheck disable=SC2046 # a list of words
            ${CC:-gcc} -std=gnu17 -D_GNU_SOURCE -O1 -w -fPIE -pthread -Iinclude "-I$dir/gen" -Ibuild/gen \
                -Iorchestrator -iquote "$(dirname "$src")" $(pkg-config --cflags libpq jansson libcurl) \
                -c "$dir/$src" -o "$dir/$(tr / _ <<< "${src%.c}").o" || return 1
        done
    done
    [ -n "$(find "$dir" -maxdepth 1 -name '*.o')" ] && make -s VARIANT=release deep-mutant MUTANT="$dir"
}

# The first promise that a seed broke, of what was printed.
broken() { # LOG
    grep '^not ok - deep seed' "$1" | grep -v 'not over after' | head -1
}

play() { # NAME: the seed that found it last, then seeds in order
    local dir=$out/$1 last with
    last=$(sed -n '1s/^# seed \([0-9]*\).*/\1/p' "$here/mutants/$1.patch")
    with=$(sed -n '1s/^# seed .* with \([a-z,-]*\)$/--with \1/p' "$here/mutants/$1.patch")
    if [ -n "$last" ]; then
        "$dir/deep" --dir "$cluster" --seeds 1 --first "$last" --jobs 1 --until-wrong > "$dir/log" 2>&1
        [ -n "$(broken "$dir/log")" ] && return
    fi
    # shellcheck disable=SC2086 # two words or none
    "$dir/deep" --dir "$cluster" $with --seeds "$seeds" --first "$first" --jobs "${JOBS:-2}" --until-wrong > "$dir/log" 2>&1
}

keep() { # NAME SAID: writes the seed into the patch
    local patch=$here/mutants/$1.patch seed with
    seed=$(sed -n 's/^not ok - deep seed \([0-9]*\).*/\1/p' <<< "$2")
    with=$(sed -n '1s/^# seed .*\( with [a-z,-]*\)$/\1/p' "$patch")
    sed -i '1{/^# seed /d}' "$patch" && sed -i "1i # seed $seed$with" "$patch"
}

one() { # NAME: what it says on one line
    local name=$1 dir=$out/$1 file said
    rm -rf "$dir" && mkdir -p "$dir" || exit 1
    # shellcheck disable=SC2013 # paths of the tree have no spaces
    for file in $(sed -n 's,^+++ b/\([^[:space:]]*\).*,\1,p' "$here/mutants/$name.patch"); do
        mkdir -p "$dir/$(dirname "$file")" && cp "$file" "$dir/$file"
    done
    if ! patch -s -f -F 2 -p1 -d "$dir" < "$here/mutants/$name.patch" > "$dir/log" 2>&1; then
        echo "not ok - deep mutant $name: does not apply"
    elif ! build "$dir" > "$dir/log" 2>&1; then
        echo "not ok - deep mutant $name: does not build"
    else
        play "$name"
        said=$(broken "$dir/log")
        rm -f "$dir/deep"
        if [ -n "$said" ]; then
            [ -n "${WRITE:-}" ] && keep "$name" "$said"
            echo "ok - deep mutant $name: $(cut -c10-150 <<< "$said") ($(sed -n 's/^# \([0-9.]* CPU s\).*/\1/p' "$dir/log"))"
        else
            echo "not ok - deep mutant $name: no seed of $seeds finds it"
        fi
    fi
}

# One cluster for all: to make one takes as long as a world.
cluster=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo build/tests)/deep-mutants.XXXXXX") || exit 1
chmod 755 "$cluster"
trap 'rm -rf "$cluster"' EXIT
trap 'exit 1' INT TERM
rm -rf "$out"
n=0
missed=0
for patch in "$here"/mutants/*"${ONLY:-}"*.patch; do
    said=$(one "$(basename "$patch" .patch)")
    n=$((n + 1))
    [[ $said == ok* ]] || missed=$((missed + 1))
    echo "${said/ok -/ok $n -}"
done
echo "1..$n"
cpu=$(cat "$out"/*/log | awk '/CPU s \(.*PostgreSQL/ { s += $2 } END { print int(s) }')
echo "# $((n - missed)) of $n found in $SECONDS s, $cpu CPU s of simulation"
exit $((missed > 0))
