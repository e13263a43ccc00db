import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import schema from '../schemas/config.json' with { type: 'json' };
import { readConfig, settingHints } from '../src/config/config.ts';
import { ConfigError } from '../src/config/variables.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const HEX = '00112233445566778899aabbccddeeff'.repeat(2);
const BASE64 = Buffer.from(HEX, 'hex').toString('base64');

const local = { UPSTREAM_LOCAL_BASE_URL: 'http://127.0.0.1:11434/v1', UPSTREAM_LOCAL_MODELS: 'llama' };

function messageOf(env: Record<string, string>): string {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'no error';
}

describe('the configuration', () => {
  it('has a default for everything', () => {
    expect(readConfig({})).toEqual({
      gateway: { host: '127.0.0.1', port: 8080 },
      management: { host: '127.0.0.1', port: 8081 },
      publicUrl: undefined,
      allowedHosts: [],
      allowedOrigins: [],
      trustedProxies: null,
      allowPrivateUpstreams: [],
      allowPrivateClients: [],
      defaultMaxOutputTokens: 16_384,
      minOutputTokens: 256,
      dataDir: path.join(root, 'data'),
      durability: 'normal',
      retentionDays: undefined,
      refusedRequestsHours: 24,
      bundleTrust: { publicKeyFile: undefined, scope: undefined },
      sandbox: true,
      checkProviders: true,
      defaultImageModel: undefined,
      metadataForm: 'object',
      moderationModel: undefined,
      nanoBananaModel: undefined,
      uploadDir: undefined,
      logLevel: 'info',
      accessLog: 'stdout',
      limits: {
        bodyBytes: 10_485_760,
        depth: 64,
        jsonValues: 200_000,
        jsonFields: 10_000,
        inFlight: 1000,
        bufferedBytes: 268_435_456,
        managementInFlight: 100,
        managementBufferedBytes: 67_108_864,
        responseBytes: 16_777_216,
        cacheBytes: 67_108_864,
      },
      rateLimits: { chat: 600, images: 600, models: 1200, moderations: 1200, mcp: 600, management: 1200 },
      timeouts: {
        requestHeaders: 10_000,
        requestBody: 30_000,
        connect: 5000,
        firstByte: 120_000,
        idle: 60_000,
        total: 600_000,
        keepAliveComment: 15_000,
        shutdownGrace: 30_000,
      },
      metricsToken: undefined,
      budgetMetrics: false,
      secrets: { peppers: [], encryptionKeys: [] },
      serviceProviders: [],
      upstreams: [],
    });
  });

  it('is what the variables say', () => {
    const config = readConfig({
      HOST: '0.0.0.0',
      PORT: '80',
      MANAGEMENT_HOST: '::1',
      MANAGEMENT_PORT: '0',
      PUBLIC_URL: 'https://Gateway.example/llm/',
      ALLOWED_HOSTS: 'Gateway.example, localhost:8080,[::1]:80',
      ALLOWED_ORIGINS: 'https://Chat.example,http://localhost:3000',
      TRUSTED_PROXIES: '10.1.2.3/8, 2001:db8::/32',
      ALLOW_PRIVATE_CLIENTS: 'clients.internal:443',
      ALLOW_PRIVATE_UPSTREAMS: 'Ollama.Internal:11434, 10.0.0.7:80,[0:0::1]:443',
      DATA_DIR: '/var/lib/portcullis',
      DURABILITY: 'full',
      SANDBOX: 'off',
      DEFAULT_IMAGE_MODEL: 'acme/painter',
      METADATA_FORM: 'strings',
      MODERATION_MODEL: 'omni-moderation-latest',
      NANO_BANANA_MODEL: 'google/gemini-2.5-flash-image',
      UPLOAD_DIR: '/var/lib/pictures',
      LOG_LEVEL: 'silent',
      ACCESS_LOG: '/var/log/access.log',
      MAX_BODY_BYTES: '1',
      MAX_DEPTH: '2',
      MAX_JSON_VALUES: '18',
      MAX_JSON_FIELDS: '19',
      MAX_IN_FLIGHT: '3',
      MAX_BUFFERED_BYTES: '4',
      MANAGEMENT_MAX_IN_FLIGHT: '20',
      MANAGEMENT_MAX_BUFFERED_BYTES: '21',
      MAX_RESPONSE_BYTES: '5',
      CACHE_MAX_BYTES: '14',
      DEFAULT_MAX_OUTPUT_TOKENS: '23',
      MIN_OUTPUT_TOKENS: '24',
      RATE_LIMIT_CHAT_PER_MINUTE: '15',
      RATE_LIMIT_IMAGES_PER_MINUTE: 'off',
      RATE_LIMIT_MODELS_PER_MINUTE: '16',
      RATE_LIMIT_MODERATIONS_PER_MINUTE: '17',
      RATE_LIMIT_MCP_PER_MINUTE: '24',
      RATE_LIMIT_MANAGEMENT_PER_MINUTE: '22',
      REQUEST_HEADERS_TIMEOUT_MS: '6',
      REQUEST_BODY_TIMEOUT_MS: '7',
      CONNECT_TIMEOUT_MS: '8',
      FIRST_BYTE_TIMEOUT_MS: '9',
      IDLE_TIMEOUT_MS: '10',
      TOTAL_TIMEOUT_MS: '11',
      KEEP_ALIVE_COMMENT_MS: '12',
      SHUTDOWN_GRACE_MS: '13',
      RETENTION_DAYS: '90',
      POLICY_BUNDLE_PUBLIC_KEY: '/etc/portcullis/policy.pem',
      POLICY_BUNDLE_SCOPE: 'write',
      BUDGET_METRICS: 'on',
      METRICS_TOKEN: 'a-token-of-some-length',
      PEPPER: `${HEX}, ${BASE64}`,
      ENCRYPTION_KEY: BASE64,
      OPENAI_API_KEY: 'sk-openai',
      GROQ_BASE_URL: 'http://10.0.0.7/groq/',
      GROQ_FIELDS: 'x_groq_trace',
    });
    expect(config).toEqual({
      gateway: { host: '0.0.0.0', port: 80 },
      management: { host: '::1', port: 0 },
      publicUrl: 'https://gateway.example/llm',
      allowedHosts: ['gateway.example', 'localhost:8080', '[::1]:80'],
      allowedOrigins: ['https://chat.example', 'http://localhost:3000'],
      trustedProxies: [
        { family: 4, network: 10n << 24n, prefix: 8 },
        { family: 6, network: 0x20010db8n << 96n, prefix: 32 },
      ],
      allowPrivateUpstreams: ['ollama.internal:11434', '10.0.0.7:80', '[::1]:443'],
      allowPrivateClients: ['clients.internal:443'],
      dataDir: '/var/lib/portcullis',
      durability: 'full',
      retentionDays: 90,
      refusedRequestsHours: 24,
      bundleTrust: { publicKeyFile: '/etc/portcullis/policy.pem', scope: 'write' },
      sandbox: false,
      checkProviders: true,
      defaultImageModel: 'acme/painter',
      metadataForm: 'strings',
      moderationModel: 'omni-moderation-latest',
      nanoBananaModel: 'google/gemini-2.5-flash-image',
      uploadDir: '/var/lib/pictures',
      logLevel: 'silent',
      accessLog: '/var/log/access.log',
      limits: {
        bodyBytes: 1,
        depth: 2,
        jsonValues: 18,
        jsonFields: 19,
        inFlight: 3,
        bufferedBytes: 4,
        managementInFlight: 20,
        managementBufferedBytes: 21,
        responseBytes: 5,
        cacheBytes: 14,
      },
      defaultMaxOutputTokens: 23,
      minOutputTokens: 24,
      rateLimits: { chat: 15, images: undefined, models: 16, moderations: 17, mcp: 24, management: 22 },
      timeouts: {
        requestHeaders: 6,
        requestBody: 7,
        connect: 8,
        firstByte: 9,
        idle: 10,
        total: 11,
        keepAliveComment: 12,
        shutdownGrace: 13,
      },
      metricsToken: 'a-token-of-some-length',
      budgetMetrics: true,
      secrets: {
        peppers: [Buffer.from(HEX, 'hex'), Buffer.from(HEX, 'hex')],
        encryptionKeys: [Buffer.from(HEX, 'hex')],
      },
      serviceProviders: [
        { id: 'groq', apiKey: undefined, baseUrl: 'http://10.0.0.7/groq', fields: ['x_groq_trace'] },
        { id: 'openai', apiKey: 'sk-openai', baseUrl: undefined, fields: [] },
      ],
      upstreams: [],
    });
  });

  it('ignores what is not ours', () => {
    expect(readConfig({ PATH: '/bin', EMPTY: '', UPSTREAM: 'x', port: 'x', HOST: undefined })).toEqual(readConfig({}));
  });

  it('tells no trusted proxies from none said', () => {
    expect(readConfig({ TRUSTED_PROXIES: 'none' }).trustedProxies).toEqual([]);
  });

  it('resolves a relative DATA_DIR', () => {
    expect(readConfig({ DATA_DIR: 'here' }).dataDir).toBe(path.resolve('here'));
  });

  it('cannot be changed', () => {
    const config = readConfig(local);
    for (const part of [config, config.gateway, config.limits, config.upstreams, config.upstreams[0]?.models]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });
});

describe('a wrong variable is named, with what it must be', () => {
  it.each<[string, Record<string, string>]>([
    ['PORT must be a whole number from 0 to 65535.', { PORT: '65536' }],
    ['PORT must be a whole number from 0 to 65535.', { PORT: '80a' }],
    ['PORT must be a whole number from 0 to 65535.', { PORT: '-1' }],
    ['PORT is empty: remove it or give it a value.', { PORT: '' }],
    ['HOST must be a host name or an IP address, without brackets or port.', { HOST: '[::1]' }],
    ['PUBLIC_URL must be an http or https URL without user, query or fragment.', { PUBLIC_URL: 'gateway.example' }],
    [
      'PUBLIC_URL must be an http or https URL without user, query or fragment.',
      { PUBLIC_URL: 'https://u:p@gateway.example' },
    ],
    ['PUBLIC_URL must be a URL.', { PUBLIC_URL: 'http://[::' }],
    [
      'MODERATION_MODEL must be a model id, an alias, or `provider/model`, of at most 512 characters.',
      { MODERATION_MODEL: 'a model' },
    ],
    [
      'ALLOWED_ORIGINS must be a comma list of origins, each `https://host` or `http://host`, with or without `:port`.',
      { ALLOWED_ORIGINS: '*' },
    ],
    ['ALLOWED_HOSTS must be a comma list of host names, each with or without `:port`.', { ALLOWED_HOSTS: 'http://a' }],
    [
      'TRUSTED_PROXIES: "10.0.0.1" has no prefix length; a single address ends in /32 or /128.',
      { TRUSTED_PROXIES: '10.0.0.1' },
    ],
    [
      'TRUSTED_PROXIES: "none" has no prefix length; a single address ends in /32 or /128.',
      { TRUSTED_PROXIES: '10.0.0.0/8,none' },
    ],
    [
      'ALLOW_PRIVATE_UPSTREAMS must be a comma list of `host:port`, the host a name or an IP address (IPv6 in brackets).',
      { ALLOW_PRIVATE_UPSTREAMS: '10.0.0.7' },
    ],
    [
      'ALLOW_PRIVATE_CLIENTS must be a comma list of `host:port`, the host a name or an IP address (IPv6 in brackets).',
      { ALLOW_PRIVATE_CLIENTS: '10.0.0.7' },
    ],
    [
      'ALLOW_PRIVATE_UPSTREAMS: "10.0.0.7:0" is not a host name or an IP address with a port.',
      { ALLOW_PRIVATE_UPSTREAMS: 'ollama:80,10.0.0.7:0' },
    ],
    [
      'ALLOW_PRIVATE_UPSTREAMS: "10.0.0.700:80" is not a host name or an IP address with a port.',
      { ALLOW_PRIVATE_UPSTREAMS: '10.0.0.700:80' },
    ],
    ['DURABILITY must be one of normal, full.', { DURABILITY: 'Full' }],
    ['RETENTION_DAYS must be a whole number from 1 to 36500, or `off`.', { RETENTION_DAYS: '0' }],
    ['REFUSED_REQUESTS_HOURS must be a whole number from 1 to 168, or `off`.', { REFUSED_REQUESTS_HOURS: '169' }],
    ['RETENTION_DAYS must be a whole number from 1 to 36500, or `off`.', { RETENTION_DAYS: '36501' }],
    ['SANDBOX must be one of on, off.', { SANDBOX: 'false' }],
    ['LOG_LEVEL must be one of debug, info, warn, error, silent.', { LOG_LEVEL: 'verbose' }],
    ['MAX_BODY_BYTES must be a whole number of bytes from 1 to 99999999999.', { MAX_BODY_BYTES: '10MB' }],
    ['MAX_DEPTH must be a whole number from 1 to 999.', { MAX_DEPTH: '1000' }],
    ['IDLE_TIMEOUT_MS must be a whole number of milliseconds from 1 to 999999999.', { IDLE_TIMEOUT_MS: '0' }],
    ['MAX_IN_FLIGHT must be a whole number from 1 to 999999999.', { MAX_IN_FLIGHT: '1.5' }],
    [
      'RATE_LIMIT_CHAT_PER_MINUTE must be a whole number from 1 to 999999999, or `off`.',
      { RATE_LIMIT_CHAT_PER_MINUTE: '0' },
    ],
    ['METRICS_TOKEN must be at least 16 visible ASCII characters without blanks.', { METRICS_TOKEN: 'short' }],
    ['PEPPER must be 32 bytes, in hex or base64, or a comma list of such.', { PEPPER: HEX.slice(2) }],
    ['PEPPER must be 32 bytes, in hex or base64, or a comma list of such.', { PEPPER: `${HEX},` }],
    [
      'ENCRYPTION_KEY must be 32 bytes, in hex or base64, or a comma list of such.',
      { ENCRYPTION_KEY: 'correct horse battery staple' },
    ],
  ])('%s', (message, env) => {
    expect(messageOf(env)).toBe(message);
  });

  it.each<[string, Record<string, string>]>([
    ['the same address', { PORT: '9000', MANAGEMENT_PORT: '9000' }],
    ['another name of it', { PORT: '9000', MANAGEMENT_PORT: '9000', HOST: 'Localhost' }],
    ['a wildcard', { PORT: '9000', MANAGEMENT_PORT: '9000', MANAGEMENT_HOST: '0.0.0.0' }],
  ])('when both listeners would take one port of %s', (_, env) => {
    expect(messageOf(env)).toBe('MANAGEMENT_PORT must differ from PORT: both listeners would take the same address.');
  });

  it('but one port of two addresses, or any free port, is fine', () => {
    expect(messageOf({ PORT: '9000', MANAGEMENT_PORT: '9000', MANAGEMENT_HOST: '::1' })).toBe('no error');
    expect(messageOf({ PORT: '0', MANAGEMENT_PORT: '0' })).toBe('no error');
  });
});

describe('an upstream', () => {
  it('is a URL, models, perhaps a key, prices and fields', () => {
    const env = {
      ...local,
      UPSTREAM_MY_LLM_2_BASE_URL: 'https://llm.example/v1/',
      UPSTREAM_MY_LLM_2_API_KEY: 'sk-abc',
      UPSTREAM_MY_LLM_2_MODELS: 'meta/llama-3.3, tiny,tiny, other',
      UPSTREAM_MY_LLM_2_PRICES: 'meta/llama-3.3=0.59/0.790001, tiny=0/0',
      UPSTREAM_MY_LLM_2_FIELDS: 'x_trace, style',
      UPSTREAM_MY_LLM_2_LIMITS: 'meta/llama-3.3=131072/8192, tiny=-/512, other=4096/-',
    };
    expect(readConfig(env).upstreams).toEqual([
      {
        name: 'local',
        baseUrl: 'http://127.0.0.1:11434/v1',
        apiKey: undefined,
        models: [{ id: 'llama', prices: {} }],
        fields: [],
      },
      {
        name: 'my-llm-2',
        fields: ['x_trace', 'style'],
        baseUrl: 'https://llm.example/v1',
        apiKey: 'sk-abc',
        models: [
          {
            id: 'meta/llama-3.3',
            prices: { prompt: 590_000n, completion: 790_001n },
            contextLength: 131_072,
            maxOutput: 8192,
          },
          { id: 'tiny', prices: { prompt: 0n, completion: 0n }, maxOutput: 512 },
          { id: 'other', prices: {}, contextLength: 4096 },
        ],
      },
    ]);
  });

  const PRICES = 'a comma list of `model=input/output`, in USD per million tokens as plain decimals.';
  it.each<[string, Record<string, string>]>([
    [
      'UPSTREAM_LOCAL_MODELS is missing: an upstream needs its URL and its models.',
      { UPSTREAM_LOCAL_BASE_URL: 'http://a' },
    ],
    ['UPSTREAM_LOCAL_BASE_URL is missing: an upstream needs its URL and its models.', { UPSTREAM_LOCAL_MODELS: 'a' }],
    ['UPSTREAM_LOCAL_BASE_URL is empty: remove it or give it a value.', { ...local, UPSTREAM_LOCAL_BASE_URL: '' }],
    [
      'UPSTREAM_LOCAL_BASE_URL must be an http or https URL without user, query or fragment.',
      { ...local, UPSTREAM_LOCAL_BASE_URL: 'file:///etc/passwd' },
    ],
    [
      'UPSTREAM_LOCAL_API_KEY must be visible ASCII characters without blanks.',
      { ...local, UPSTREAM_LOCAL_API_KEY: 'a\r\nb' },
    ],
    ['UPSTREAM_LOCAL_MODELS must be a comma list of model ids.', { ...local, UPSTREAM_LOCAL_MODELS: 'a,,b' }],
    [`UPSTREAM_LOCAL_PRICES must be ${PRICES}`, { ...local, UPSTREAM_LOCAL_PRICES: 'llama=1' }],
    [`UPSTREAM_LOCAL_PRICES must be ${PRICES}`, { ...local, UPSTREAM_LOCAL_PRICES: 'llama=1/-1' }],
    [
      'UPSTREAM_LOCAL_PRICES: An amount may have at most 6 decimal places.',
      { ...local, UPSTREAM_LOCAL_PRICES: 'llama=1/0.0000001' },
    ],
    [
      'UPSTREAM_LOCAL_PRICES: An amount may be at most 9000000 USD.',
      { ...local, UPSTREAM_LOCAL_PRICES: 'llama=9000001/1' },
    ],
    ['UPSTREAM_LOCAL_PRICES prices llama twice.', { ...local, UPSTREAM_LOCAL_PRICES: 'llama=1/1,llama=2/2' }],
    [
      'UPSTREAM_LOCAL_LIMITS names qwen, which UPSTREAM_LOCAL_MODELS does not.',
      { ...local, UPSTREAM_LOCAL_LIMITS: 'qwen=1/1' },
    ],
    [
      'UPSTREAM_LOCAL_MODELS names a/b and a--b, which have the same id here: a--b.',
      { ...local, UPSTREAM_LOCAL_MODELS: 'a/b,a--b' },
    ],
    ['UPSTREAM_LOCAL_LIMITS names llama twice.', { ...local, UPSTREAM_LOCAL_LIMITS: 'llama=1/1,llama=1/1' }],
    [
      'UPSTREAM_LOCAL_PRICES names qwen, which UPSTREAM_LOCAL_MODELS does not.',
      { ...local, UPSTREAM_LOCAL_PRICES: 'qwen=1/1' },
    ],
    [
      'UPSTREAM_CUSTOM_BASE_URL: the provider name custom is taken.',
      { UPSTREAM_CUSTOM_BASE_URL: 'http://a', UPSTREAM_CUSTOM_MODELS: 'a' },
    ],
    [
      'UPSTREAM_SANDBOX_BASE_URL: the provider name sandbox is taken.',
      { UPSTREAM_SANDBOX_BASE_URL: 'http://a', UPSTREAM_SANDBOX_MODELS: 'a' },
    ],
  ])('%s', (message, env) => {
    expect(messageOf(env)).toBe(message);
  });

  it.each(['UPSTREAM_LOCAL_URL', 'UPSTREAM_BASE_URL', 'UPSTREAM_local_BASE_URL', 'UPSTREAM_A__B_MODELS', 'UPSTREAM_'])(
    'is not named by %s',
    (name) => {
      expect(messageOf({ [name]: 'http://a' })).toBe(
        `${name} is not a variable of an upstream: they are UPSTREAM_<NAME>_BASE_URL, _API_KEY, _MODELS, _PRICES, _LIMITS and _FIELDS, <NAME> in capitals, digits and single underscores.`,
      );
    },
  );
});

describe('schemas/config.json, of which the README makes its table', () => {
  const variables = Object.entries<{ description?: string; default?: string }>({
    ...schema.properties,
    ...schema.patternProperties,
  });

  it('describes every variable in a sentence', () => {
    expect(
      variables.filter(([, { description }]) => !description?.match(/^[`A-Z].*\.$/)).map(([name]) => name),
    ).toEqual([]);
  });

  it('requires exactly those that have a default', () => {
    expect(variables.filter(([, variable]) => variable.default !== undefined).map(([name]) => name)).toEqual(
      schema.required,
    );
  });
});

describe('a variable that is not read', () => {
  const hintsFor = (...names: string[]): string[] =>
    settingHints(Object.fromEntries(names.map((name) => [name, 'sk-secret'])));

  it.each([
    ['TRUSTED_PROXYS', 'TRUSTED_PROXIES'],
    ['MANAGMENT_PORT', 'MANAGEMENT_PORT'],
    ['LOG_LVL', 'LOG_LEVEL'],
    ['POTR', 'PORT'],
    ['MAX_INFLIGHT', 'MAX_IN_FLIGHT'],
    ['ANTROPIC_API_KEY', 'ANTHROPIC_API_KEY'],
    ['OPEN_AI_API_KEY', 'OPENAI_API_KEY'],
    ['OPENAI_KEY', 'OPENAI_API_KEY'],
    ['OPENAI_API_BASE', 'OPENAI_BASE_URL'],
    ['GROQ_ENDPOINT', 'GROQ_BASE_URL'],
    ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    ['GROK_API_KEY', 'XAI_API_KEY'],
    ['LITELLM_SALT_KEY', 'ENCRYPTION_KEY'],
  ])('and is nearly ours is told with the right name: %s', (name, meant) => {
    expect(hintsFor(name)).toEqual([`${name} is not read: did you mean ${meant}?`]);
  });

  it.each([
    ['AZURE_OPENAI_API_KEY', 'set UPSTREAM_AZURE_BASE_URL, UPSTREAM_AZURE_API_KEY and UPSTREAM_AZURE_MODELS instead.'],
    ['OLLAMA_BASE_URL', 'set UPSTREAM_OLLAMA_BASE_URL and UPSTREAM_OLLAMA_MODELS instead.'],
    ['LITELLM_MASTER_KEY', 'make a master key by `portcullis master-keys create` instead.'],
  ])('and is of another product is told with what to do: %s', (name, way) => {
    expect(hintsFor(name)).toEqual([`${name} is not read: ${way}`]);
  });

  it('is left alone where the right one is set, or where it is anything else', () => {
    expect(hintsFor('GEMINI_API_KEY', 'GOOGLE_API_KEY')).toEqual([]);
    const others =
      'HOME PATH USER SHELL TERM LANG PWD HOSTNAME NODE_ENV DATABASE_URL API_BASE_URL AI_API_KEY GITHUB_API_KEY STRIPE_KEY COHERE_API_KEY GOOGLE_APPLICATION_CREDENTIALS HTTP_PROXY TMPDIR EDITOR DISPLAY LOGNAME LC_ALL CONSTRUCTOR __proto__ toString OPENID_API_KEY npm_config_cache';
    expect(hintsFor(...others.split(' '))).toEqual([]);
  });

  it('is none of our own', () => {
    expect(hintsFor(...Object.keys(schema.properties), 'OPENAI_API_KEY', ...Object.keys(local))).toEqual([]);
    expect(settingHints(process.env)).toEqual([]);
  });
});
