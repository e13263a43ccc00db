import { hash } from 'node:crypto';
import { Document, visit } from 'yaml';
import ruleSchema from '../../../schemas/admin/iam-rule.json' with { type: 'json' };
import folderSchema from '../../../schemas/workbench/policy-folder.json' with { type: 'json' };
import type { FolderOwner, PolicyFolder } from '../../generated/types.ts';
import { NAMED_PARTS } from './policy-folder.ts';

/** The schema of a folder's files, for editors; it is none of them. */
const SCHEMA_FILE = 'policy-folder.schema.json';

/**
 * A folder as files, by their paths in it: one for the organization, one for each group, member and key, and the schema that editors
 * check them by. The same document gives the same files.
 */
export function folderFiles({ source, organization, ...named }: PolicyFolder): Map<string, string> {
  return new Map([
    [SCHEMA_FILE, `${JSON.stringify(editorSchema(), null, 2)}\n`],
    ['organization.yaml', yamlText(SCHEMA_FILE, { source, ...(organization === undefined ? {} : { organization }) })],
    ...NAMED_PARTS.flatMap((part) => ownerFiles(part, named[part] ?? {})),
  ]);
}

function ownerFiles(part: string, owners: Readonly<Record<string, FolderOwner>>): [string, string][] {
  const names = Object.keys(owners);
  const uses = Map.groupBy(names, fileName);
  return Object.entries(owners).map(([name, owner]) => {
    const base = fileName(name);
    // Names that look alike each get an end of their own.
    const isOnly = base !== '' && uses.get(base)?.length === 1;
    const file = isOnly ? base : [...(base === '' ? [] : [base]), hash('sha256', name).slice(0, 8)].join('-');
    return [`${part}/${file}.yaml`, yamlText(`../${SCHEMA_FILE}`, { [part]: { [name]: owner } })];
  });
}

/** Longer names are cut: file systems take 255 bytes. */
const LONGEST = 80;

/** Lower case, since some file systems know no other. */
const fileName = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9@_.+-]+/g, '-')
    .replace(/^[-.]+/, '')
    .slice(0, LONGEST);

function yamlText(schema: string, value: object): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, node) {
      // Unquoted it would mean a merge.
      if (node.value === '<<') node.type = 'QUOTE_DOUBLE';
    },
  });
  document.commentBefore = ` yaml-language-server: $schema=${schema}`;
  return document.toString({ lineWidth: 0 });
}

/** The schema in one piece: a rule of a folder is one as it is written to the API. */
function editorSchema(): unknown {
  const { $id: _id, $defs, ...folder } = folderSchema;
  const { $id: _rule, $schema: _dialect, title: _title, $defs: values, ...rule } = ruleSchema;
  return { ...folder, $defs: { ...$defs, ...values, rule } };
}
