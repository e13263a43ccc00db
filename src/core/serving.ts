import { invalidRequest } from '../domain/errors.ts';
import type { Mapping } from '../domain/model.ts';
import type { PolicyInput } from '../generated/types.ts';
import type { Adapter } from '../providers/adapter.ts';
import type { Reach } from './reach.ts';

type Action = PolicyInput['action'];

/** What is asked of the models that an action takes, in the words of a refusal. */
const SERVICE: Readonly<Record<Action, string>> = {
  chat: 'complete chats',
  image: 'make images',
  moderation: 'moderate',
};

/** Whether what a model gives is what an action asks for. Models that draw complete chats too, with the picture in the message. */
const gives = ({ outputModalities }: Mapping, action: Action): boolean =>
  action === 'chat' ? !outputModalities.includes('moderation') : outputModalities.includes(action);

/** Whether a provider's wire format has the operation. */
const speaks = ({ images, moderations }: Adapter, action: Action): boolean =>
  action === 'chat' || (action === 'image' ? images : moderations) !== undefined;

/** The candidates that can serve the action. @throws ApiError 400 naming the model when there is none */
export function servingCandidates(
  candidates: readonly Mapping[],
  action: Action,
  reach: Reach,
  model: string,
): readonly Mapping[] {
  const serving = candidates.filter(
    (mapping) =>
      gives(mapping, action) && reach.targets(mapping).every(({ provider }) => speaks(provider.adapter, action)),
  );
  if (serving.length > 0) return serving;
  // The caller did not choose the model that moderates.
  throw invalidRequest(
    `The model \`${model}\` does not ${SERVICE[action]}.`,
    action === 'moderation' ? null : '/model',
  );
}
