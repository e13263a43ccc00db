#!/usr/bin/env bash
# Builds the image, starts it alone and behind the proxy, and makes a call through each. Needs Docker with a running engine, curl, and
# ports 80, 443 and 8081; says so and leaves everything alone where there is no engine.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! docker info >/dev/null 2>&1; then
  echo 'Left out: there is no container engine on this machine, so the image was neither built nor started.'
  exit 0
fi

image=portcullis-try
export IMAGE=$image
container=
made_env=
export DOMAIN=localhost
compose() { docker compose --project-name portcullis-try --file scripts/deploy/compose.yaml "$@"; }
clean() {
  [ -z "$container" ] || docker rm --force --volumes "$container" >/dev/null
  compose down --volumes --timeout 5 >/dev/null 2>&1 || true
  [ -z "$made_env" ] || rm -f scripts/deploy/portcullis.env
  docker image rm --force "$image" >/dev/null 2>&1 || true
}
trap clean EXIT
if [ ! -e scripts/deploy/portcullis.env ]; then
  made_env=yes
  : >scripts/deploy/portcullis.env
fi

docker build --file scripts/deploy/Dockerfile --tag "$image" .
container=$(docker run --detach --read-only --tmpfs /tmp --cap-drop ALL --publish 127.0.0.1::8080 "$image")
for _ in $(seq 60); do
  health=$(docker inspect --format '{{.State.Health.Status}}' "$container")
  [ "$health" = healthy ] && break
  sleep 1
done
[ "$health" = healthy ] || { docker logs "$container"; echo "The container is $health."; exit 1; }
[ "$(docker exec "$container" id -u)" != 0 ] || { echo 'The container runs as root.'; exit 1; }
key=$(docker logs "$container" 2>&1 | sed -n 's/^ *gateway key *//p')
body='{"model": "sandbox-free", "messages": [{"role": "user", "content": "Hello"}]}'
curl --fail --silent --show-error "http://$(docker port "$container" 8080)/v1/chat/completions" \
  --header "authorization: Bearer $key" --header 'content-type: application/json' --data "$body" >/dev/null
docker stop --time 45 "$container" >/dev/null
[ "$(docker inspect --format '{{.State.ExitCode}}' "$container")" = 0 ] || { echo 'The container did not stop well.'; exit 1; }

compose up --detach --wait
curl --fail --silent --show-error --insecure --retry 20 --retry-all-errors --retry-delay 1 https://localhost/health >/dev/null
curl --fail --silent --show-error http://127.0.0.1:8081/health >/dev/null
echo 'The image was built and started, alone and behind the proxy, and served.'
