import { readFileSync } from 'node:fs';
import type { CommonId } from '../operations/common.ts';
import type { Handlers } from '../register.ts';

const generated = (name: string): Buffer => readFileSync(new URL(`../../generated/${name}`, import.meta.url));

/** `/openapi.json` and `/reference`: what this listener can do, for programs and for people. No key is needed. */
export function descriptionHandlers(listener: 'gateway' | 'management') {
  const document = generated(`openapi-${listener}.json`);
  const page = generated(`reference-${listener}.html`);
  return {
    getOpenApi: (ctx) => {
      ctx.type = 'application/json';
      ctx.body = document;
    },
    getReference: (ctx) => {
      ctx.set('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'");
      ctx.type = 'text/html';
      ctx.body = page;
    },
  } satisfies Partial<Handlers<CommonId>>;
}
