// Before each test file: no credential of the tester's is in the environment. After each test: nothing has tried to leave.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, expect } from 'vitest';

const OF_THE_TESTER = /^(UPSTREAM|OPENAI|ANTHROPIC|GEMINI|GOOGLE)_|_(API_KEY|BASE_URL|TOKEN|SECRET)$/;
for (const name of Object.keys(process.env)) if (OF_THE_TESTER.test(name)) delete process.env[name];

const file = path.join(tmpdir(), `portcullis-network-guard-${process.pid}.log`);
process.env.NETWORK_GUARD_LOG = file;

/** What this process, its workers and its children have tried since the last call. */
export function takeAttempts(): string[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  rmSync(file, { force: true });
  return lines;
}

function expectNoAttempts(): void {
  expect(takeAttempts(), 'attempts to leave this machine').toEqual([]);
}

afterEach(expectNoAttempts);
afterAll(expectNoAttempts);
