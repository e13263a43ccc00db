// The environment of the gateway under attack.
import { GUARD_URL } from '../../support/network-guard-env.ts';
import { upstreamEnv } from '../../support/upstream.ts';
import { NAMED_AT, NAMED_FIELD } from './oracle.ts';
import type { Secrets } from './secrets.ts';
import { OF_ENVIRONMENT, OF_ORGANIZATION, PROBE } from './served.ts';
import type { Upstream } from './upstreams.ts';

/** Megabytes of JavaScript objects, and of all resident memory: 256 MB of request bodies and the code's own share come on top of the heap. */
const HEAP_MB = 512;
export const RESIDENT_MB = 1000;

/** A credential for a provider. */
export const secretOf = (provider: string): string => `sk-fuzz-${provider}-${crypto.randomUUID()}`;

/** Shorter than an operator's, so that what stalls ends while the run goes on. */
const TIMEOUTS = {
  REQUEST_HEADERS_TIMEOUT_MS: '3000',
  REQUEST_BODY_TIMEOUT_MS: '4000',
  CONNECT_TIMEOUT_MS: '2000',
  FIRST_BYTE_TIMEOUT_MS: '3000',
  IDLE_TIMEOUT_MS: '3000',
  TOTAL_TIMEOUT_MS: '10000',
  KEEP_ALIVE_COMMENT_MS: '500',
};

const RATES = {
  RATE_LIMIT_CHAT_PER_MINUTE: 'off',
  RATE_LIMIT_IMAGES_PER_MINUTE: 'off',
  RATE_LIMIT_MODELS_PER_MINUTE: 'off',
  RATE_LIMIT_MODERATIONS_PER_MINUTE: 'off',
  RATE_LIMIT_MCP_PER_MINUTE: 'off',
  RATE_LIMIT_MANAGEMENT_PER_MINUTE: 'off',
};

function providersEnv(upstreams: ReadonlyMap<string, Upstream>, secrets: Secrets): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [provider, { origin }] of upstreams) {
    const secret = secretOf(provider);
    secrets.add(secret, provider);
    const models = OF_ENVIRONMENT[provider];
    if (models !== undefined) {
      const priced = Object.entries(models).flatMap(([model, price]) =>
        price === undefined ? [] : [`${model}=${price.join('/')}`],
      );
      Object.assign(env, upstreamEnv(provider, origin, Object.keys(models).join(), priced.join()));
      env[`UPSTREAM_${provider.toUpperCase()}_API_KEY`] = secret;
    } else if (OF_ORGANIZATION[provider] === undefined) {
      env[`${provider.toUpperCase()}_API_KEY`] = secret;
      env[`${provider.toUpperCase()}_BASE_URL`] = `${origin}${provider === 'google' ? '/v1beta' : '/v1'}`;
    }
  }
  env[`UPSTREAM_${NAMED_AT.toUpperCase()}_FIELDS`] = NAMED_FIELD;
  return env;
}

interface Places {
  readonly dataDir: string;
  /** A file that gets a line for each connection that leaves this machine. */
  readonly guardLog: string;
  readonly probeOrigin: string;
}

/** Every setting of the gateway's process. The credentials in it are added to the secrets. */
export function environment(
  upstreams: ReadonlyMap<string, Upstream>,
  secrets: Secrets,
  { dataDir, guardLog, probeOrigin }: Places,
): Record<string, string> {
  return {
    DATA_DIR: dataDir,
    PORT: '0',
    MANAGEMENT_PORT: '0',
    ACCESS_LOG: 'stdout',
    LOG_LEVEL: 'info',
    NODE_OPTIONS: `--import=${GUARD_URL} --max-old-space-size=${HEAP_MB}`,
    NETWORK_GUARD_LOG: guardLog,
    MODERATION_MODEL: 'omni-moderation-latest',
    ALLOW_PRIVATE_UPSTREAMS: Object.keys(OF_ORGANIZATION)
      .map((provider) => new URL(upstreams.get(provider)?.origin ?? '').host)
      .join(),
    ...TIMEOUTS,
    ...RATES,
    ...providersEnv(upstreams, secrets),
    ...upstreamEnv(PROBE.provider, probeOrigin, PROBE.model, `${PROBE.model}=${PROBE.price.join('/')}`),
  };
}
