import { type ApiError, invalidRequest } from '../../domain/errors.ts';
import type { Mapping } from '../../domain/model.ts';
import type { PolicyInput } from '../../generated/types.ts';
import type { Adapter } from '../../providers/wire/adapter.ts';
import type { Reach } from './reach.ts';

type Action = PolicyInput['action'];

/** What is asked of the models that an action takes, in the words of a refusal. */
const SERVICE: Readonly<Record<Action, string>> = {
  chat: 'complete chats',
  image: 'make images',
  moderation: 'moderate',
};

/** Whether what a model gives is what an action asks for. Models that draw complete chats too, with the picture in the message. */
export const gives = ({ outputModalities }: Mapping, action: Action): boolean =>
  action === 'chat' ? !outputModalities.includes('moderation') : outputModalities.includes(action);

/** Whether a provider's wire format has the operation. */
const speaks = ({ images, moderations }: Adapter, action: Exclude<Action, 'chat'>): boolean =>
  (action === 'image' ? images : moderations) !== undefined;

/** Whether a mapping can serve the action. All the ways to call it speak one wire format, and each of those completes chats. */
export const serves = (mapping: Mapping, action: Action, reach: Reach): boolean =>
  gives(mapping, action) &&
  (action === 'chat' || reach.targets(mapping).every(({ provider }) => speaks(provider.adapter, action)));

/** A request to a model that cannot serve it. The one that moderates was not chosen by the caller. */
export const doesNotServe = (model: string, action: Action): ApiError =>
  invalidRequest(`The model \`${model}\` does not ${SERVICE[action]}.`, action === 'moderation' ? null : '/model');
