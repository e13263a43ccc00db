// Loaded before a gateway's own code (`--import`), for the bench alone: counts by step what calls cost, when the parent asks for it.
import { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  const { answerParent } = await import('./cost/probe-answers.ts');
  answerParent();
}
