import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { bind, build, type PreparedStatement, prepare, type SqlValue, toFlag } from '../db/sql.ts';
import type { Flag } from '../db/tables.ts';
import type { DecisionRecord } from './decisions.ts';
import { Interned } from './interned.ts';

/** Who asks for what. */
export interface CallOrigin {
  readonly organizationId: string;
  readonly projectId: string;
  readonly keyId: string;
  readonly memberId: string;
  readonly action: string;
  /** The MCP tool that was called; null for other doors. */
  readonly tool: string | null;
  readonly requestedModel: string;
  readonly stream: boolean;
}

/** Who served a call, or would have; null: no one. */
export interface CallTarget {
  readonly providerId: string | null;
  readonly modelId: string | null;
  readonly providerKeyId: string | null;
  /** JSON: the attempts, as in `metadata.routing`. */
  readonly attemptsJson: string | null;
}

/** A decision, and the address of the caller. */
interface CallVerdict {
  readonly decision: DecisionRecord;
  readonly clientAddress: string | null;
}

/** The integers by which a call refers to what repeats from call to call. `day` is the UTC day of the call's number. */
export interface CallReferences {
  origin(origin: CallOrigin, day: number): number;
  /** The decision as it was judged, with the document that it saw. */
  verdict(verdict: CallVerdict, day: number): number;
  /** Null where no one served. @param callId which the attempts name */
  target(target: CallTarget, callId: string, day: number): number | null;
  /** The transaction was committed, or undone. */
  ended(committed: boolean): void;
}

const noted = { digest: bind<Buffer>('digest'), usedOn: bind<number>('day') };
const lastDay = { usedOn: sql<number>`max(usedOn, excluded.usedOn)` };

const storeOrigin = build
  .insertInto('call_origins')
  .values({
    ...noted,
    organizationId: bind<string>('organizationId'),
    projectId: bind<string>('projectId'),
    keyId: bind<string>('keyId'),
    memberId: bind<string>('memberId'),
    action: bind<string>('action'),
    tool: bind<string | null>('tool'),
    requestedModel: bind<string>('requestedModel'),
    stream: bind<Flag>('stream'),
  })
  .onConflict((conflict) => conflict.column('digest').doUpdateSet(lastDay))
  .returning('id');

const storeVerdict = build
  .insertInto('call_verdicts')
  .values({
    ...noted,
    document: bind<number>('document'),
    clientAddress: bind<string | null>('clientAddress'),
    outcome: bind<'permit' | 'deny'>('outcome'),
    bundleDigest: bind<string>('bundleDigest'),
    ruleRevision: bind<number>('ruleRevision'),
    reasonJson: bind<string | null>('reasonJson'),
    violationsJson: bind<string>('violationsJson'),
    shadowJson: bind<string | null>('shadowJson'),
    inputJson: bind<string>('inputJson'),
  })
  .onConflict((conflict) => conflict.column('digest').doUpdateSet(lastDay))
  .returning('id');

const storeDocument = build
  .insertInto('data_documents')
  .values({ digest: bind<string>('dataDigest'), usedOn: bind<number>('day'), text: bind<string>('dataText') })
  .onConflict((conflict) => conflict.column('digest').doUpdateSet(lastDay))
  .returning('id');

const storeTarget = build
  .insertInto('call_targets')
  .values({
    ...noted,
    providerId: bind<string | null>('providerId'),
    modelId: bind<string | null>('modelId'),
    providerKeyId: bind<string | null>('providerKeyId'),
    attemptsJson: bind<string | null>('attemptsJson'),
  })
  .onConflict((conflict) => conflict.column('digest').doUpdateSet(lastDay))
  .returning('id');

/** No value is an empty text or has a zero character in it: so only equal values have one key. */
const keyOf = (values: readonly SqlValue[]): string => values.join('\0');

function idBy(statement: PreparedStatement<{ id: number }>, values: Readonly<Record<string, SqlValue>>): number {
  const row = statement.get(values);
  if (row === undefined) throw new Error('What a call refers to was not stored.');
  return row.id;
}

export function createCallReferences({ connection }: Database): CallReferences {
  const originStatement = prepare(connection, storeOrigin.compile());
  const origins = new Interned<CallOrigin>((origin, digest, day) =>
    idBy(originStatement, { ...origin, stream: toFlag(origin.stream), digest, day }),
  );
  const documentStatement = prepare(connection, storeDocument.compile());
  const documents = new Interned<DecisionRecord>(({ dataDigest, dataText }, _, day) =>
    idBy(documentStatement, { dataDigest, dataText, day }),
  );
  const verdictStatement = prepare(connection, storeVerdict.compile());
  const verdicts = new Interned<CallVerdict>(({ decision, clientAddress }, digest, day) => {
    const document = documents.idOf(decision.dataDigest, decision, day);
    return idBy(verdictStatement, { ...decision, clientAddress, document, digest, day });
  });
  const targetStatement = prepare(connection, storeTarget.compile());
  const targets = new Interned<CallTarget>((target, digest, day) => idBy(targetStatement, { ...target, digest, day }));

  return {
    origin(origin, day) {
      const { organizationId, projectId, keyId, memberId, action, tool, requestedModel, stream } = origin;
      const key = keyOf([organizationId, projectId, keyId, memberId, action, tool, requestedModel, toFlag(stream)]);
      return origins.idOf(key, origin, day);
    },
    verdict(verdict, day) {
      const { decision: made, clientAddress } = verdict;
      const seen = [clientAddress, made.bundleDigest, made.ruleRevision, made.dataDigest, made.inputJson];
      const key = keyOf([...seen, made.outcome, made.reasonJson, made.violationsJson, made.shadowJson]);
      return verdicts.idOf(key, verdict, day);
    },
    target({ providerId, modelId, providerKeyId, attemptsJson: attempts }, callId, day) {
      if (providerId === null && modelId === null && attempts === null) return null;
      // All attempts name the call. Without its id they are those of other calls.
      const attemptsJson = attempts?.replaceAll(`"logId":"${callId}"`, '"logId":""') ?? null;
      const target = { providerId, modelId, providerKeyId, attemptsJson };
      return targets.idOf(keyOf([providerId, modelId, providerKeyId, attemptsJson]), target, day);
    },
    ended(committed) {
      for (const each of [origins, verdicts, documents, targets]) each.ended(committed);
    },
  };
}
