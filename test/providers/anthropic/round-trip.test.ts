import { describe, expect, it } from 'vitest';
import type { ReasoningDetail } from '../../../src/generated/types.ts';
import { anthropicAdapter } from '../../../src/providers/anthropic/anthropic.ts';
import { gathered, sample, streamed } from '../answers.ts';
import { ADAPTIVE, HI, mappingTo, sent, text } from '../anthropic-calls.ts';

const results = ['toolu_01A', 'toolu_01B'].map((id) => ({ role: 'tool', tool_call_id: id, content: 'x' }));

/** What is sent when a client answers with this message and the results of its calls. */
const goingOn = (message: object) =>
  sent(
    { messages: [{ role: 'user', content: 'Hi' }, message, ...results], reasoning_effort: 'low' },
    { mapping: mappingTo(ADAPTIVE) },
  );

describe('an answer that a client sends back', () => {
  it('says what the provider said, block by block', () => {
    const [choice] = anthropicAdapter.parseResponse(gathered(sample('anthropic/tools.json'))).choices;
    const said: { content: { caller?: unknown }[] } = JSON.parse(sample('anthropic/tools.json'));
    const blocks = said.content.map(({ caller: _, ...block }) => block);
    expect(goingOn({ ...choice?.message })).toMatchObject({
      messages: [HI, { role: 'assistant', content: blocks }, { role: 'user' }],
    });
  });

  it('keeps its thoughts when it was streamed and its pieces were only listed', async () => {
    const details: ReasoningDetail[] = [];
    for await (const { choices } of anthropicAdapter.parseStream(streamed(sample('anthropic/tools.sse')))) {
      for (const { delta } of choices) details.push(...(delta.reasoning_details ?? []));
    }
    expect(goingOn({ role: 'assistant', content: 'I look.', reasoning_details: details })).toMatchObject({
      messages: [
        HI,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Two calls.', signature: 'EqQBCgIYAhIM' },
            { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va' },
            text('I look.'),
          ],
        },
        { role: 'user' },
      ],
    });
  });
});
