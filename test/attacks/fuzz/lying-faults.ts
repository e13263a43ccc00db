// Upstreams that lie: they may say or charge more than was asked for. No key whose cap is checked meets them.
import { textOf } from './answers.ts';
import { type Exchange, type Fault, say } from './exchange.ts';
import { mutate, oddValue, written } from './json.ts';

/** Each value in the answer, or in one of its events, may be another. */
function mutated({ random, answer }: Exchange): string {
  if (answer.type === 'whole') return written(mutate(random, structuredClone(answer.body)));
  const events = answer.events.map(({ event, data }) => ({
    ...(event === undefined ? {} : { event }),
    data: typeof data === 'string' || random.chance(0.5) ? data : mutate(random, structuredClone(data), 1),
  }));
  if (random.chance(0.2)) events.reverse();
  if (random.chance(0.2)) events.splice(random.between(0, events.length - 1), 1);
  if (random.chance(0.2)) events.push(...events);
  return textOf({ type: 'events', events }, written);
}

const COUNTS =
  /"((?:prompt|completion|total|input|output|cached|reasoning|candidates|thoughts)_?\w*(?:tokens|TokenCount))":\d+/g;

/** Counts that are wrong, in number or in kind. */
const miscounted = ({ random, answer }: Exchange): string =>
  textOf(answer).replace(COUNTS, (_, name: string) => {
    const count = random.pick<unknown>([
      0,
      -1,
      1.5,
      2 ** 31,
      2 ** 53,
      1e15,
      1e300,
      1_000_000,
      '5',
      null,
      true,
      {},
      [5],
      oddValue(random),
    ]);
    return `"${name}":${written(count)}`;
  });

/** Tool calls in an order and of numbers that no client expects. */
function misordered({ random, answer }: Exchange): string {
  const call = (index: unknown, fields: object): object => ({
    id: 'c',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { tool_calls: [{ index, ...fields }] }, finish_reason: null }],
  });
  const events = Array.from({ length: random.between(1, 50) }, () => ({
    data: call(
      random.pick([0, 1, 5, -1, 1e9, 1.5, '0', null]),
      random.pick<object>([
        { function: { arguments: '{"a"' } },
        { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } },
        { id: 'call_1', type: 'odd' },
        { function: null },
        {},
      ]),
    ),
  }));
  return textOf({ type: 'events', events }) + textOf(answer);
}

const manyChoices = ({ random, answer }: Exchange): string => {
  const count = random.pick([9, 129, 2000]);
  const choice = (index: number): object => ({
    index,
    message: { role: 'assistant', content: 'x' },
    delta: { content: 'x' },
    finish_reason: 'stop',
  });
  const body = { object: 'chat.completion', choices: Array.from({ length: count }, (_, index) => choice(index)) };
  return answer.type === 'whole'
    ? JSON.stringify(body)
    : textOf({ type: 'events', events: [{ data: body }, ...answer.events] });
};

export const LYING = {
  mutated: say(mutated),
  miscounted: say(miscounted),
  misordered: say(misordered),
  'of many choices': say(manyChoices),
} satisfies Record<string, Fault>;
