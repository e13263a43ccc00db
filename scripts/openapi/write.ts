// Writes the OpenAPI documents of both listeners, as they are served, into a folder: `scripts/openapi/write.ts <folder>`.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { openApiDocument } from '../../src/http/operations/description.ts';

const [folder = '.'] = process.argv.slice(2);
for (const name of ['gateway', 'management'] as const) {
  writeFileSync(path.join(folder, `openapi-${name}.json`), JSON.stringify(openApiDocument(name), null, 2));
}
