#!/usr/bin/env bash
# Installs the Debian packages that the tests need and that are not there yet; says clearly what is missing elsewhere.
#
#   java, jdk.compiler   Apache Kafka, its tools and the small Java clients, Spark, Cassandra, HDFS (openjdk-17-jdk-headless)
#   kcat                 one of the clients under test
#   ensurepip            `python3 -m venv` (python3-venv)
#   mariadbd, postgres, redis-server   stores under test; started by the tests, on folders of their own
#
# No service is started: the packages bring the programs only. Debian asks /usr/sbin/policy-rc.d before it starts one, so
# where there is none, one that says no is there for as long as the installation takes.
set -euo pipefail

is_there() { PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v "$1" >/dev/null; }

packages=()
if ! is_there java || ! java --list-modules 2>/dev/null | grep -q '^jdk\.compiler'; then
    packages+=(openjdk-17-jdk-headless)
fi
is_there kcat || packages+=(kcat)
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
is_there mariadbd || packages+=(mariadb-server)
is_there redis-server || packages+=(redis-server)
is_there postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || packages+=(postgresql)

if [ ${#packages[@]} -eq 0 ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "Missing on this machine, please install: ${packages[*]} (these are Debian's names)" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "Run as root, or install sudo, to get: ${packages[*]}" >&2; exit 1; }
    as_root=(sudo)
fi

policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
fi

echo "Installing Debian packages: ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${packages[@]}"
