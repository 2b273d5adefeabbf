#!/usr/bin/env bash
# Planted bugs in the controller and in SQL that the deep simulation must find: each patch of
# mutants/ is built in a copy of the tree, which begins with this tree's objects, and runs seeds until
# one breaks a promise; a seed that only takes too long does not count. ONLY=word picks some, SEEDS is
# how many a patch gets. Prints TAP.
set -u
cd "$(dirname "$0")/../../.." || exit 1
seeds=${SEEDS:-60}
top=$PWD
copy=$top/build/tests/deep-mutants
deep=build/release/tests/simulation/deep/deep
make -s -j2 VARIANT=release deep >&2 || { echo "not ok - deep mutants: does not build"; exit 1; }
mkdir -p "$copy"
tar -cf - --exclude=./build --exclude=./.git . | tar -xf - -C "$copy" || exit 1
for made in gen bin release; do
    [ -e build/$made ] && mkdir -p "$copy/build" && cp -a build/$made "$copy/build/"
done
ln -sfn "$top/build/deps" "$copy/build/deps"
ln -sfn "$top/build/web" "$copy/build/web"
n=0
missed=0
cd "$copy" || exit 1
for patch in tests/simulation/deep/mutants/*"${ONLY:-}"*.patch; do
    name=$(basename "$patch" .patch)
    n=$((n + 1))
    if ! patch -s -p1 <"$patch"; then
        echo "not ok $n - deep mutant $name: does not apply"
        missed=$((missed + 1))
        continue
    fi
    if ! make -s -j2 VARIANT=release deep >"$copy/build/$name.log" 2>&1; then
        echo "not ok $n - deep mutant $name: does not build"
        missed=$((missed + 1))
    else
        $deep --seeds "$seeds" --first "${FIRST:-1}" --jobs 2 --until-wrong >"$copy/build/$name.out" 2>&1
        said=$(grep '^not ok - deep seed' "$copy/build/$name.out" | grep -v 'not over after' | head -1)
        if [ -n "$said" ]; then
            echo "ok $n - deep mutant $name: $(cut -c10-150 <<<"$said")"
        else
            echo "not ok $n - deep mutant $name: no seed of $seeds finds it"
            missed=$((missed + 1))
        fi
    fi
    patch -s -R -p1 <"$patch"
done
echo "1..$n"
echo "# $((n - missed)) of $n found in $SECONDS s"
exit $((missed > 0))
