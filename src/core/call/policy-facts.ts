import type { Mapping } from '../../domain/model.ts';
import type { ChatRequest, PolicyFacts, PolicyTime } from '../../generated/types.ts';
import type { Demand } from '../price/demand.ts';
import { boundOf, mostOf } from '../price/worst-case.ts';
import type { CallFacts } from './call.ts';

/** What a request asks for. */
export interface Asked {
  readonly demand: Demand;
  /** Of the functions that the model may call. */
  readonly toolNames: readonly string[];
}

/** Names of the functions and custom tools that a chat offers to the model. */
export const toolNames = ({ tools, functions }: ChatRequest): string[] => [
  ...(tools ?? []).flatMap(({ function: offered, custom }) => [offered?.name ?? [], custom?.name ?? []].flat()),
  ...(functions ?? []).map(({ name }) => name),
];

/** The facts of the request itself. */
export type RequestFacts = Omit<PolicyFacts, 'key_tags'>;

/** What a policy that takes facts sees of a request (`schemas/policy/input.json`). @param now epoch ms */
export function requestFacts(
  now: number,
  { context, stream }: CallFacts,
  { demand, toolNames }: Asked,
  candidates: readonly Mapping[],
): RequestFacts {
  return {
    time: policyTime(now),
    door: context.tool === undefined ? 'rest' : 'mcp',
    stream,
    text_bytes: demand.textTokens,
    modalities: [...(demand.hasAudio ? (['audio'] as const) : []), ...(demand.hasPictures ? (['image'] as const) : [])],
    tool_names: [...toolNames],
    worst_case_cost: worstCases(candidates, demand),
    meta: { ...context.findMeta?.() },
  };
}

/** Pico-dollars in a millionth of a dollar. */
const MICRO = 1_000_000n;

/** By candidate id, in millionths of a US dollar, rounded up; one whose price is unknown is missing. */
export const worstCases = (candidates: readonly Mapping[], demand: Demand): Record<string, number> =>
  Object.fromEntries(candidates.flatMap((mapping) => worstCaseAt(mapping, demand)));

function worstCaseAt(mapping: Mapping, demand: Demand): [id: string, microDollars: number][] {
  const bound = boundOf(mapping, demand);
  if (bound === undefined) return [];
  return [[mapping.id, Number((mostOf(bound) + MICRO - 1n) / MICRO)]];
}

const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const;

/** A moment in the parts that Rego in WebAssembly cannot take it apart into. @param now epoch ms */
export function policyTime(now: number): PolicyTime {
  const moment = new Date(now);
  return {
    unix: Math.floor(now / 1000),
    date: moment.toISOString().slice(0, 10),
    weekday: WEEKDAYS[moment.getUTCDay()] ?? 'sunday',
    hour: moment.getUTCHours(),
    minute: moment.getUTCMinutes(),
  };
}
