import { Document, isPair, isScalar, visit } from 'yaml';
import type { Fixture } from '../../generated/types.ts';

/** Names above the prices of a mapping: given, catalog, custom, its id. */
const PRICES_DEPTH = 3;

/** Fixtures as the text of one YAML file; lists of plain values, and prices, stand in one line each. */
export function fixtureText(fixtures: readonly Fixture[], header: string): string {
  const documents = fixtures.map((fixture) => {
    const document = new Document(fixture, { aliasDuplicateObjects: false });
    visit(document, {
      Seq(_key, list) {
        if (list.items.every(isScalar)) list.flow = true;
      },
      Map(_key, map, path) {
        const { length } = path.filter(isPair);
        if (length > PRICES_DEPTH && map.items.every(({ value }) => isScalar(value))) map.flow = true;
      },
    });
    return document.toString({ lineWidth: 120, flowCollectionPadding: false });
  });
  return `${header.replaceAll(/^/gm, '# ')}\n${documents.join('---\n')}`;
}
