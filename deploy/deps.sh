#!/bin/sh
# Make a Debian 12 ready. `deps.sh run`: what building and `make run` need; `deps.sh test`: what the
# tests need besides; `deps.sh droverd` and `deps.sh worker`: what the installed programs need to run.
# Quiet when nothing is missing; without the right to install it prints the exact command and fails.
set -eu
what=${1:-run}
run_pkgs="gcc libc6-dev make pkg-config libpq-dev libcurl4-openssl-dev libssl-dev libmicrohttpd-dev
  libjansson-dev libcjose-dev libyaml-dev libpcre2-dev zlib1g-dev libc-ares-dev libturbojpeg0-dev
  libjpeg62-turbo-dev libspng-dev libdeflate-dev libwebp-dev libavif-dev libgif-dev libtiff-dev libseccomp-dev postgresql ca-certificates
  util-linux procps"
test_pkgs="libcmocka-dev awscli python3 python3-botocore python3-opencv python3-numpy python3-pil python3-yaml
  chromium-headless-shell clang libclang-rt-14-dev clang-format clang-tidy cppcheck shellcheck gcovr valgrind nginx-light openssl
  strace libarchive-tools python3-exifread libimage-exiftool-perl libavif-bin file git curl mandoc debootstrap systemd"
droverd_pkgs="ca-certificates libcurl4 libssl3 libjansson4 libcjose0 libyaml-0-2 libpcre2-8-0 zlib1g libmicrohttpd12 libpq5"
worker_pkgs="ca-certificates libcurl4 libssl3 libjansson4 zlib1g libjpeg62-turbo libspng0 libdeflate0 libwebp7 libavif15
  libtiff6 libc-ares2 libseccomp2 libgif7 libstdc++6 libgcc-s1"
case $what in
    run) pkgs=$run_pkgs ;;
    test) pkgs=$test_pkgs ;;
    droverd) pkgs=$droverd_pkgs ;;
    worker) pkgs=$worker_pkgs ;;
    *)
        echo "usage: deps.sh run|test|droverd|worker" >&2
        exit 2
        ;;
esac

# node and npm are taken as found when recent enough; Debian's own only otherwise.
if [ "$what" = run ]; then
    major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/') || major=0
    if [ "${major:-0}" -lt 18 ] || ! npm --version >/dev/null 2>&1; then
        pkgs="$pkgs nodejs npm"
    fi
fi
missing=
for p in $pkgs; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' ||
        missing="$missing $p"
done
if [ -n "$missing" ]; then
    sudo=
    if [ "$(id -u)" != 0 ]; then
        if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
            sudo="sudo -n"
        else
            echo "drover needs packages that are not installed. Run, as root:" >&2
            echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
            exit 1
        fi
    fi
    # No cluster of Debian's on port 5432: drover makes its own.
    if [ "$what" = run ] && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        $sudo mkdir -p /etc/postgresql-common
        echo "create_main_cluster = false" |
            $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
    fi
    mkdir -p build
    echo "installing:$missing"
    # shellcheck disable=SC2086
    if ! { $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends $missing; } >build/apt.log 2>&1; then
        tail -20 build/apt.log >&2
        echo "installing failed; the whole log is in build/apt.log" >&2
        exit 1
    fi
fi

# Packages of a lock file, once: fetch FOLDER TARGET
fetch() {
    if cmp -s "$1/package-lock.json" "$2/package-lock.json" && [ -e "$2/.complete" ]; then
        return
    fi
    mkdir -p "$2"
    rm -rf "$2/node_modules" "$2/.complete"
    cp "$1/package.json" "$1/package-lock.json" "$1/.npmrc" "$2/"
    if ! (cd "$2" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$2/npm.log" 2>&1; then
        tail -20 "$2/npm.log" >&2
        echo "npm ci failed for $1" >&2
        exit 1
    fi
    touch "$2/.complete"
}
if [ "$what" = run ]; then
    fetch worker/deps build/deps
    if [ -e orchestrator/web/package-lock.json ]; then fetch orchestrator/web build/web; fi
elif [ "$what" = test ]; then
    if [ -e tests/e2e/package-lock.json ]; then fetch tests/e2e build/e2e; fi
    fetch tests/lint build/eslint
    fetch tests/openapi build/openapi
    fetch tests/aws_sdk build/aws_sdk
fi
