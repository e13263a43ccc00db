import { Document, isScalar, visit } from 'yaml';
import type { DraftRule } from '../../generated/types.ts';
import { plainText } from '../../lib/text.ts';

/** A draft as the text of a YAML file; lists stand in one line each. */
export function draftText(rules: readonly DraftRule[], header: string): string {
  const document = new Document({ rules });
  visit(document, {
    Seq(_key, list) {
      if (list.items.every(isScalar)) list.flow = true;
    },
  });
  return `# ${plainText(header)}\n${document.toString({ lineWidth: 120, flowCollectionPadding: false })}`;
}
