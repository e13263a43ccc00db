import type { Catalog } from '../catalog/catalog.ts';
import { clientAddress, InvalidRangeError, parseRange, type TrustedProxies } from '../domain/client-ip.ts';
import type { FixtureConnection, FixtureGiven } from '../generated/types.ts';
import { validateFixtureGiven } from '../generated/validators.js';
import { sliceCatalog, type WrittenSlice } from './fixture-catalog.ts';
import { checkedShape } from './fixture-shape.ts';
import { FixtureFault, type Path, type Place, type SourceDocument } from './fixture-source.ts';
import { type GivenSubjects, type Part, readSubjects } from './fixture-subjects.ts';
import { listOf } from './lists.ts';

/** The world of a fixture. */
export interface Given extends GivenSubjects {
  readonly catalog: Catalog;
  /** Whether there is a usable credential for a provider. */
  readonly hasCredential: (providerId: string) => boolean;
  /** Canonical client addresses by name; null: unknown. */
  readonly addresses: ReadonlyMap<string, string | null>;
}

/**
 * What a fixture gives, with all that it includes.
 * @param below where `given` stands in the document @param realCatalog of this installation, for `catalog: real`
 * @throws FixtureFault
 */
export function readGiven(
  document: SourceDocument,
  below: Path,
  given: FixtureGiven,
  realCatalog: () => Catalog,
): Given {
  const included = listOf(given.include).map((name, index) => {
    const at = [...below, 'include', ...(typeof given.include === 'string' ? [] : [index])];
    return includedPart(document, at, name);
  });
  const parts = [...included, { document, below, given }];
  const without = new Set(parts.flatMap(({ given: { catalog } }) => listOf(sliceOf(catalog)?.withoutCredential)));
  return {
    ...readSubjects(parts),
    catalog: catalogFrom(parts, realCatalog),
    hasCredential: (providerId) => !without.has(providerId),
    addresses: readAddresses(parts),
  };
}

function includedPart(from: SourceDocument, named: Path, name: string): Part {
  const [document, second] = from.open(name, named);
  if (document === undefined) throw new FixtureFault(from.placeOf(named), `${name} is empty.`);
  if (second !== undefined) throw new FixtureFault(second.placeOf([]), 'An included file holds one document.');
  const given = checkedShape(validateFixtureGiven, document);
  if (given.include !== undefined) {
    throw new FixtureFault(document.placeOf(['include']), 'An included file includes nothing itself.');
  }
  return { document, below: [], given };
}

const sliceOf = (catalog: FixtureGiven['catalog']) => (typeof catalog === 'string' ? undefined : catalog);

function catalogFrom(parts: readonly Part[], realCatalog: () => Catalog): Catalog {
  const slices: WrittenSlice[] = [];
  let real: Place | undefined;
  for (const { document, below, given } of parts) {
    const { catalog } = given;
    if (catalog === undefined) continue;
    const at = [...below, 'catalog'];
    if (typeof catalog !== 'string') slices.push({ document, below: at, slice: catalog });
    else if (catalog === 'real') real = document.placeOf(at);
    else throw new FixtureFault(document.placeOf(at), 'A catalogue is `real`, or holds models.');
  }
  if (real === undefined) return sliceCatalog(slices);
  if (slices.length > 0) throw new FixtureFault(real, 'The catalogue is either `real` or a slice, not both.');
  return realCatalog();
}

function readAddresses(parts: readonly Part[]): Map<string, string | null> {
  const addresses = new Map<string, string | null>();
  for (const { document, below, given } of parts) {
    for (const [name, connection] of Object.entries(given.addresses ?? {})) {
      const at = [...below, 'addresses', name];
      if (addresses.has(name)) throw new FixtureFault(document.placeOf(at), `The address "${name}" is given twice.`);
      addresses.set(name, addressOf(document, at, connection));
    }
  }
  return addresses;
}

function addressOf(document: SourceDocument, at: Path, connection: FixtureConnection): string | null {
  const { forwardedFor, socket, trustedProxies } = connection;
  return clientAddress({
    forwardedFor,
    socketAddress: socket,
    trustedProxies:
      trustedProxies === undefined
        ? undefined
        : readProxies(document, [...at, 'trustedProxies'], listOf(trustedProxies)),
  });
}

/** As `TRUSTED_PROXIES` is read: ranges, or the word `none`. @throws FixtureFault */
export function readProxies(document: SourceDocument, at: Path, written: readonly string[]): TrustedProxies {
  try {
    return written.length === 1 && written[0] === 'none' ? [] : written.map(parseRange);
  } catch (error) {
    if (!(error instanceof InvalidRangeError)) throw error;
    throw new FixtureFault(document.placeOf(at), error.message);
  }
}
