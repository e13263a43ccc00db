// The gateway keys of the attacked organization, and an oracle of what each may call: written by hand next to the rules.
import { BlockList, isIP } from 'node:net';
import type { KeyCreate, RuleCreate } from '../../../src/generated/types.ts';
import type { Served } from './served.ts';

/** A request that someone was sent. */
export interface Called extends Served {
  readonly action: 'chat' | 'image' | 'moderation';
  /** Of the client; undefined: unknown. */
  readonly address: string | undefined;
}

type Test = (called: Called) => boolean;

export interface KeySpec {
  readonly name: string;
  readonly limits?: Partial<KeyCreate>;
  /** Upstreams may charge it more than was asked for: its caps are not checked. */
  readonly mayBeLiedTo?: boolean;
  readonly owner?: 'worker';
  /** Made in the project whose keys share a budget. */
  readonly hasBudget?: boolean;
  /** Of another organization than the attacked one, with no rules at all. */
  readonly isForeign?: boolean;
  readonly rules?: readonly RuleCreate[];
  /** Beyond what the organization and the owner permit. */
  readonly permits: Test;
}

const anything: Test = () => true;
const not =
  (test: Test): Test =>
  (called) =>
    !test(called);
const all =
  (...tests: readonly Test[]): Test =>
  (called) =>
    tests.every((test) => test(called));
/** Rules on models and prices do not bear on moderation. */
const ofChats =
  (test: Test): Test =>
  (called) =>
    called.action === 'moderation' || test(called);
const named = (pattern: RegExp): Test => ofChats(({ names }) => names.some((name) => pattern.test(name)));
const notNamed = (pattern: RegExp): Test => ofChats(({ names }) => !names.some((name) => pattern.test(name)));
const at =
  (...providers: readonly string[]): Test =>
  ({ provider }) =>
    providers.includes(provider);

function inside(...ranges: readonly (readonly [string, number, 'ipv4' | 'ipv6'])[]): Test {
  const list = new BlockList();
  for (const range of ranges) list.addSubnet(...range);
  return ({ address }) => address !== undefined && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}
const known: Test = ({ address }) => address !== undefined;

const HOUR = { periodUsageDurationValue: 1, periodUsageDurationUnit: 'hour' } as const;

export const OPEN: KeySpec = { name: 'open', mayBeLiedTo: true, permits: anything };

/** Of a project: what its keys may spend together. */
export const BUDGET = { usageLimit: '2', periodUsageLimit: '0.3', ...HOUR };

/** Every attempt of a call with one of these is judged. */
export const KEYS: readonly [KeySpec, ...KeySpec[]] = [
  OPEN,
  { name: 'small cap', limits: { usageLimit: '0.01' }, permits: anything },
  { name: 'large cap', limits: { usageLimit: '5' }, permits: anything },
  { name: 'recurring cap', hasBudget: true, limits: { periodUsageLimit: '0.05', ...HOUR }, permits: anything },
  { name: 'both caps', limits: { usageLimit: '0.2', periodUsageLimit: '0.1', ...HOUR }, permits: anything },
  { name: 'overcharged', limits: { usageLimit: '1' }, mayBeLiedTo: true, permits: anything },
  {
    name: 'no opus',
    hasBudget: true,
    rules: [{ ruleType: 'deny_models', ruleValue: { models: ['claude-opus*', 'pricey', 'alpha/shared', 'own/*'] } }],
    permits: notNamed(/^claude-opus|^pricey$|^alpha\/shared$|^own\//),
  },
  {
    name: 'few models',
    hasBudget: true,
    limits: { usageLimit: '0.5' },
    rules: [
      { ruleType: 'allow_models', ruleValue: { models: ['shared', 'own/*'] } },
      { ruleType: 'allow_models', ruleValue: { models: ['gpt-5.2', 'gpt-image*'] } },
    ],
    permits: named(/^shared$|^own\/|^gpt-5\.2$|^gpt-image/),
  },
  {
    name: 'not alpha',
    rules: [{ ruleType: 'deny_providers', ruleValue: { providers: ['alpha', 'custom:own', 'sandbox'] } }],
    permits: not(at('alpha', 'own', 'sandbox')),
  },
  {
    name: 'two providers',
    rules: [{ ruleType: 'allow_providers', ruleValue: { providers: ['beta', 'anthropic'] } }],
    permits: at('beta', 'anthropic'),
  },
  {
    name: 'cheap',
    rules: [{ ruleType: 'allow_pricing', ruleValue: { maxInputPrice: '1.5', maxOutputPrice: '10' } }],
    permits: ofChats(
      ({ price: [input, output] }) => input !== undefined && output !== undefined && input <= 1.5 && output <= 10,
    ),
  },
  {
    name: 'free',
    mayBeLiedTo: true,
    rules: [{ ruleType: 'allow_pricing', ruleValue: { pricingType: 'free' } }],
    permits: ofChats(({ free }) => free),
  },
  {
    name: 'nothing expensive',
    rules: [
      { ruleType: 'deny_pricing', ruleValue: { maxOutputPrice: '15' } },
      { ruleType: 'deny_providers', ruleValue: { providers: ['custom'] } },
    ],
    permits: all(
      ofChats(({ price: [, output] }) => output !== undefined && output <= 15),
      ({ custom }) => !custom,
    ),
  },
  {
    name: 'from inside',
    hasBudget: true,
    rules: [{ ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8', '2001:db8::/32'] } }],
    permits: inside(['10.0.0.0', 8, 'ipv4'], ['2001:db8::', 32, 'ipv6']),
  },
  {
    name: 'not from there',
    rules: [{ ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24', '2001:db8:bad::/48'] } }],
    permits: all(known, not(inside(['192.0.2.0', 24, 'ipv4'], ['2001:db8:bad::', 48, 'ipv6']))),
  },
  { name: 'of the worker', owner: 'worker', mayBeLiedTo: true, permits: anything },
  {
    name: 'of the worker, few',
    owner: 'worker',
    limits: { usageLimit: '0.3' },
    rules: [
      { ruleType: 'allow_models', ruleValue: { models: ['gemini*', 'alpha/*', 'claude-haiku*'] } },
      { ruleType: 'deny_models', ruleValue: { models: ['solo'] } },
    ],
    permits: all(named(/^gemini|^alpha\/|^claude-haiku/), notNamed(/^solo$/)),
  },
];

export const ORGANIZATION_RULE: RuleCreate = { ruleType: 'deny_models', ruleValue: { models: ['gpt-6-sol'] } };
const ofOrganization = notNamed(/^gpt-6-sol$/);

export const WORKER_RULE: RuleCreate = { ruleType: 'deny_providers', ruleValue: { providers: ['google', 'beta'] } };
const ofWorker = not(at('google', 'beta'));

/** Whether all rules that bind the key permit a call. */
export const mayCall = ({ permits, owner, isForeign = false }: KeySpec, called: Called): boolean =>
  (isForeign || ofOrganization(called)) && (owner !== 'worker' || ofWorker(called)) && permits(called);

/** The client's address as the specification has it: the first entry of the header, if it is plainly one. */
export function clientAddress(forwardedFor: readonly string[]): string | undefined {
  const first = (forwardedFor.join(',').split(',')[0] ?? '').replace(/^[ \t]+|[ \t]+$/g, '');
  return isIP(first) === 0 || first.includes('%') ? undefined : first;
}
