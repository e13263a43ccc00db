import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { systemClock } from '../../../src/domain/time.ts';
import { validator } from '../../../src/lib/schemas.ts';
import { POLICY_DIRECTORY } from '../../../src/policy/bundle.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { tarGz, writeExport } from '../../../src/workbench/export/export-archive.ts';
import { exportCases, exportFiles } from '../../../src/workbench/export/export-bundle.ts';
import { readFixtureFile } from '../../../src/workbench/fixtures/fixture-file.ts';
import { FixtureSources } from '../../../src/workbench/fixtures/fixture-source.ts';
import { propertyRuns } from '../../policy/property-runs.ts';

const validatePolicyInput = validator('PolicyInput');

const pdp = createPdp();

/** Two fixtures that call their keys alike; in the second one's last requests there is nobody to ask, and nothing to ask about. */
const FIXTURES = `
name: One
given:
  catalog: {models: {swift: {providers: {acme: {inputPricePerMillion: 1, outputPricePerMillion: 2}}}}}
  keys:
    ci: {rules: {no-swift: {deny_models: [swift]}}}
requests: {model: swift}
expect: [{deny: key deny_models}]
---
name: Two
given:
  catalog: {models: {swift: {providers: {acme: {}}}, slow: {providers: {idle: {}}}}, withoutCredential: idle}
  members:
    dev: {}
  keys:
    ci: {owner: dev, rules: {a: {allow_models: [swift]}}}
    lost: {unavailable: true}
requests: {model: [swift, slow], key: [ci, lost]}
expect:
  - {model: swift, key: ci, permit: all}
  - {model: swift, key: lost, error: unavailable}
  - {model: slow, error: not_found}
---
name: Three
skip: Not now.
given: {catalog: {models: {swift: {providers: {acme: {}}}}}}
requests: {model: swift}
expect: [{permit: all}]
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function exported() {
  const file = path.join(folder, 'fixtures.yaml');
  writeFileSync(file, FIXTURES);
  const realCatalog = () => createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
  const { fixtures, faults } = readFixtureFile(file, { sources: new FixtureSources(), realCatalog });
  expect(faults).toEqual([]);
  return exportCases(pdp, fixtures);
}

describe('exported fixtures', () => {
  it('are the inputs of all requests that ask the policy, with what it decides', () => {
    const { cases } = exported();
    expect(cases.map(({ name, decision }) => [name, decision.permitted, decision.violations.length])).toEqual([
      ['One: model=swift', [], 1],
      ['Two: key=ci model=swift', ['acme/swift'], 0],
      ['Two: key=lost model=swift', [], 0],
    ]);
    expect(cases.filter(({ input }) => !validatePolicyInput(input))).toEqual([]);
    expect(cases[0]?.input).toEqual({
      action: 'chat',
      client_ip: null,
      subjects: [
        { scope: 'organization', id: 'One / organization' },
        { scope: 'member', id: 'One / member who owns ci' },
        { scope: 'key', id: 'One / key ci' },
      ],
      candidates: [
        {
          id: 'acme/swift',
          names: ['swift', 'acme/swift'],
          provider_names: ['acme'],
          free: false,
          input_price: 1_000_000,
          output_price: 2_000_000,
        },
      ],
    });
  });

  it('keep subjects of one name apart, and leave out those whose rules cannot be had', () => {
    const { subjects } = exported();
    expect(subjects.map(({ id, rules }) => [id, rules === '{"enforce":{}}'])).toEqual([
      ['One / organization', true],
      ['One / member who owns ci', true],
      ['One / key ci', false],
      ['Two / organization', true],
      ['Two / member dev', true],
      ['Two / key ci', false],
      ['Two / member who owns lost', true],
    ]);
  });
});

describe('an export', () => {
  const filesOf = () =>
    exportFiles({ policyDirectory: POLICY_DIRECTORY, bundleDigest: pdp.bundleDigest, ...exported() });

  it('is the Rego as it was reviewed, the whole data document, inputs and decisions; no WASM and no Rego tests of ours', () => {
    const files = filesOf();
    expect([...files.keys()].filter((name) => !name.startsWith('gateway/'))).toEqual([
      '.manifest',
      'data.json',
      'cases/data.json',
      'cases_test/cases_test.rego',
      'inputs/0001.json',
      'inputs/0002.json',
      'inputs/0003.json',
    ]);
    const rego = [...files].filter(([name]) => name.startsWith('gateway/'));
    expect(rego.length).toBeGreaterThan(5);
    for (const [name, text] of rego) {
      expect(name).toMatch(/(?<!_test)\.rego$/);
      expect(text).toBe(readFileSync(path.join(POLICY_DIRECTORY, name), 'utf8'));
    }
    expect(JSON.parse(files.get('.manifest') ?? '')).toEqual({
      roots: ['gateway', 'subjects', 'cases', 'cases_test'],
      rego_version: 1,
      revision: pdp.bundleDigest,
    });
    expect(Object.keys(JSON.parse(files.get('data.json') ?? '').subjects)).toHaveLength(7);
    const first = JSON.parse(files.get('cases/data.json') ?? '')['0001'];
    expect(first.input).toEqual(JSON.parse(files.get('inputs/0001.json') ?? ''));
  });

  it('goes into a folder that is new or empty, and into no other', () => {
    const target = path.join(folder, 'deep', 'export');
    const files = filesOf();
    writeExport(target, files);
    const written = readdirSync(target, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(written).toHaveLength(files.size);
    expect(readFileSync(path.join(target, 'data.json'), 'utf8')).toBe(files.get('data.json'));
    expect(() => writeExport(target, files)).toThrow('is there already and is not an empty folder.');
    expect(() => writeExport(path.join(target, 'data.json'), files)).toThrow('is not an empty folder.');
  });

  it('is byte for byte the same archive each time', () => {
    const target = path.join(folder, 'export.tar.gz');
    writeExport(target, filesOf());
    expect(readFileSync(target)).toEqual(tarGz(filesOf()));
  });
});

describe('an archive', () => {
  /** Files of a tar archive, read by the format's description, checksums verified. */
  function untar(archive: Buffer): Map<string, string> {
    const files = new Map<string, string>();
    let offset = 0;
    for (; archive[offset] !== 0; ) {
      const header = archive.subarray(offset, offset + 512);
      const text = (from: number, length: number) => header.toString('utf8', from, from + length).replace(/\0.*$/s, '');
      const blanked = Buffer.from(header).fill(' ', 148, 156);
      expect(Number.parseInt(text(148, 8), 8)).toBe(blanked.reduce((sum, byte) => sum + byte, 0));
      expect([text(257, 6), text(156, 1)]).toEqual(['ustar', '0']);
      const size = Number.parseInt(text(124, 12), 8);
      files.set(text(0, 100), archive.toString('utf8', offset + 512, offset + 512 + size));
      offset += 512 + Math.ceil(size / 512) * 512;
    }
    expect([archive.length - offset, archive.subarray(offset).every((byte) => byte === 0)]).toEqual([1024, true]);
    return files;
  }

  it('holds its files, whatever is in them', () => {
    const name = fc.stringMatching(/^[a-z0-9_./]{1,100}$/);
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(name, fc.string({ unit: 'grapheme', maxLength: 1500 })), {
          selector: ([each]) => each,
        }),
        (files) => {
          expect(untar(gunzipSync(tarGz(new Map(files))))).toEqual(new Map(files));
        },
      ),
      propertyRuns(200),
    );
    expect(() => tarGz(new Map([['a'.repeat(101), '']]))).toThrow('too long a name');
  });
});
