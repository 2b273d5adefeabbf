#!/usr/bin/env bash
# Planted bugs in the controller and in SQL that the deep simulation must find: each patch of
# mutants/ is built in a copy of the tree and runs seeds until one is wrong. ONLY=word picks some,
# SEEDS is how many a patch gets. Prints TAP; a patch that no seed finds is "not ok".
set -u
cd "$(dirname "$0")/../../.." || exit 1
seeds=${SEEDS:-60}
top=$PWD
copy=$top/build/tests/deep-mutants
mkdir -p "$copy"
tar -cf - --exclude=./build --exclude=./.git . | tar -xf - -C "$copy" || exit 1
mkdir -p "$copy/build"
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
    if ! make -s -j2 deep >"$copy/build/$name.log" 2>&1; then
        echo "not ok $n - deep mutant $name: does not build"
        missed=$((missed + 1))
    elif said=$(build/release/tests/simulation/deep/deep --seeds "$seeds" --first "${FIRST:-1}" --jobs 2 --until-wrong) &&
        ! grep -q '^not ok - deep seed' <<<"$said"; then
        echo "not ok $n - deep mutant $name: no seed of $seeds finds it"
        missed=$((missed + 1))
    else
        echo "ok $n - deep mutant $name: $(grep -m1 '^not ok - deep seed' <<<"$said" | cut -c10-150)"
    fi
    patch -s -R -p1 <"$patch"
done
echo "1..$n"
exit $((missed > 0))
