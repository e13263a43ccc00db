#!/usr/bin/env bash
# Builds the image and runs it, alone and behind its proxy, without a container engine: buildah runs each step in a chroot, and network
# namespaces of its own take the place of the engine's networks. The base image is a stand-in under the base's name: Debian as
# debootstrap makes it, the pinned Node of this installation, and the npm of this machine. Docker and compose themselves are not run.
# Needs root on Debian. Writes to a temporary folder alone, but for the packages that it installs with apt.
set -euo pipefail
cd "$(dirname "$0")/../.."
repository=$PWD
most_megabytes=450

leave_out() {
  echo "Left out: $1, so the image was neither built nor run."
  if [ "${CI:-}" = true ]; then exit 1; else exit 0; fi
}
fail() {
  for log in "$work"/*.log; do printf '\n-- %s\n' "$log"; tail -n 20 "$log" | sed 's/\(pcl[a-z]*_\)[A-Za-z0-9]*/\1…/g'; done
  echo "The image failed: $1"
  exit 1
}
say() { printf '%3ss  %s\n' "$SECONDS" "$1"; }

[ "$(id -u)" = 0 ] || leave_out 'it takes root to run buildah in a chroot'
command -v apt-get >/dev/null || leave_out 'there is no apt-get to install buildah, debootstrap and caddy with'
node=$(node -e "import('./scripts/runtime.js').then(({ pinnedNode }) => console.log(pinnedNode() ?? ''))")
[ -n "$node" ] || leave_out 'the pinned Node is not installed (npm ci)'

work=$(mktemp -d)
running=()
root=
clean() {
  # What runs in the container outlives its buildah.
  for process in /proc/[0-9]*; do
    [ -z "$root" ] || [ "$(readlink "$process/root")" != "$root" ] || running+=("${process#/proc/}")
  done
  for pid in "${running[@]}"; do { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true; done
  [ ! -d "$work/storage" ] || build umount --all >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean EXIT
build() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }

# -- What the walk needs. Caddy is unpacked, not installed: a package of it would start a service.
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
if ! command -v buildah >/dev/null || ! command -v debootstrap >/dev/null || ! command -v ip >/dev/null; then
  { apt-get update -qq && apt-get install -qq -y --no-install-recommends buildah debootstrap iproute2; } >"$work/apt.log" 2>&1 ||
    leave_out "apt could not install buildah and debootstrap ($(tail -n 1 "$work/apt.log"))"
fi
mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' | awk -v release="$release" '$2 == release { print $1; exit }')
caddy=
mkdir "$work/caddy"
if (cd "$work/caddy" && apt-get download -qq caddy && dpkg --extract ./*.deb .) >"$work/caddy.log" 2>&1; then caddy=$work/caddy/usr/bin/caddy; fi

# -- The stand-in for the base image, under the name that the Dockerfile asks for.
base=$(sed -n 's/^FROM \(\S*\)$/\1/p' scripts/deploy/Dockerfile)
container=$(build from scratch)
root=$(build mount "$container")
debootstrap --variant=minbase --include=libatomic1 "$release" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 || fail 'no base was made'
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,info,locale,man}
install "$node" "$root/usr/local/bin/node"
mkdir -p "$root/usr/local/lib/node_modules"
cp -R "$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")" "$root/usr/local/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
chroot "$root" useradd --uid 1000 --user-group --shell /bin/bash --create-home node
build config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
build commit --quiet --rm "$container" "docker.io/library/$base" >/dev/null
say "a stand-in for $base"

# -- The image. npm finds its packages with the settings of this machine.
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
mounts=()
for pair in "$(npm config get userconfig):/root/.npmrc" "$(npm config get globalconfig):/usr/local/etc/npmrc" /etc/ssl/certs:/etc/ssl/certs; do
  [ ! -e "${pair%%:*}" ] || mounts+=(--volume "$pair:ro")
done
build bud --isolation chroot --format docker --pull-never --build-arg "COMMIT=$commit" "${mounts[@]}" --file scripts/deploy/Dockerfile --tag portcullis . >"$work/build.log" 2>&1 ||
  fail 'it cannot be built'
megabytes=$(build images --format '{{.Size}}' portcullis)
case $megabytes in *' MB') ;; *) fail "its size is $megabytes, more than $most_megabytes MB" ;; esac
[ "$(printf '%.0f' "${megabytes% MB}")" -lt "$most_megabytes" ] || fail "its size is $megabytes, more than $most_megabytes MB"
say "the image: $megabytes, less than $most_megabytes MB"

# -- Two hosts of their own network, with the addresses of compose.yaml.
setting() { sed -n "s/^ *$1: *//p" scripts/deploy/compose.yaml; }
mapfile -t addresses < <(setting ipv4_address)
gateway_address=${addresses[0]} proxy_address=${addresses[1]}
for host in gateway proxy; do
  unshare --net sleep 3600 &
  running+=($!)
  declare "$host=$!"
done
on() { nsenter --net="/proc/$1/ns/net" "${@:2}"; }
until [ "$(readlink "/proc/$gateway/ns/net")" != "$(readlink /proc/self/ns/net)" ] &&
  [ "$(readlink "/proc/$proxy/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
on "$gateway" ip link add inside type veth peer name inside netns "$proxy"
for pair in "$gateway $gateway_address" "$proxy $proxy_address"; do
  on "${pair% *}" ip link set lo up
  on "${pair% *}" ip address add "${pair#* }/24" dev inside
  on "${pair% *}" ip link set inside up
done

# -- The container: the user, the command and the variables of the image, no capabilities, its volume in a folder.
list() { build inspect --type image --format "{{range .Docker.Config.$1}}{{println .}}{{end}}" portcullis; }
mapfile -t entrypoint < <(list Entrypoint | sed '/^$/d')
mapfile -t command < <(list Cmd | sed '/^$/d')
mapfile -t health < <(list Healthcheck.Test | sed '/^$/d')
container=$(build from portcullis)
root=$(build mount "$container")
install --directory --owner=1000 --group=1000 --mode=700 "$work/data" "$work/tmp"
inside() {
  on "$gateway" buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs run --isolation chroot --cap-drop all \
    --volume "$work/data:/data" --volume "$work/tmp:/tmp" "${environment[@]}" "$container" -- "$@"
}
# No proxy stands in front of it.
environment=(--env TRUSTED_PROXIES=none)
# Starts the container and waits until it is healthy. Its log is $1.
start() {
  touch "$work/started"
  inside "${entrypoint[@]}" "${command[@]}" >"$work/$1.log" 2>&1 &
  server=$!
  running+=("$server")
  log=$work/$1.log
  for _ in $(seq 60); do
    if inside "${health[@]:1}" >/dev/null 2>&1; then return; fi
    kill -0 "$server" 2>/dev/null || fail "$1: the container ended"
    sleep 0.5
  done
  fail "$1: the container is not healthy"
}
# The process that an engine would signal: the first of the container.
first_process() {
  local pid=$server
  until [[ "$(readlink "/proc/$pid/exe")" == */bin/node ]]; do pid=$(pgrep --parent "$pid" | head -n 1) && [ -n "$pid" ] || return 1; done
  echo "$pid"
}
stop() {
  local pid code=0
  pid=$(first_process)
  [ "$(stat --format %u "/proc/$pid")" = 1000 ] || fail 'the container runs as another user than node'
  kill -TERM "$pid"
  wait "$server" || code=$?
  [ "$code" = 0 ] || fail "a stop by SIGTERM ended with $code"
  written=$(find "$root/app" "$root/home" "$root/etc" "$root/var" -newer "$work/started" -type f ! -path "$root/etc/hosts" ! -path "$root/etc/resolv.conf")
  [ -z "$written" ] || fail "something was written outside of the volume: $written"
}
call() { on "$1" curl --fail --silent --show-error --max-time 20 --header "authorization: Bearer $key" --header 'content-type: application/json' "${@:2}"; }
chat='{"model": "sandbox-free", "messages": [{"role": "user", "content": "Hello"}]}'
picture='{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "generate-image", "arguments": {"prompt": "a red fox"}}}'
use() { # $1 from which host, $2 by which address
  call "$1" "$2/v1/chat/completions" --data "$chat" "${@:3}" | grep --quiet '"chat.completion"' || fail "no chat at $2"
  call "$1" "$2/mcp" --data "$picture" "${@:3}" >"$work/picture.json" || fail "no answer over MCP at $2"
  grep --quiet '"type":"image"' "$work/picture.json" || fail "no picture over MCP at $2: $(head -c 300 "$work/picture.json")"
}

start first-start
inside "${entrypoint[@]}" --version | grep --quiet "(commit ${commit:0:7}, schema [0-9]*)" || fail "it does not know that it is commit $commit"
key=$(sed -n 's/^ *gateway key *//p' "$log")
[ -n "$key" ] && grep --quiet '^ *master key ' "$log" || fail 'the first start printed no keys'
! grep --quiet '"level":[456]0' "$log" || fail "the start warns of something: $(grep '"level":[456]0' "$log")"
use "$gateway" http://127.0.0.1:8080
stop
say 'first start: secrets, health, chat, a picture over MCP, stop'

start second-start
! grep --quiet 'gateway key' "$log" || fail 'a later start printed keys'
use "$gateway" http://127.0.0.1:8080
stop
say 'second start: the same data and keys'

# -- Behind the proxy, as compose.yaml has it.
if [ -z "$caddy" ]; then
  echo 'Left out: apt has no caddy for this machine, so the proxy of compose.yaml was not walked.'
  [ "${CI:-}" != true ] || exit 1
  exit 0
fi
environment=(--env PUBLIC_URL=https://localhost --env "TRUSTED_PROXIES=$(setting TRUSTED_PROXIES)")
start behind-the-proxy
printf '127.0.0.1 localhost\n%s portcullis\n' "$gateway_address" >"$work/hosts"
mkdir "$work/home"
nsenter --net="/proc/$proxy/ns/net" unshare --mount bash -c 'mount --bind "$0/hosts" /etc/hosts; exec "$@"' "$work" \
  env DOMAIN=localhost HOME="$work/home" XDG_DATA_HOME="$work/home" "$caddy" run --config scripts/deploy/Caddyfile --adapter caddyfile >"$work/proxy.log" 2>&1 &
running+=($!)
authority=$work/home/caddy/pki/authorities/local/root.crt
for _ in $(seq 60); do
  on "$proxy" curl --fail --silent --output /dev/null --cacert "$authority" https://localhost/health && break
  sleep 0.5
done
use "$proxy" https://localhost --cacert "$authority" --header 'x-forwarded-for: 203.0.113.9'
on "$proxy" curl --silent --output /dev/null --write-out '%{redirect_url}\n' http://localhost/health | grep --quiet '^https://localhost/health$' || fail 'http is not sent on to https'
stop
[ "$(grep -c '"path":"/v1/chat/completions".*"clientIp":"127.0.0.1"' "$log")" = 1 ] || fail 'a caller behind the proxy does not appear with their own address'
say "behind the proxy ($("$caddy" version)): TLS, chat, a picture, the caller's own address, whatever they claim"
echo 'The image was built and run, alone and behind its proxy. Docker and compose themselves were not run.'
