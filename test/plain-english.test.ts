// What people read is plain English: texts in the sources, descriptions in the schemas, the pages, comments and names of tests.
// These words are refused there.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { pages, root } from './support/pages.ts';

/** Each with what a native speaker would write. */
const REFUSED: Readonly<Record<string, string>> = {
  'anew|afresh': 'again',
  beside: 'next to, or: also',
  'dear(?:er|est)?': 'expensive, most expensive',
  'who(?:m)?ever': 'anyone, everyone',
  'what (?:came|comes|becomes|became|has become|must become) of': 'the outcome, the result',
  whom: 'who, or the sentence turned round',
  somebody: 'someone',
  '(?:is|are|was|were) told': 'say who says what',
  'of no matter': 'ignored',
  'of late': 'recently',
  'one too many': 'more, beyond the limit',
  'as far as': 'if, unless',
  'all the same': 'still',
  'time-outs?': 'timeout',
  anybody: 'anyone',
  'for want of': 'for lack of',
  'brought along': 'its own',
  merely: 'only',
  'rules of now': 'the current rules',
  'means nobody': 'no key, member or group is called so',
  'say `?--[a-z-]+': 'pass',
  'whence|thereof|therein|hereby|lest|akin': 'plain words',
};

const PATTERN = new RegExp(`\\b(?:${Object.keys(REFUSED).join('|')})\\b`, 'i');

function filesIn(folder: string, ending: string): string[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => path.join(folder, name));
}

const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

/** `file: text` of each text of several words, comments left out. */
function textsOf(file: string): string[] {
  const code = read(file)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '');
  return [...code.matchAll(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`[^`]*`/g)]
    .map(([text]) => text)
    .filter((text) => text.includes(' '))
    .map((text) => `${file}: ${text}`);
}

/** All code but what is generated, and this list. */
const CODE = ['src', 'scripts', 'test']
  .flatMap((folder) => filesIn(folder, '.ts'))
  .filter((file) => !/generated|node_modules|plain-english/.test(file));

const refused = (lines: readonly string[]): string[] => lines.filter((line) => PATTERN.test(line));

it('the texts of the sources have none of the refused words', () => {
  const texts = filesIn('src', '.ts')
    .filter((file) => !file.startsWith(path.join('src', 'generated')))
    .flatMap(textsOf);
  expect(texts.length).toBeGreaterThan(1_000);
  expect(refused(texts)).toEqual([]);
});

it('the descriptions of the schemas have none', () => {
  const descriptions = filesIn('schemas', '.json').flatMap((file) =>
    [...read(file).matchAll(/"(?:description|title)": "((?:[^"\\]|\\.)*)"/g)].map(
      ([, text = '']) => `${file}: ${text}`,
    ),
  );
  expect(descriptions.length).toBeGreaterThan(500);
  expect(refused(descriptions)).toEqual([]);
});

it('the pages have none', () => {
  const sentences = [...pages].flatMap(([name, page]) =>
    page
      .replace(/^```[\s\S]*?^```$/gm, '')
      .split(/\n|(?<=[.:;]) /)
      .map((sentence) => `${name}: ${sentence}`),
  );
  expect(sentences.length).toBeGreaterThan(1_000);
  expect(refused(sentences)).toEqual([]);
});

it('the comments of all code have none', () => {
  const comments = CODE.flatMap((file) =>
    [...read(file).matchAll(/\/\*\*?[\s\S]*?\*\/|(?:^|\s)\/\/.*$/gm)].map(
      ([comment]) => `${file}: ${comment.replaceAll(/\s*\n\s*(?:\*|\/\/)?\s*/g, ' ').trim()}`,
    ),
  );
  expect(comments.length).toBeGreaterThan(4_000);
  expect(refused(comments)).toEqual([]);
});

it('the names of the tests have none', () => {
  const names = CODE.filter((file) => /\.(?:test|walk)\.ts$/.test(file)).flatMap((file) =>
    [...read(file).matchAll(/\b(?:it|test|describe)\b[^\n]*?\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g)].map(
      ([, , name]) => `${file}: ${name}`,
    ),
  );
  expect(names.length).toBeGreaterThan(2_500);
  expect(refused(names)).toEqual([]);
});
