import { hash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { Document, visit } from 'yaml';
import ruleSchema from '../../../schemas/admin/iam-rule.json' with { type: 'json' };
import folderSchema from '../../../schemas/workbench/policy-folder.json' with { type: 'json' };
import { checkShape, type Explanation, pointerStep } from '../../domain/check-shape.ts';
import { invalidField } from '../../domain/errors.ts';
import type { FolderOwner, PolicyFolder } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import { locating } from '../fixtures/fixture-rules.ts';
import { FixtureFault, type FixtureSources, type Place, type SourceDocument } from '../fixtures/fixture-source.ts';

/** A folder's rules as one document, and where each part of it stands. */
export interface ReadFolder {
  readonly document: PolicyFolder;
  /** @param pointer JSON pointer into the document */
  placeOf(pointer: string): Place;
}

/** Also where a folder stands in a body, as its `folder`. */
export const FOLDER_EXPLANATIONS: readonly Explanation[] = [
  {
    at: /.\/rules\/[^/]*$/,
    must: 'must be a rule whose name is at most 64 letters, digits, dots and hyphens, the first of them a letter or a digit',
  },
  {
    at: /^(?:\/folder)?\/source$/,
    must: 'must be at most 128 letters, digits and . _ : @ / -, the first of them a letter or a digit',
  },
];

/**
 * Reads a document that states rules, by their owners' and their own names.
 * @param body unchecked.
 * @throws ApiError 400 at its first fault
 */
export const readFolderDocument = (body: unknown): PolicyFolder =>
  checkShape(validator('PolicyFolder'), body, FOLDER_EXPLANATIONS);

/** Every `.yaml` and `.yml` file in a folder but for hidden ones and those in hidden folders, or the file itself. Sorted. */
export function policyFiles(place: string): string[] {
  if (!statSync(place).isDirectory()) return [place];
  const files = readdirSync(place, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name.startsWith('.')) return [];
    const inside = path.join(place, entry.name);
    if (entry.isDirectory()) return policyFiles(inside);
    return /\.ya?ml$/.test(entry.name) ? [inside] : [];
  });
  return files.sort();
}

/**
 * The rules that a folder, or one file, states. What a rule says is not checked.
 * @param place absolute path, which is there. @param sources reads the files. @returns the faults of its files, if there are any
 */
export function readPolicyFolder(
  place: string,
  sources: FixtureSources,
): ReadFolder | { readonly faults: readonly FixtureFault[] } {
  const files = policyFiles(place);
  const faults: FixtureFault[] = [];
  const start: Place = { file: files[0] ?? place, line: 1, column: 1 };
  if (files.length === 0) return { faults: [new FixtureFault(start, 'The folder holds no .yaml or .yml file.')] };
  const merged = new MergedFolder();
  for (const file of files) {
    try {
      for (const document of sources.read(file)) merged.add(document);
    } catch (error) {
      if (!(error instanceof FixtureFault)) throw error;
      faults.push(error);
    }
  }
  if (faults.length > 0) return { faults };
  return { document: merged.document, placeOf: (pointer) => merged.placeOf(pointer) ?? start };
}

type Named = Exclude<keyof PolicyFolder, 'source' | 'organization'>;

const NAMED: Readonly<Record<Named, Named>> = { groups: 'groups', members: 'members', keys: 'keys' };

/** The parts of a folder that state owners by name, in its order. */
export const NAMED_PARTS: readonly Named[] = Object.values(NAMED);

type Owners = Map<string, FolderOwner>;

/** Documents put together. */
class MergedFolder {
  readonly #parts: SourceDocument[] = [];
  #source: string | undefined;
  #organization: FolderOwner | undefined;
  readonly #named: Readonly<Record<Named, Owners>> = {
    groups: new Map(),
    members: new Map(),
    keys: new Map(),
  };

  /** @throws FixtureFault for what is no part of a folder, or stands in another document too */
  add(document: SourceDocument): void {
    locating(document, [], () => {
      const { source, organization, ...named } = readFolderDocument(document.value);
      if (source !== undefined) this.#addSource(source);
      if (organization !== undefined) {
        this.#organization = together(this.#organization, organization, '/organization');
      }
      for (const part of NAMED_PARTS) {
        const owners = this.#named[part];
        for (const [name, owner] of Object.entries(named[part] ?? {})) {
          owners.set(name, together(owners.get(name), owner, `/${part}/${pointerStep(name)}`));
        }
      }
    });
    this.#parts.push(document);
  }

  get document(): PolicyFolder {
    const named = NAMED_PARTS.filter((part) => this.#named[part].size > 0).map(
      (part): PolicyFolder => ({
        [part]: Object.fromEntries(this.#named[part]),
      }),
    );
    return {
      ...(this.#source === undefined ? {} : { source: this.#source }),
      ...(this.#organization === undefined ? {} : { organization: this.#organization }),
      ...Object.assign({}, ...named),
    };
  }

  #addSource(source: string): void {
    this.#source ??= source;
    if (this.#source === source) return;
    throw invalidField('/source', `is "${this.#source}" in another file`, { quoted: `"${source}"` });
  }

  /** Place of the deepest part of the pointer that exists. */
  placeOf(pointer: string): Place | undefined {
    const steps = pointer
      .split('/')
      .slice(1)
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    for (let depth = steps.length; depth > 0; depth -= 1) {
      const wanted = steps.slice(0, depth);
      const found = this.#parts.find(({ value }) => holds(value, wanted));
      if (found !== undefined) return found.placeOf(steps);
    }
    return undefined;
  }
}

function together(first: FolderOwner | undefined, second: FolderOwner, pointer: string): FolderOwner {
  const known = new Map(Object.entries(first?.rules ?? {}));
  for (const [name, rule] of Object.entries(second.rules)) {
    const at = `${pointer}/rules/${name}`;
    if (known.has(name)) throw invalidField(at, 'is stated in another file too');
    known.set(name, rule);
  }
  return { rules: Object.fromEntries(known) };
}

function holds(value: unknown, [step, ...rest]: readonly string[]): boolean {
  if (step === undefined) return true;
  return (
    typeof value === 'object' && value !== null && Object.hasOwn(value, step) && holds(Reflect.get(value, step), rest)
  );
}

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
