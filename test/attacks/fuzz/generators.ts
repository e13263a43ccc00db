// The generators by name, and how often each is drawn.

import * as addresses from './addresses.ts';
import type { Generator } from './calls.ts';
import * as calls from './calls.ts';
import * as headers from './headers.ts';
import { master } from './master.ts';
import { mcp, mcpDrawings } from './mcp.ts';
import { oauth, signIn } from './oauth.ts';
import { smuggling } from './smuggling.ts';
import * as sockets from './sockets.ts';

interface Drawn {
  readonly generator: Generator;
  readonly weight: number;
  /**
   * Steps at once. What takes much work is kept to little, or its mere volume would stop any server; what waits is kept to little, or
   * nobody is left for the rest. Default: as many as come.
   */
  readonly most?: number;
}

export const GENERATORS: Readonly<Record<string, Drawn>> = {
  chats: { generator: calls.chats, weight: 24 },
  answers: { generator: calls.answers, weight: 24 },
  images: { generator: calls.images, weight: 3 },
  drawings: { generator: calls.drawings, weight: 1, most: 2 },
  moderations: { generator: calls.moderations, weight: 3 },
  'rule-changes': { generator: calls.ruleChanges, weight: 3 },
  mcp: { generator: mcp, weight: 8 },
  'mcp-drawings': { generator: mcpDrawings, weight: 1, most: 2 },
  oauth: { generator: oauth, weight: 6 },
  'sign-in': { generator: signIn, weight: 3, most: 4 },
  'large-bodies': { generator: calls.largeBodies, weight: 1, most: 3 },
  'large-answers': { generator: calls.largeAnswers, weight: 1, most: 3 },
  headers: { generator: headers.headers, weight: 6 },
  addresses: { generator: addresses.addresses, weight: 6 },
  'long-headers': { generator: headers.longHeaders, weight: 3 },
  'long-addresses': { generator: addresses.longAddresses, weight: 3 },
  'model-lists': { generator: addresses.modelLists, weight: 2, most: 1 },
  master: { generator: master, weight: 12 },
  'chunked-bodies': { generator: sockets.chunkedBodies, weight: 2, most: 2 },
  'bodies-in-bytes': { generator: sockets.bodiesInBytes, weight: 2, most: 6 },
  pipelines: { generator: sockets.pipelines, weight: 1, most: 1 },
  'partial-requests': { generator: sockets.partialRequests, weight: 2, most: 3 },
  hoards: { generator: sockets.hoards, weight: 0.5, most: 1 },
  'slow-readers': { generator: sockets.slowReaders, weight: 1, most: 3 },
  smuggling: { generator: smuggling, weight: 3, most: 3 },
  'old-clients': { generator: sockets.oldClients, weight: 1, most: 2 },
};

export interface Named extends Drawn {
  readonly name: string;
}

/** Those with these names, separated by commas; without the others. @throws Error for a name that is none */
export function chosen(only: string | undefined, except: string | undefined): readonly [Named, ...Named[]] {
  const split = (names: string | undefined): string[] => names?.split(',').map((name) => name.trim()) ?? [];
  const unknown = [...split(only), ...split(except)].find((name) => GENERATORS[name] === undefined);
  if (unknown !== undefined)
    throw new Error(`"${unknown}" is no generator: they are ${Object.keys(GENERATORS).join(', ')}`);
  const [first, ...rest] = Object.entries(GENERATORS)
    .filter(([name]) => (only === undefined || split(only).includes(name)) && !split(except).includes(name))
    .map(([name, drawn]) => ({ name, ...drawn }));
  if (first === undefined) throw new Error('no generator is left');
  return [first, ...rest];
}
