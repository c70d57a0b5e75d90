#!/bin/sh
# Install the peers of the benchmark from the system's packages (Debian, Ubuntu; needs root).
# Their services are not started: the benchmark starts each one itself, on loopback, with its own data directory.
set -eu

PEERS="rabbitmq-server activemq nats-server redis-server"
POLICY=/usr/sbin/policy-rc.d

command -v apt-get >/dev/null || { echo "no apt-get here: install $PEERS by hand" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "run as root: sudo sh benchmarks/install_peers.sh" >&2; exit 1; }

if [ ! -e "$POLICY" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$POLICY"
    chmod +x "$POLICY"
    trap 'rm -f "$POLICY"' EXIT
fi
apt-get update -q
for peer in $PEERS; do
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$peer" ||
        echo "$peer could not be installed; the benchmark will name it as missing" >&2
done
