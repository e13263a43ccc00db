import { readFileSync } from 'node:fs';
import type Router from '@koa/router';
import type { RequestState } from '../state.ts';

const generated = (name: string): Buffer => readFileSync(new URL(`../../generated/${name}`, import.meta.url));

/** `/openapi.json` and `/reference`: what this listener can do, for programs and for people. No key is needed. */
export function descriptionRoutes(router: Router<RequestState>, listener: 'gateway' | 'management'): void {
  const document = generated(`openapi-${listener}.json`);
  const page = generated(`reference-${listener}.html`);
  router.get('/openapi.json', (ctx) => {
    ctx.type = 'application/json';
    ctx.body = document;
  });
  router.get('/reference', (ctx) => {
    ctx.set('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'");
    ctx.type = 'text/html';
    ctx.body = page;
  });
}
