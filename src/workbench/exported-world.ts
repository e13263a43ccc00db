import type { Catalog } from '../catalog/catalog.ts';
import { locating } from './fixture-shape.ts';
import { FixtureFault, type FixtureSources } from './fixture-source.ts';
import type { World } from './world.ts';
import { readWorldDocument } from './world-document.ts';

/** The world that an exported document holds. @param file absolute path @throws FixtureFault */
export function readExportedWorld(sources: FixtureSources, file: string, catalog: Catalog): World {
  const [document] = sources.read(file);
  if (document === undefined) throw new FixtureFault({ file, line: 1, column: 1 }, 'The file is empty.');
  return locating(document, [], () => readWorldDocument(document.value, catalog));
}
