import { createPublicKey } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import type { BundleTrustConfig, Config } from '../../config/config.ts';
import { ConfigError } from '../../config/variables.ts';
import { createTransport, type Transport } from '../../net/transport.ts';
import { TransportError } from '../../net/transport-error.ts';
import { archivedBundle, BundleRefused, MAX_ARCHIVE_BYTES, readArchive } from '../../policy/archive/read-archive.ts';
import type { Trust } from '../../policy/archive/signature.ts';
import { type PolicyBundle, readBundle } from '../../policy/bundle.ts';
import { readKeptArchive, standingIn } from '../../store/bundles/bundle-files.ts';
import { tryBundle } from './try-bundle.ts';

/** A source of archives. */
export interface BundleSource {
  /**
   * The archive that is there; undefined: the same as the last time.
   * @throws BundleRefused `unreachable` when there is none, `archive` for one that is too large
   */
  look(signal: AbortSignal): Promise<Uint8Array | undefined>;
  /** Whether `look` itself waits for another archive. */
  waits(): boolean;
  /** The next look finds whatever is there. */
  forget(): void;
  close(): Promise<void>;
}

/** A file, which may be replaced at any time. */
export function fileSource(file: string): BundleSource {
  let seen: string | undefined;
  return {
    async look() {
      const found = statSync(file, { throwIfNoEntry: false, bigint: true });
      if (found === undefined || !found.isFile()) throw new BundleRefused('unreachable', `There is no file ${file}.`);
      const version = `${found.ino} ${found.size} ${found.mtimeNs}`;
      if (version === seen) return undefined;
      if (found.size > MAX_ARCHIVE_BYTES)
        throw new BundleRefused('archive', `${file} is larger than ${MAX_ARCHIVE_BYTES} bytes.`);
      const archive = contentOf(file);
      seen = version;
      return archive;
    },
    waits: () => false,
    forget() {
      seen = undefined;
    },
    close: async () => {},
  };
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new BundleRefused('unreachable', `${file} cannot be read: ${String(error)}.`, error);
  }
}

interface BundleServer {
  readonly url: string;
  readonly token: string | undefined;
  /** Undefined: it answers at once. */
  readonly longPollSeconds: number | undefined;
}

/** With which a server says that it holds requests back, as OPA's does. */
const LONG_POLL_TYPE = 'application/vnd.openpolicyagent.bundles';
const ANSWER_MS = 60_000;

/** A server that speaks OPA's bundle protocol: ETags, and long polls where it offers them. Redirects are not followed. */
export function serverSource({ url, token, longPollSeconds }: BundleServer): BundleSource {
  const { origin, pathname, search } = new URL(url);
  const waitMs = 1000 * (longPollSeconds ?? 0);
  const transport: Transport = createTransport({
    connectTimeoutMs: 10_000,
    firstByteTimeoutMs: waitMs + ANSWER_MS,
    idleTimeoutMs: ANSWER_MS,
    totalTimeoutMs: waitMs + 2 * ANSWER_MS,
    maxResponseBytes: MAX_ARCHIVE_BYTES,
    maxConnections: 1,
    parseLarge: () => Promise.reject(new Error('a bundle is no JSON')),
  });
  let etag: string | undefined;
  let isLongPoll = false;

  return {
    async look(signal) {
      const response = await transport
        .send(
          {
            origin,
            path: pathname + search,
            method: 'GET',
            headers: {
              'user-agent': 'Portcullis',
              prefer: longPollSeconds === undefined ? 'modes=snapshot' : `modes=snapshot;wait=${longPollSeconds}`,
              ...(etag === undefined ? {} : { 'if-none-match': etag }),
              ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
            },
            stream: false,
            addresses: 'trusted',
          },
          { signal, share: 'policy', room: () => {} },
        )
        .catch(notReached);
      if (response.kind !== 'gathered') throw new Error('a gathered answer was asked for and a stream came');
      const { status, headers, body } = response;
      if (status === 304 && etag !== undefined) return undefined;
      if (status !== 200) throw new BundleRefused('unreachable', `The bundle server answered with status ${status}.`);
      etag = headerText(headers.etag);
      isLongPoll = longPollSeconds !== undefined && headerText(headers['content-type']) === LONG_POLL_TYPE;
      return body;
    },
    waits: () => isLongPoll,
    forget() {
      etag = undefined;
    },
    close: () => transport.close(),
  };
}

function notReached(error: unknown): never {
  if (!(error instanceof TransportError)) throw error;
  throw new BundleRefused('unreachable', `The bundle server cannot be reached: ${error.message}.`, error);
}

const headerText = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined;

/** Reads the trusted signatures from the settings. @throws ConfigError */
export const readTrust = ({ publicKeyFile, scope }: BundleTrustConfig): Trust => ({
  publicKeys: readPublicKeys(publicKeyFile),
  scope,
});

/** The keys of a PEM file, one after another. @throws ConfigError */
function readPublicKeys(file: string | undefined): readonly string[] {
  if (file === undefined) return [];
  const fault = (what: string) => new ConfigError(`POLICY_BUNDLE_PUBLIC_KEY: ${file} ${what}.`);
  if (!existsSync(file)) throw new ConfigError(`POLICY_BUNDLE_PUBLIC_KEY: there is no file ${file}.`);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw fault(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (text.includes('PRIVATE KEY')) throw fault('holds a private key: it must hold public ones alone');
  const keys = text.match(/-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----/g) ?? [];
  for (const key of keys) {
    try {
      createPublicKey(key);
    } catch {
      throw fault('holds a key that cannot be read');
    }
  }
  if (keys.length === 0) throw fault('holds no public key in PEM form');
  return keys;
}

/**
 * The policy by which the server of a data directory decides, for commands that judge next to it: also in a shell where the
 * server's `POLICY_BUNDLE` is not set. @throws Error when it is set and no server has started with it, or the bundle is missing
 */
export function bundleInForce({ dataDir, policyBundle }: Pick<Config, 'dataDir' | 'policyBundle'>): PolicyBundle {
  const standing = standingIn(dataDir);
  if ('bundle' in standing) {
    return archivedBundle(readArchive(readKeptArchive(dataDir, standing.bundle.active.archive)));
  }
  if (policyBundle === undefined) return readBundle();
  throw new Error(
    'POLICY_BUNDLE is set, but no server has started with it yet on this DATA_DIR: start the server once.',
  );
}

/** The policy in an archive, even if it may not serve: for tests of it. @throws BundleRefused, Error when it cannot be read */
export const bundleInFile = (file: string): Promise<PolicyBundle> =>
  tryBundle({ archive: readFileSync(file), trust: null, onlyLoads: true });
