import type { Catalog } from '../../catalog/catalog.ts';
import { locating } from '../fixtures/fixture-shape.ts';
import { FixtureFault, type FixtureSources, MAX_EXPORT_BYTES } from '../fixtures/fixture-source.ts';
import type { World } from '../world/world.ts';
import { readWorldDocument } from '../world/world-document.ts';

/** The world that an exported document holds. @param file absolute path @throws FixtureFault */
export function readExportedWorld(sources: FixtureSources, file: string, catalog: Catalog): World {
  const start = { file, line: 1, column: 1 };
  const [document] = sources.read(file, start, MAX_EXPORT_BYTES);
  if (document === undefined) throw new FixtureFault(start, 'The file is empty.');
  return locating(document, [], () => readWorldDocument(document.value, catalog));
}
