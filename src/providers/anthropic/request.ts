import { createHash } from 'node:crypto';
import type { ChatRequest } from '../../generated/types.ts';
import type { ChatCall } from '../wire/adapter.ts';
import { namedFields } from '../wire/request-fields.ts';
import { notTakenByProvider } from '../wire/upstream-error.ts';
import { anthropicOptions } from './fields.ts';
import { answerFormat } from './format.ts';
import { conversation } from './messages.ts';
import { type ModelRules, modelRules } from './model.ts';
import { allowsManualThinking, planThinking } from './thinking.ts';
import { toolFields } from './tools.ts';

type Fields = Readonly<Record<string, unknown>>;

/** For a mapping whose largest output is unknown: every model of the API takes it. */
const DEFAULT_MAX_TOKENS = 4096;

/**
 * The body of a Messages request. What the API has no field for (fields.ts) is left out: it refuses fields that it does
 * not know. @throws UpstreamError `rejected` for content that it does not take
 */
export function messagesBody(call: ChatCall): Fields {
  const { request, mapping } = call;
  const own = anthropicOptions(request);
  const rules = modelRules(mapping.externalId);
  const { system, turns } = conversation(request.messages);
  if (!rules.prefill && turns.at(-1)?.role === 'assistant') {
    throw notTakenByProvider('The model cannot continue an assistant message: the last message must be another.');
  }
  const { format, tool: answerTool, instruction } = answerFormat(request.response_format, rules);
  const maxTokens = maxTokensOf(call);
  const plan = planThinking(
    {
      own: own.thinking,
      effort: request.reasoning_effort,
      reasons: mapping.reasoning,
      maxTokens,
      // The form of an answer is a promise and thinking a wish: a forced call and a budget exclude each other.
      manualAllowed: answerTool === undefined && allowsManualThinking(turns),
    },
    rules,
  );
  const { thinking, effort } = plan;
  const outputConfig = { ...(effort === undefined ? {} : { effort }), ...(format === undefined ? {} : { format }) };
  return {
    model: mapping.externalId,
    max_tokens: maxTokens,
    ...list('system', [...system, ...instruction]),
    messages: turns,
    ...toolFields(request, rules, { answerTool, forceable: rules.forcedTools && !plan.manual }),
    ...(thinking === undefined ? {} : { thinking }),
    ...object('output_config', { ...outputConfig, ...own.outputConfig }),
    ...sampling(request, own.topK, rules, plan.on),
    ...list('stop_sequences', stopSequences(request.stop)),
    ...metadata(request.safety_identifier ?? request.user),
    ...serviceTier(request.service_tier),
    ...own.body,
    ...namedFields(request, call.namedFields),
    ...(request.stream === true ? { stream: true } : {}),
  };
}

const list = (name: string, items: readonly unknown[]): Fields => (items.length === 0 ? {} : { [name]: items });

const object = (name: string, value: Fields): Fields => (Object.keys(value).length === 0 ? {} : { [name]: value });

/** What the model cannot write anyway is not asked for: the API would refuse it. */
function maxTokensOf({ request, mapping, maxOutputTokens }: ChatCall): number {
  const largest = mapping.maxOutput ?? DEFAULT_MAX_TOKENS;
  const wanted = maxOutputTokens ?? request.max_completion_tokens ?? request.max_tokens ?? largest;
  return mapping.maxOutput === undefined ? wanted : Math.min(wanted, mapping.maxOutput);
}

/**
 * What the API would refuse is left out: all of it by newer models; top_p with a temperature by others; temperature, top_k
 * and a top_p below 0.95 while thinking. A temperature above 1, the API's most, is 1.
 */
function sampling(
  { temperature, top_p: topP }: ChatRequest,
  topK: unknown,
  rules: ModelRules,
  thinks: boolean,
): Fields {
  if (rules.sampling === 'none') return {};
  if (thinks) return typeof topP === 'number' && topP >= 0.95 ? { top_p: topP } : {};
  const hot = typeof temperature === 'number' ? { temperature: Math.min(temperature, 1) } : {};
  const nucleus = typeof topP === 'number' ? { top_p: topP } : {};
  const top = topK == null ? {} : { top_k: topK };
  return rules.sampling === 'one' && 'temperature' in hot ? { ...hot, ...top } : { ...hot, ...nucleus, ...top };
}

/** Blanks alone are refused. */
function stopSequences(stop: ChatRequest['stop']): string[] {
  const texts = typeof stop === 'string' ? [stop] : (stop ?? []);
  return texts.filter((text) => text.trim() !== '');
}

/** The API refuses ids that look like an address or a telephone number, and long ones: those are hashed. */
function metadata(user: string | null | undefined): Fields {
  if (user == null || user === '') return {};
  const opaque = /^[A-Za-z0-9_.:-]{1,256}$/.test(user) && /[A-Za-z]/.test(user);
  return { metadata: { user_id: opaque ? user : createHash('sha256').update(user).digest('hex') } };
}

/** `default` is OpenAI's word for no priority; tiers that the API does not have are left to it. */
function serviceTier(tier: string | null | undefined): Fields {
  if (tier === 'default' || tier === 'standard_only') return { service_tier: 'standard_only' };
  return tier === 'auto' ? { service_tier: 'auto' } : {};
}
