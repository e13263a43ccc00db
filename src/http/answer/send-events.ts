import { WrittenAnswer } from '../../core/call/written-answer.ts';
import type { Telemetry } from '../../telemetry.ts';
import { isOurFault } from '../middleware/error-envelope.ts';
import type { AppContext } from '../state.ts';
import { type EventStreamOptions, writeEventStream } from './event-stream.ts';
import { inForm, type MetadataForm, writtenInForm } from './metadata-form.ts';

export interface SendEventsDeps {
  readonly telemetry: Telemetry;
  readonly keepAliveMs: number;
}

/** Answers a call with a stream of events, each with its `metadata` in a form. */
export const sendEvents = <Event extends { readonly metadata?: object }>(
  deps: SendEventsDeps,
  ctx: AppContext,
  events: AsyncIterable<Event | WrittenAnswer<Event>>,
  form: MetadataForm,
  { nameOf, end }: Pick<EventStreamOptions<Event>, 'nameOf' | 'end'>,
): Promise<void> =>
  sendFormed(deps, ctx, events, {
    ...(nameOf === undefined ? {} : { nameOf: (event) => nameOf(event instanceof WrittenAnswer ? event.ours : event) }),
    ...(end === undefined ? {} : { end }),
    formed: (event) => (event instanceof WrittenAnswer ? writtenInForm(event, form) : inForm(event, form)),
  });

/** Answers with a stream of events, each as `formed` gives it. */
export async function sendFormed<Chunk extends object>(
  { telemetry, keepAliveMs }: SendEventsDeps,
  ctx: AppContext,
  chunks: AsyncIterable<Chunk>,
  options: Pick<EventStreamOptions<Chunk>, 'formed' | 'nameOf' | 'end'>,
): Promise<void> {
  await writeEventStream(ctx.res, chunks, {
    ...options,
    signal: ctx.state.signal,
    keepAliveMs,
    onFailure(failure) {
      ctx.state.errorCode = failure.code;
      // The attempt logs a stream that a provider broke.
      if (isOurFault(failure)) telemetry.failure(ctx.state.requestId, failure);
    },
  });
  ctx.respond = false;
}
