// The load where there is no wrk, in a process of its own: autocannon, every request with the next number in its body, or the same where the step is 0.
import autocannon from 'autocannon';

const env = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
};

const before = env('BENCH_BODY_BEFORE');
const after = env('BENCH_BODY_AFTER');
const digits = Number(env('BENCH_BODY_DIGITS'));
const step = Number(env('BENCH_BODY_STEP'));
let number = Number(env('BENCH_BODY_NUMBER'));
const headers = Object.fromEntries(
  env('BENCH_HEADERS')
    .split('\n')
    .map((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, colon), line.slice(colon + 2)];
    }),
);

const result = await autocannon({
  url: env('BENCH_URL'),
  connections: Number(env('BENCH_CONNECTIONS')),
  duration: Number(env('BENCH_SECONDS')),
  requests: [
    {
      method: 'POST',
      headers,
      setupRequest: (request) => {
        number += step;
        return { ...request, body: `${before}${String(number).padStart(digits, '0')}${after}` };
      },
    },
  ],
});
const failed = result.errors + result.non2xx;
process.stdout.write(`\nBENCH ${result['2xx']} ${Math.round(result.duration * 1e6)} ${failed}\n`);
