import { existsSync, readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ConfigError } from '../../config/variables.ts';
import { type ChainHead, holdsHead, readChainHead } from '../../store/audit/audit-entries.ts';
import type { Store } from '../../store/store.ts';
import type { Telemetry } from '../../telemetry/telemetry.ts';

/** The head of the audit log in a file of its own, so that a shortened log can be detected. */
interface HeadFileDeps {
  readonly file: string;
  readonly store: Pick<Store, 'read'>;
  readonly telemetry: Pick<Telemetry, 'warn'>;
}

/**
 * Returns what writes the head into the file where it has moved. A file whose head the log no longer holds is the proof that entries
 * were taken away: it stays as it is, and a warning says so once.
 */
export function createHeadWriter({ file, store, telemetry }: HeadFileDeps): () => Promise<void> {
  let written = readHeadFile(file);
  let isContradicted = false;
  return async () => {
    if (isContradicted) return;
    const known = written;
    const { head, isHeld } = await store.read((db) => ({
      head: readChainHead(db),
      isHeld: known === undefined || holdsHead(db, known),
    }));
    if (!isHeld) {
      isContradicted = true;
      telemetry.warn(
        'the audit log does not hold the head in AUDIT_HEAD_FILE: entries were taken away; the file stays',
        {
          file,
          seq: known?.seq,
        },
      );
      return;
    }
    if (head === undefined || head.seq === known?.seq) return;
    await writeFile(`${file}.new`, `${JSON.stringify(head)}\n`, { mode: 0o600 });
    await rename(`${file}.new`, file);
    written = head;
  };
}

/** The head in the file; undefined: there is no file. @throws ConfigError for any other content */
export function readHeadFile(file: string): ChainHead | undefined {
  if (!existsSync(file)) {
    const folder = path.dirname(file);
    if (!existsSync(folder)) throw new ConfigError(`AUDIT_HEAD_FILE: there is no folder ${folder}.`);
    return undefined;
  }
  const [, seq = '', hmac = ''] = HEAD.exec(readFileSync(file, 'latin1').slice(0, LONGEST)) ?? [];
  if (hmac === '') throw new ConfigError(`AUDIT_HEAD_FILE: ${file} does not hold the head of an audit log.`);
  return { seq: Number(seq), hmac };
}

const HEAD = /^\{"seq":([1-9][0-9]{0,15}),"hmac":"([0-9a-f]{64})"\}\n?$/;
const LONGEST = 128;
