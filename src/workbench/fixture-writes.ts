import type { Catalog } from '../catalog/catalog.ts';
import { KnownNames } from '../core/known-names.ts';
import { ruleWarnings } from '../core/rule-warnings.ts';
import type { TrustedProxies } from '../domain/client-ip.ts';
import { ApiError } from '../domain/errors.ts';
import { getOrMake } from '../domain/get-or-make.ts';
import { readRule } from '../domain/rule-content.ts';
import type { FixtureWrite } from '../generated/types.ts';
import type { Difference } from './check-outcome.ts';
import { readProxies } from './fixture-given.ts';
import { apiForm } from './fixture-rules.ts';
import { FixtureFault, type Place, type SourceDocument } from './fixture-source.ts';
import { listOf } from './lists.ts';

/** A write of a rule that a fixture tries. */
export interface WriteCase {
  /** Tells it from the fixture's others: `write=2`. */
  readonly label: string;
  /** As the API takes it, unchecked. */
  readonly body: object;
  /** Undefined: `TRUSTED_PROXIES` is unset. */
  readonly trustedProxies: TrustedProxies | undefined;
  readonly expected: WriteAnswer & { readonly place: Place };
}

/** What a write is answered: warnings, or a refusal. Of what is expected, each text may be a part. */
export type WriteAnswer = { readonly warnings: readonly string[] } | { readonly refused: string };

/** The writes of a fixture. @throws FixtureFault for one of which not exactly one thing is expected */
export function readWrites(document: SourceDocument, writes: readonly FixtureWrite[] = []): WriteCase[] {
  return writes.map(({ rule, trustedProxies, warnings, refused }, index) => {
    const at = ['writes', index];
    const place = document.placeOf(at);
    if ((warnings === undefined) === (refused === undefined)) {
      throw new FixtureFault(place, 'A write has exactly one of warnings and refused.');
    }
    return {
      label: `write=${index + 1}`,
      body: apiForm(rule)?.body ?? rule,
      trustedProxies:
        trustedProxies === undefined
          ? undefined
          : readProxies(document, [...at, 'trustedProxies'], listOf(trustedProxies)),
      expected: { place, ...(refused === undefined ? { warnings: warnings ?? [] } : { refused }) },
    };
  });
}

/** What a write of the rule would be answered with where this catalogue is in force. */
export function answerTo({ body, trustedProxies }: WriteCase, catalog: Catalog): WriteAnswer {
  try {
    return { warnings: ruleWarnings(readRule(body).canonical, namesIn(catalog), trustedProxies) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { refused: error.message };
  }
}

const known = new WeakMap<Catalog, KnownNames>();

/** The names of a catalogue, gathered once. */
export const namesIn = (catalog: Catalog): KnownNames => getOrMake(known, catalog, () => new KnownNames(catalog));

/** Where the answer to a write is not the expected one; empty: nowhere. */
export function answerDifferences({ expected }: WriteCase, came: WriteAnswer): Difference[] {
  const fits =
    'refused' in expected
      ? 'refused' in came && came.refused.includes(expected.refused)
      : 'warnings' in came &&
        came.warnings.length === expected.warnings.length &&
        came.warnings.every((warning, index) => warning.includes(expected.warnings[index] ?? ''));
  return fits ? [] : [{ expected: answerText(expected), came: answerText(came) }];
}

function answerText(answer: WriteAnswer): string {
  if ('refused' in answer) return `refused: ${answer.refused}`;
  return answer.warnings.length === 0 ? 'stored without a warning' : `stored, warning: ${answer.warnings.join(' ')}`;
}
