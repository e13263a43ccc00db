import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { ServiceConfig, UpstreamConfig } from '../../config/upstreams.ts';
import { type AddressRange, formatRange, parseRange } from '../../domain/address.ts';
import type { ServedModel, ServedRecord } from '../../generated/types.ts';
import { makeFolders } from '../../lib/files.ts';
import { validator } from '../../lib/schemas.ts';
import { writeDurably } from '../db/data-dir.ts';

const validateRecord = validator('ServedRecord');

const fileIn = (dataDir: string): string => path.join(dataDir, 'policy', 'served.json');

/** What a server begins with, apart from its configuration. */
type Start = Pick<ServedRecord, 'startedAt' | 'catalogDate' | 'bundleDigest'>;

type ServedConfig = ServiceConfig & { readonly trustedProxies: readonly AddressRange[] | null };

/** The settings by which access is judged, as they are recorded: hosts without paths, and credentials' presence alone. */
export const servedRecord = (
  { trustedProxies, sandbox, serviceProviders, upstreams }: ServedConfig,
  start: Start,
): ServedRecord => ({
  ...start,
  trustedProxies: trustedProxies?.map(formatRange) ?? null,
  sandbox,
  providers: serviceProviders.map(({ id, apiKey, baseUrl }) => ({
    id,
    host: baseUrl === undefined ? null : hostOf(baseUrl),
    credential: apiKey !== undefined,
  })),
  upstreams: upstreams.map(({ name, baseUrl, apiKey, models }) => ({
    name,
    host: hostOf(baseUrl),
    credential: apiKey !== undefined,
    models: models.map(recordedModel),
  })),
});

const hostOf = (url: string): string => new URL(url).host;

type Model = UpstreamConfig['models'][number];

function recordedModel({ prices: { prompt, completion }, ...model }: Model): ServedModel {
  const prices = {
    ...(prompt === undefined ? {} : { prompt: String(prompt) }),
    ...(completion === undefined ? {} : { completion: String(completion) }),
  };
  return { ...model, prices };
}

/** A recorded model as the configuration has it. */
export function servedModel({ prices: { prompt, completion }, ...model }: ServedModel): Model {
  const prices = {
    ...(prompt === undefined ? {} : { prompt: BigInt(prompt) }),
    ...(completion === undefined ? {} : { completion: BigInt(completion) }),
  };
  return { ...model, prices };
}

export const recordedProxies = ({ trustedProxies }: ServedRecord): AddressRange[] | null =>
  trustedProxies?.map(parseRange) ?? null;

/** Records what a server serves, for commands in another environment. */
export function noteServed(dataDir: string, record: ServedRecord): void {
  makeFolders(path.dirname(fileIn(dataDir)), 0o700);
  writeDurably(fileIn(dataDir), `${JSON.stringify(record, null, 2)}\n`);
}

/** What the last server recorded that started there; undefined: none has. @throws Error for a file that is not ours */
export function readServed(dataDir: string): ServedRecord | undefined {
  const file = fileIn(dataDir);
  if (!existsSync(file)) return undefined;
  let record: unknown;
  try {
    record = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    record = undefined;
  }
  if (validateRecord(record)) return record;
  throw new Error(`${file} is not what the server writes there: start the server once, or remove the file.`);
}
