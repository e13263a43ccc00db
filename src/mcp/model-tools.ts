import type { CallToolResult } from '@modelcontextprotocol/server';
import schema from '../../schemas/mcp/chat.json' with { type: 'json' };
import imageModelOverview from '../../schemas/mcp/image-model-overview.json' with { type: 'json' };
import imageModelsSchema from '../../schemas/mcp/list-image-models.json' with { type: 'json' };
import modelsSchema from '../../schemas/mcp/list-models.json' with { type: 'json' };
import modelOverview from '../../schemas/mcp/model-overview.json' with { type: 'json' };
import type { ModelListOptions } from '../catalog/model-list.ts';
import { completeChat } from '../core/chat.ts';
import type { CoreContext } from '../core/core-context.ts';
import type { ListModels } from '../core/list-models.ts';
import { formatUsdPerMillion, parseUsd } from '../domain/limits.ts';
import type { ImageModelOverview, Model, ModelOverview } from '../generated/types.ts';
import { validator } from '../lib/schemas.ts';
import {
  defineTool,
  field,
  type McpTool,
  readAnswer,
  type ToolCaller,
  type ToolFacts,
  text,
  usageMeta,
} from './tool.ts';

const validateChatArguments = validator('ChatArguments');
const validateModelList = validator('ModelList');

export const CHAT: ToolFacts = { name: 'chat', title: 'Chat', schema, isReadOnly: false };

/** `chat`: the same call as `POST /v1/chat/completions`, answered with the text of the first choice. */
export const chatTool = (app: CoreContext): McpTool =>
  defineTool(CHAT, validateChatArguments, async ({ principal, context, takeRate }, args): Promise<CallToolResult> => {
    takeRate('chat');
    const outcome = await completeChat(app, principal, context, args);
    if (outcome.kind === 'stream') throw new Error('a chat that was not to be streamed was streamed');
    const answer = readAnswer(outcome.completion);
    const message = field(field(field(answer, 'choices'), 0), 'message');
    const [content, refusal] = [field(message, 'content'), field(message, 'refusal')];
    const said = typeof content === 'string' && content !== '' ? content : refusal;
    const { model, usage, metadata } = outcome.completion.ours;
    return {
      content: [text(typeof said === 'string' ? said : '')],
      _meta: { 'portcullis/model': model, 'portcullis/usage': usageMeta(usage), 'portcullis/metadata': metadata },
    };
  });

export const LIST_MODELS: ToolFacts = {
  name: 'list-models',
  title: 'List models',
  schema: modelsSchema,
  resultSchema: modelOverview,
  isReadOnly: true,
};
export const LIST_IMAGE_MODELS: ToolFacts = {
  name: 'list-image-models',
  title: 'List image models',
  schema: imageModelsSchema,
  resultSchema: imageModelOverview,
  isReadOnly: true,
};

type ListedModel = ModelOverview['models'][number];
type ListedImageModel = ImageModelOverview['models'][number];

/** `list-models` and `list-image-models`: the list of `GET /v1/models`, as short as a model that reads it would want it. */
export const modelTools = (listModels: ListModels): readonly McpTool[] => [
  listModelsTool(listModels),
  listImageModelsTool(listModels),
];

const listModelsTool = (listModels: ListModels): McpTool =>
  defineTool(
    LIST_MODELS,
    validator('ListModelsArguments'),
    async (caller, { include_deactivated, exclude_deprecated, limit = 20, family }): Promise<CallToolResult> => {
      const models = await usableModels(listModels, caller, {
        includeDeactivated: include_deactivated === true,
        excludeDeprecated: exclude_deprecated === true,
      });
      const found = models.filter(({ owned_by }) => family === undefined || owned_by === family.toLowerCase());
      const overview = { models: found.slice(0, limit).map(listedModel), total: found.length };
      return { content: [text(JSON.stringify(overview))], structuredContent: overview };
    },
  );

const listImageModelsTool = (listModels: ListModels): McpTool =>
  defineTool(LIST_IMAGE_MODELS, validator('ListImageModelsArguments'), async (caller): Promise<CallToolResult> => {
    const models = await usableModels(listModels, caller, { includeDeactivated: false, excludeDeprecated: false });
    const listed = models
      .filter(({ architecture }) => architecture.output_modalities.includes('image'))
      .map(listedImageModel);
    const lines = listed.map((model) => `- ${model.id}: ${model.description} ${priceText(model)}`);
    return {
      content: [text(lines.length === 0 ? 'This key can use no image model.' : lines.join('\n'))],
      structuredContent: { models: listed },
    };
  });

async function usableModels(
  listModels: ListModels,
  { principal, context: { clientIp }, takeRate }: ToolCaller,
  options: Pick<ModelListOptions, 'includeDeactivated' | 'excludeDeprecated'>,
): Promise<readonly Model[]> {
  takeRate('models');
  const { list } = await listModels({ principal, clientIp }, { ...options, noTraining: false, mapped: false });
  const parsed: unknown = JSON.parse(list.bytes.toString());
  if (!validateModelList(parsed)) throw new Error('the list of models is not what its schema says');
  return parsed.data;
}

const perMillion = (usdPerToken: string): string => formatUsdPerMillion(parseUsd(usdPerToken));

function listedModel(model: Model): ListedModel {
  const { pricing, architecture } = model;
  return {
    id: model.id,
    name: model.name ?? model.id,
    family: model.owned_by,
    input: architecture.input_modalities,
    output: architecture.output_modalities,
    free: model.free,
    ...(pricing.prompt === undefined ? {} : { input_price: perMillion(pricing.prompt) }),
    ...(pricing.completion === undefined ? {} : { output_price: perMillion(pricing.completion) }),
    ...feesOf(model),
    ...(model.context_length === undefined ? {} : { context_length: model.context_length }),
    ...(model.max_output === undefined ? {} : { max_output: model.max_output }),
    ...(model.deprecated_at === undefined ? {} : { deprecated_at: model.deprecated_at }),
    ...(model.deactivated_at === undefined ? {} : { deactivated_at: model.deactivated_at }),
  };
}

function listedImageModel(model: Model): ListedImageModel {
  const { id, description = '', pricing } = model;
  const perToken = pricing.output_image ?? pricing.completion;
  const fees = feesOf(model);
  return {
    id,
    description,
    ...fees,
    ...(perToken === undefined || fees.image_price !== undefined ? {} : { output_price: perMillion(perToken) }),
  };
}

const feesOf = ({ pricing }: Model): Pick<ListedModel, 'image_price' | 'request_price'> => ({
  ...(pricing.per_image?.default === undefined ? {} : { image_price: pricing.per_image.default }),
  ...(pricing.request === undefined ? {} : { request_price: pricing.request }),
});

function priceText({ image_price, request_price, output_price }: ListedImageModel): string {
  const prices = [
    ...(request_price === undefined ? [] : [`${request_price} USD per request`]),
    ...(image_price === undefined ? [] : [`${image_price} USD per image`]),
    ...(output_price === undefined ? [] : [`${output_price} USD per million output tokens`]),
  ];
  return `Price: ${prices.length === 0 ? 'unknown' : prices.join(' + ')}.`;
}
