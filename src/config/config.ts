import path from 'node:path';
import schema from '../../schemas/config.json' with { type: 'json' };
import { type AddressRange, type Endpoint, parseEndpoint, parseRange } from '../domain/address.ts';
import type { RateLimits } from '../domain/limits.ts';
import type { Environment } from '../generated/types.ts';
import { deepFreeze } from '../lib/collections.ts';
import { type ValidationError, validator } from '../lib/schemas.ts';
import { entryOf, nearest } from '../lib/text.ts';
import {
  PROVIDER_IDS,
  readServiceProviders,
  readUpstreams,
  type ServiceProvider,
  type UpstreamConfig,
} from './upstreams.ts';
import { ConfigError, explained, readList, readUrl, withEnvFile } from './variables.ts';

const validateEnvironment = validator('Environment');

interface ListenAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

/** The configuration, frozen. Times are milliseconds, sizes bytes. schemas/config.json says more. */
export interface Config {
  readonly gateway: ListenAddress;
  readonly management: ListenAddress;
  /** Without a final slash. */
  readonly publicUrl: string | undefined;
  /** Lower case, with or without `:port`. */
  readonly allowedHosts: readonly string[];
  /** As browsers send them: scheme, host and port in lower case. */
  readonly allowedOrigins: readonly string[];
  /** Null: `TRUSTED_PROXIES` is unset; empty: `none`. */
  readonly trustedProxies: readonly AddressRange[] | null;
  /** Private hosts that base URLs from the database may name. */
  readonly allowPrivateUpstreams: readonly Endpoint[];
  readonly allowPrivateClients: readonly Endpoint[];
  /** Absolute. */
  readonly dataDir: string;
  readonly durability: Environment['DURABILITY'];
  /** Days after which calls are deleted; undefined: never. */
  readonly retentionDays: number | undefined;
  /** Hours for which refused requests have a row; undefined: they have none. */
  readonly refusedRequestsHours: number | undefined;
  /** Undefined: the policy of this installation. */
  readonly policyBundle: PolicyBundleConfig | undefined;
  /** Trusted signers of bundles: for the server, and for commands that check one. */
  readonly bundleTrust: BundleTrustConfig;
  readonly sandbox: boolean;
  /** Whether credentials of the environment are tried after a start. */
  readonly checkProviders: boolean;
  /** The model of an image request that names none; undefined: the gateway chooses. */
  readonly defaultImageModel: string | undefined;
  /** The one that moderates; undefined: the gateway chooses. */
  readonly moderationModel: string | undefined;
  /** The model of the MCP tool `generate-nano-banana`; undefined: the cheapest that takes an aspect ratio. */
  readonly nanoBananaModel: string | undefined;
  /** Absolute; where that tool saves its images. Undefined: nowhere. */
  readonly uploadDir: string | undefined;
  /** The form of `metadata` for callers who ask for none by header. */
  readonly metadataForm: Environment['METADATA_FORM'];
  readonly logLevel: Environment['LOG_LEVEL'];
  /** A file's path, `stdout` or `off`. */
  readonly accessLog: string;
  /** Absolute; where decisions are written as they are made, and kept. Undefined: nowhere. */
  readonly decisionFile: { readonly path: string; readonly maxBytes: number; readonly kept: number } | undefined;
  /** Absolute; where the head of the audit log is written. Undefined: nowhere. */
  readonly auditHeadFile: string | undefined;
  readonly limits: {
    readonly bodyBytes: number;
    readonly depth: number;
    readonly jsonValues: number;
    readonly jsonFields: number;
    readonly inFlight: number;
    readonly bufferedBytes: number;
    /** Requests in flight at the management listener, which takes nothing from the gateway's share. */
    readonly managementInFlight: number;
    readonly managementBufferedBytes: number;
    readonly responseBytes: number;
    readonly cacheBytes: number;
  };
  /** Most output tokens for a key with a spend limit where neither the caller nor the model's limits tell. */
  readonly defaultMaxOutputTokens: number;
  readonly minOutputTokens: number;
  readonly rateLimits: RateLimits;
  readonly timeouts: {
    readonly requestHeaders: number;
    readonly requestBody: number;
    readonly connect: number;
    readonly firstByte: number;
    readonly idle: number;
    readonly total: number;
    readonly keepAliveComment: number;
    readonly shutdownGrace: number;
  };
  /** With which metrics can be read from elsewhere than loopback; undefined: not at all. */
  readonly metricsToken: string | undefined;
  readonly budgetMetrics: boolean;
  /** The first makes what is new, the others are still accepted. Empty: the store keeps its own in `DATA_DIR/secrets.json`. */
  readonly secrets: { readonly peppers: readonly Buffer[]; readonly encryptionKeys: readonly Buffer[] };
  /** Settings of the environment for providers of the catalogue, by id. */
  readonly serviceProviders: readonly ServiceProvider[];
  /** By name. */
  readonly upstreams: readonly UpstreamConfig[];
}

/** The source of the policy. */
export interface PolicyBundleConfig {
  /** An absolute path, or a URL. */
  readonly location: string;
  readonly token: string | undefined;
  readonly pollMs: number;
  /** Undefined: the server answers at once. */
  readonly longPollSeconds: number | undefined;
}

export interface BundleTrustConfig {
  /** Absolute path of a PEM file; undefined: bundles are unsigned. */
  readonly publicKeyFile: string | undefined;
  readonly scope: string | undefined;
}

interface Variable {
  readonly $ref?: string;
  readonly enum?: readonly string[];
  readonly default?: string;
}

const VARIABLES: Readonly<Record<string, Variable>> = schema.properties;
const UPSTREAM_VARIABLES: Readonly<Record<string, Variable>> = schema.patternProperties;
const SHAPES: Readonly<Record<string, { readonly description: string }>> = schema.$defs;

/** The variables that Node and the allocator read, for processes that must not know the secrets. */
export const variablesOfNode = (): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(?:NODE_|MALLOC_|SystemRoot$)/.test(name)));

/**
 * The configuration from environment variables (src/config/README.md, "Variables"). Variables that are not ours are ignored, but
 * for misnamed ones of an upstream. Only this file reads the environment.
 * @throws ConfigError naming the first variable that is wrong.
 */
export function readConfig(env: Readonly<Record<string, string | undefined>> = process.env): Config {
  const variables = readEnvironment(withEnvFile(env));
  const config: Config = {
    gateway: { host: variables.HOST, port: Number(variables.PORT) },
    management: { host: variables.MANAGEMENT_HOST, port: Number(variables.MANAGEMENT_PORT) },
    publicUrl: variables.PUBLIC_URL === undefined ? undefined : readUrl('PUBLIC_URL', variables.PUBLIC_URL),
    allowedHosts: readList(variables.ALLOWED_HOSTS).map((host) => host.toLowerCase()),
    allowedOrigins: readList(variables.ALLOWED_ORIGINS).map((origin) => new URL(origin).origin),
    trustedProxies: variables.TRUSTED_PROXIES === undefined ? null : readProxies(variables.TRUSTED_PROXIES),
    allowPrivateUpstreams: readEndpoints('ALLOW_PRIVATE_UPSTREAMS', variables.ALLOW_PRIVATE_UPSTREAMS),
    allowPrivateClients: readEndpoints('ALLOW_PRIVATE_CLIENTS', variables.ALLOW_PRIVATE_CLIENTS),
    dataDir: path.resolve(variables.DATA_DIR ?? path.join(import.meta.dirname, '../../data')),
    durability: variables.DURABILITY,
    retentionDays: numberOrOff(variables.RETENTION_DAYS),
    refusedRequestsHours: numberOrOff(variables.REFUSED_REQUESTS_HOURS),
    policyBundle: readPolicyBundle(variables),
    bundleTrust: {
      publicKeyFile:
        variables.POLICY_BUNDLE_PUBLIC_KEY === undefined ? undefined : path.resolve(variables.POLICY_BUNDLE_PUBLIC_KEY),
      scope: variables.POLICY_BUNDLE_SCOPE,
    },
    sandbox: variables.SANDBOX === 'on',
    checkProviders: variables.CHECK_PROVIDERS === 'on',
    defaultImageModel: variables.DEFAULT_IMAGE_MODEL,
    moderationModel: variables.MODERATION_MODEL,
    nanoBananaModel: variables.NANO_BANANA_MODEL,
    uploadDir: variables.UPLOAD_DIR === undefined ? undefined : path.resolve(variables.UPLOAD_DIR),
    metadataForm: variables.METADATA_FORM,
    logLevel: variables.LOG_LEVEL,
    accessLog: variables.ACCESS_LOG,
    decisionFile:
      variables.DECISION_LOG_FILE === undefined
        ? undefined
        : {
            path: path.resolve(variables.DECISION_LOG_FILE),
            maxBytes: Number(variables.DECISION_LOG_MAX_BYTES),
            kept: Number(variables.DECISION_LOG_KEPT_FILES),
          },
    auditHeadFile: variables.AUDIT_HEAD_FILE === undefined ? undefined : path.resolve(variables.AUDIT_HEAD_FILE),
    limits: {
      bodyBytes: Number(variables.MAX_BODY_BYTES),
      depth: Number(variables.MAX_DEPTH),
      jsonValues: Number(variables.MAX_JSON_VALUES),
      jsonFields: Number(variables.MAX_JSON_FIELDS),
      inFlight: Number(variables.MAX_IN_FLIGHT),
      bufferedBytes: Number(variables.MAX_BUFFERED_BYTES),
      managementInFlight: Number(variables.MANAGEMENT_MAX_IN_FLIGHT),
      managementBufferedBytes: Number(variables.MANAGEMENT_MAX_BUFFERED_BYTES),
      responseBytes: Number(variables.MAX_RESPONSE_BYTES),
      cacheBytes: Number(variables.CACHE_MAX_BYTES),
    },
    defaultMaxOutputTokens: Number(variables.DEFAULT_MAX_OUTPUT_TOKENS),
    minOutputTokens: Number(variables.MIN_OUTPUT_TOKENS),
    rateLimits: {
      chat: numberOrOff(variables.RATE_LIMIT_CHAT_PER_MINUTE),
      images: numberOrOff(variables.RATE_LIMIT_IMAGES_PER_MINUTE),
      models: numberOrOff(variables.RATE_LIMIT_MODELS_PER_MINUTE),
      moderations: numberOrOff(variables.RATE_LIMIT_MODERATIONS_PER_MINUTE),
      mcp: numberOrOff(variables.RATE_LIMIT_MCP_PER_MINUTE),
      management: numberOrOff(variables.RATE_LIMIT_MANAGEMENT_PER_MINUTE),
    },
    timeouts: {
      requestHeaders: Number(variables.REQUEST_HEADERS_TIMEOUT_MS),
      requestBody: Number(variables.REQUEST_BODY_TIMEOUT_MS),
      connect: Number(variables.CONNECT_TIMEOUT_MS),
      firstByte: Number(variables.FIRST_BYTE_TIMEOUT_MS),
      idle: Number(variables.IDLE_TIMEOUT_MS),
      total: Number(variables.TOTAL_TIMEOUT_MS),
      keepAliveComment: Number(variables.KEEP_ALIVE_COMMENT_MS),
      shutdownGrace: Number(variables.SHUTDOWN_GRACE_MS),
    },
    metricsToken: variables.METRICS_TOKEN,
    budgetMetrics: variables.BUDGET_METRICS === 'on',
    secrets: {
      peppers: readSecrets('PEPPER', variables.PEPPER),
      encryptionKeys: readSecrets('ENCRYPTION_KEY', variables.ENCRYPTION_KEY),
    },
    serviceProviders: readServiceProviders(variables),
    upstreams: readUpstreams(variables),
  };
  if (collide(config.gateway, config.management)) {
    throw new ConfigError('MANAGEMENT_PORT must differ from PORT: both listeners would take the same address.');
  }
  return deepFreeze(config);
}

function readEnvironment(env: Readonly<Record<string, string | undefined>>): Environment {
  const given = Object.entries(env).filter(([name, value]) => value !== undefined && !isOfUnknownProvider(name));
  for (const [name, value] of given) {
    if (value !== '' || shapeOf(name) === undefined) continue;
    throw new ConfigError(`${name} is empty: remove it or give it a value.`);
  }
  const defaults = Object.entries(VARIABLES).filter(([, variable]) => variable.default !== undefined);
  const filled: unknown = Object.fromEntries([
    ...defaults.map(([name, { default: value }]) => [name, value]),
    ...given,
  ]);
  if (validateEnvironment(filled)) return filled;
  throw faultOf(validateEnvironment.errors?.[0]);
}

/** Other programs' keys are not ours: `GITHUB_API_KEY` names no provider of the catalogue. */
function isOfUnknownProvider(name: string): boolean {
  const [, prefix] = /^([A-Z0-9]+)_(?:API_KEY|BASE_URL|FIELDS)$/.exec(name) ?? [];
  return prefix !== undefined && prefix !== 'UPSTREAM' && !PROVIDER_IDS.includes(prefix.toLowerCase());
}

/** The rule for a variable's value, in words, or undefined for a variable that is not ours. */
function shapeOf(name: string): string | undefined {
  const pattern = Object.keys(UPSTREAM_VARIABLES).find((each) => new RegExp(each).test(name));
  const variable = entryOf(VARIABLES, name) ?? entryOf(UPSTREAM_VARIABLES, pattern ?? '');
  if (variable?.enum !== undefined) return `one of ${variable.enum.join(', ')}`;
  return entryOf(SHAPES, variable?.$ref?.replace('#/$defs/', '') ?? '')?.description;
}

function faultOf(error: ValidationError | undefined): ConfigError {
  const name = error?.instancePath.slice(1) ?? '';
  return new ConfigError(`${name} must be ${shapeOf(name)}.`);
}

const readEndpoints = (name: string, list: string | undefined): readonly Endpoint[] =>
  readList(list).map((entry) => explained(name, () => parseEndpoint(entry)));

function readProxies(text: string): AddressRange[] {
  if (text === 'none') return [];
  return readList(text).map((range) => explained('TRUSTED_PROXIES', () => parseRange(range)));
}

const numberOrOff = (text: string): number | undefined => (text === 'off' ? undefined : Number(text));

/** @throws ConfigError for a server that could be impersonated, or whose bundles nobody vouches for */
function readPolicyBundle(variables: Environment): PolicyBundleConfig | undefined {
  const { POLICY_BUNDLE: location } = variables;
  if (location === undefined) return undefined;
  const isUrl = /^[a-z]+:\/\//i.test(location);
  if (isUrl && !isSafeUrl(location)) {
    throw new ConfigError('POLICY_BUNDLE must be a path, or an https URL; http is for loopback alone.');
  }
  if (isUrl && variables.POLICY_BUNDLE_PUBLIC_KEY === undefined) {
    throw new ConfigError('POLICY_BUNDLE_PUBLIC_KEY must be set: bundles of a server have to be signed.');
  }
  return {
    location: isUrl ? location : path.resolve(location),
    token: variables.POLICY_BUNDLE_TOKEN,
    pollMs: 1000 * Number(variables.POLICY_BUNDLE_POLL_SECONDS),
    longPollSeconds: numberOrOff(variables.POLICY_BUNDLE_LONG_POLL_SECONDS),
  };
}

function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && /^(?:localhost|127(?:\.[0-9]+){3}|\[::1\])$/.test(hostname));
}

/** Each in hex when it can be read as hex, else in base64 of either alphabet. */
function readSecrets(name: string, text: string | undefined): Buffer[] {
  return readList(text).map((each) => {
    const secret = Buffer.from(each, /^(?:[0-9A-Fa-f]{2})+$/.test(each) ? 'hex' : 'base64');
    if (secret.length !== 32) throw new ConfigError(`${name} must be ${shapeOf(name)}.`);
    return secret;
  });
}

/** Whether two listeners would want the same port of the same address; a wildcard holds every address. */
function collide(one: ListenAddress, other: ListenAddress): boolean {
  if (one.port !== other.port || one.port === 0) return false;
  const hosts = [one, other].map(({ host }) => (host.toLowerCase() === 'localhost' ? '127.0.0.1' : host.toLowerCase()));
  return hosts[0] === hosts[1] || hosts.some((host) => host === '0.0.0.0' || host === '::');
}

/** Settings of ours by what other products call them. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  ANTHROPIC_AUTH_TOKEN: 'ANTHROPIC_API_KEY',
  CLAUDE_API_KEY: 'ANTHROPIC_API_KEY',
  FIREWORKSAI_API_KEY: 'FIREWORKS_API_KEY',
  FIREWORKS_AI_API_KEY: 'FIREWORKS_API_KEY',
  GEMINI_API_BASE: 'GOOGLE_BASE_URL',
  GEMINI_API_KEY: 'GOOGLE_API_KEY',
  GOOGLE_AI_API_KEY: 'GOOGLE_API_KEY',
  GOOGLE_GENERATIVE_AI_API_KEY: 'GOOGLE_API_KEY',
  GROK_API_KEY: 'XAI_API_KEY',
  KIMI_API_KEY: 'MOONSHOTAI_API_KEY',
  LITELLM_LOG: 'LOG_LEVEL',
  LITELLM_SALT_KEY: 'ENCRYPTION_KEY',
  MOONSHOT_API_KEY: 'MOONSHOTAI_API_KEY',
  PROXY_BASE_URL: 'PUBLIC_URL',
  TOGETHERAI_API_KEY: 'TOGETHER_API_KEY',
  TOGETHER_AI_API_KEY: 'TOGETHER_API_KEY',
};

const AZURE = 'set UPSTREAM_AZURE_BASE_URL, UPSTREAM_AZURE_API_KEY and UPSTREAM_AZURE_MODELS instead';
const OLLAMA = 'set UPSTREAM_OLLAMA_BASE_URL and UPSTREAM_OLLAMA_MODELS instead';

/** Remedies for names that mean no single setting. */
const OTHER_WAYS: Readonly<Record<string, string>> = {
  AZURE_API_BASE: AZURE,
  AZURE_API_KEY: AZURE,
  AZURE_OPENAI_API_KEY: AZURE,
  AZURE_OPENAI_ENDPOINT: AZURE,
  LITELLM_MASTER_KEY: 'make a master key by `portcullis master-keys create` instead',
  OLLAMA_API_BASE: OLLAMA,
  OLLAMA_BASE_URL: OLLAMA,
};

/** Endings of a provider's settings, each with its synonyms; words that contain others come first. */
const PROVIDER_PARTS: readonly (readonly [part: string, words: readonly string[]])[] = [
  ['API_KEY', ['API_KEY', 'API_KEYS', 'APIKEY', 'API_TOKEN', 'SECRET_KEY', 'KEY']],
  ['BASE_URL', ['API_BASE_URL', 'BASE_URL', 'BASEURL', 'API_BASE', 'API_URL', 'API_ENDPOINT', 'ENDPOINT']],
  ['FIELDS', ['FIELDS']],
];

/** Letters that may be wrong in a name: in a short one two would make another word. */
const mostWrong = (name: string): number => (name.length < 6 ? 1 : 2);

/** The setting of a provider that a name means: `OPEN_AI_API_KEY`, `OPENAI_API_BASE`. */
function providerSetting(name: string): string | undefined {
  const prefixes = PROVIDER_IDS.map((id) => id.toUpperCase());
  for (const [part, words] of PROVIDER_PARTS) {
    const word = words.find((each) => name.endsWith(`_${each}`));
    if (word === undefined) continue;
    const prefix = name.slice(0, -word.length - 1);
    if (prefixes.includes(prefix)) return `${prefix}_${part}`;
    // A word of three letters with one of them wrong is another word.
    const meant = prefix.length < 4 ? undefined : nearest(prefix, prefixes);
    return meant === undefined ? undefined : `${meant}_${part}`;
  }
  return undefined;
}

/**
 * One line for each variable that is not read and looks as if it were meant to be: a name of ours with up to two letters wrong, or
 * what another product calls the same. Where the right one is set too, nobody is warned. Values are never told.
 */
export function settingHints(env: Readonly<Record<string, string | undefined>>): string[] {
  const isOurs = (name: string): boolean =>
    Object.hasOwn(VARIABLES, name) || (shapeOf(name) !== undefined && !isOfUnknownProvider(name));
  return Object.keys(env)
    .filter((name) => /^[A-Z][A-Z0-9_]{3,63}$/.test(name) && !isOurs(name))
    .sort()
    .flatMap((name) => {
      const way = entryOf(OTHER_WAYS, name);
      if (way !== undefined) return `${name} is not read: ${way}.`;
      const meant =
        entryOf(OTHER_NAMES, name) ?? nearest(name, Object.keys(VARIABLES), mostWrong(name)) ?? providerSetting(name);
      return meant === undefined || entryOf(env, meant) !== undefined
        ? []
        : `${name} is not read: did you mean ${meant}?`;
    });
}
