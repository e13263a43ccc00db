import { expect, it } from 'vitest';
import { LongTexts } from '../../src/net/event-stream.ts';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

it('long texts are put back where their stand-ins are, however deep, and forgotten when all of it is written', () => {
  const texts = new LongTexts();
  texts.add(
    new Map([
      ['one', Buffer.from('AAAA')],
      ['two', Buffer.from('BBBB')],
    ]),
  );
  texts.add(new Map([['three', Buffer.from('CCCC')]]));

  const pieces = texts.putBack(JSON.stringify({ a: 'data:two,', b: JSON.stringify({ c: ['one', 'two'] }) }));

  expect(JSON.parse(pieces.map(text).join(''))).toEqual({ a: 'data:BBBB,', b: '{"c":["AAAA","BBBB"]}' });
  expect(texts.putBack('"one"').map(text)).toEqual(['"', 'AAAA', '"']);
  texts.forgetPlaced();
  expect(texts.putBack('"one"').map(text)).toEqual(['"one"']);
  expect([texts.isEmpty, texts.bytes]).toEqual([false, 4]);
  texts.putBack('"three"');
  texts.forgetPlaced();
  expect([texts.isEmpty, texts.bytes]).toEqual([true, 0]);
});

it('are not looked at: their bytes are in the pieces as they are', () => {
  const picture = Buffer.alloc(1000, 'A');
  const texts = new LongTexts();
  texts.add(new Map([['picture', picture]]));

  expect(texts.putBack('{"url":"picture"}')[1]).toBe(picture);
});
