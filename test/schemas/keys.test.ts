import { describe, expect, it } from 'vitest';
import type { KeyRecord } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';
import { faultOf } from './faults.ts';

const validateDeletion = validator('Deletion');
const validateKeyAnswer = validator('KeyAnswer');
const validateKeyCreate = validator('KeyCreate');
const validateKeyList = validator('KeyList');
const validateKeyPatch = validator('KeyPatch');
const validateUsdAmount = validator('UsdAmount');

const period = { periodUsageLimit: '10.5', periodUsageDurationValue: 1, periodUsageDurationUnit: 'month' };

const record: KeyRecord = {
  id: 'key_1',
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
  description: null,
  projectId: 'proj_1',
  createdBy: 'mem_1',
  createdByEmail: 'ada@example.com',
  kind: 'regular',
  status: 'active',
  state: 'limit_reached',
  maskedToken: 'pcl_abcd…wxyz',
  expiresAt: null,
  usageLimit: '0',
  usage: '0',
  periodUsageLimit: null,
  periodUsageDurationValue: null,
  periodUsageDurationUnit: null,
  periodUsageAlignment: null,
  currentPeriodUsage: null,
  currentPeriodStartedAt: null,
  currentPeriodResetAt: null,
  lastUsedAt: null,
  previousTokenEndsAt: null,
  tags: [],
  sharesLimitsOf: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
};

describe('an amount', () => {
  it.each(['0', '12.5', '0.000000000001', '9000000', '10.50'])('may be %s', (text) => {
    expect(faultOf(validateUsdAmount, text)).toBe(null);
  });

  it.each(['', '-1', '+1', '1e3', '.5', '5.', '01', '1,5', ' 1', '1\n', '0.0000000000001', '10000000', 'Infinity'])(
    'is never "%s"',
    (text) => {
      expect(faultOf(validateUsdAmount, text)).toBe(' pattern');
    },
  );

  it('is never a number', () => {
    expect(faultOf(validateUsdAmount, 1)).toBe(' type');
  });
});

describe('the body that creates a key', () => {
  it.each<[string, unknown]>([
    ['a project alone', { projectId: 'proj_1' }],
    ['everything', { projectId: 'proj_1', description: 'CI', usageLimit: '100', ...period, createdBy: 'mem_1' }],
    ['no limits, said by null', { projectId: 'proj_1', description: null, usageLimit: null }],
  ])('may have %s', (_, value) => {
    expect(faultOf(validateKeyCreate, value)).toBe(null);
  });

  it.each<[string, unknown, string]>([
    ['without project', { description: 'CI' }, ' required projectId'],
    ['with a time to live', { projectId: 'proj_1', ttl: { value: 1, unit: 'days' } }, ' additionalProperties'],
    ['with an expiry', { projectId: 'proj_1', expiresAt: '2030-01-01T00:00:00Z' }, ' additionalProperties'],
    [
      'with a description that is too long',
      { projectId: 'proj_1', description: 'x'.repeat(257) },
      '/description maxLength',
    ],
    ['with a limit that is a number', { projectId: 'proj_1', usageLimit: 5 }, '/usageLimit type'],
    ['with a limit that is no decimal', { projectId: 'proj_1', usageLimit: '5 USD' }, '/usageLimit pattern'],
    ['with a third of a window', { projectId: 'proj_1', periodUsageLimit: '10' }, ' dependentRequired'],
    [
      'with an empty window',
      { projectId: 'proj_1', ...period, periodUsageDurationValue: 0 },
      '/periodUsageDurationValue minimum',
    ],
    [
      'with a window of 8761 units',
      { projectId: 'proj_1', ...period, periodUsageDurationValue: 8761 },
      '/periodUsageDurationValue maximum',
    ],
    [
      'with an unknown unit',
      { projectId: 'proj_1', ...period, periodUsageDurationUnit: 'year' },
      '/periodUsageDurationUnit enum',
    ],
  ])('is refused %s', (_, value, expected) => {
    expect(faultOf(validateKeyCreate, value)).toBe(expected);
  });
});

describe('the body that changes a key', () => {
  it.each<[string, unknown]>([
    ['the description', { description: 'CI' }],
    ['the status', { status: 'inactive' }],
    ['the amount of the recurring limit alone', { periodUsageLimit: '20' }],
    [
      'the limits to none',
      { usageLimit: null, periodUsageLimit: null, periodUsageDurationValue: null, periodUsageDurationUnit: null },
    ],
  ])('may change %s', (_, value) => {
    expect(faultOf(validateKeyPatch, value)).toBe(null);
  });

  it.each<[string, unknown, string]>([
    ['empty', {}, ' minProperties'],
    ['with an expiry', { expiresAt: '2030-01-01T00:00:00Z' }, ' additionalProperties'],
    ['with another project', { projectId: 'proj_2' }, ' additionalProperties'],
    ['with an unknown status', { status: 'disabled' }, '/status enum'],
  ])('is refused %s', (_, value, expected) => {
    expect(faultOf(validateKeyPatch, value)).toBe(expected);
  });
});

describe('answers about keys', () => {
  it('carry every field, the secret only where it is made', () => {
    expect(faultOf(validateKeyAnswer, { key: record })).toBe(null);
    expect(faultOf(validateKeyAnswer, { key: { ...record, token: 'pcl_secret' } })).toBe(null);
    for (const field of Object.keys(record)) {
      expect(faultOf(validateKeyAnswer, { key: { ...record, [field]: undefined } })).toBe(`/key required ${field}`);
    }
  });

  it('carry nothing else', () => {
    expect(faultOf(validateKeyAnswer, { key: { ...record, tokenHash: 'x' } })).toBe('/key additionalProperties');
  });

  it('list keys with a cursor', () => {
    expect(faultOf(validateKeyList, { keys: [record], nextCursor: null })).toBe(null);
    expect(faultOf(validateKeyList, { keys: [record] })).toBe(' required nextCursor');
  });

  it('confirm a deletion', () => {
    expect(faultOf(validateDeletion, { id: 'key_1', deleted: true })).toBe(null);
    expect(faultOf(validateDeletion, { id: 'key_1', deleted: false })).toBe('/deleted const');
  });
});
