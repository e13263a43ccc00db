import { GENERATE_IMAGE, GENERATE_NANO_BANANA } from '../../src/mcp/image-tools.ts';
import { CHAT, LIST_IMAGE_MODELS, LIST_MODELS } from '../../src/mcp/model-tools.ts';
import { code, lines, table } from './markdown.ts';

export const toolTable = (): string =>
  table(
    ['Tool', 'What it does'],
    [CHAT, GENERATE_IMAGE, GENERATE_NANO_BANANA, LIST_MODELS, LIST_IMAGE_MODELS].map(({ name, schema }) => [
      code(name),
      lines(
        schema.description,
        Object.keys(schema.properties ?? {})
          .map(code)
          .join(', '),
      ),
    ]),
  );
