#!/usr/bin/env bash
# Installs the Debian packages that the tests need and that are not there yet; says clearly what is missing elsewhere.
#
#   java, jdk.compiler   Apache Kafka, its tools and the small Java clients (openjdk-17-jdk-headless)
#   kcat                 one of the clients under test
#   ensurepip            `python3 -m venv` (python3-venv)
set -euo pipefail

packages=()
if ! command -v java >/dev/null || ! java --list-modules 2>/dev/null | grep -q '^jdk\.compiler'; then
    packages+=(openjdk-17-jdk-headless)
fi
command -v kcat >/dev/null || packages+=(kcat)
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)

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
echo "Installing Debian packages: ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${packages[@]}"
