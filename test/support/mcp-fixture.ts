import { MissingRequiredClientCapabilityError, type Server, type Tool } from '@modelcontextprotocol/server';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

const TEXT = { type: 'text' as const, text: 'This is a simple text response for testing.' };
const IMAGE = { type: 'image' as const, data: PNG, mimeType: 'image/png' };
const AUDIO = { type: 'audio' as const, data: WAV, mimeType: 'audio/wav' };
const RESOURCE = {
  type: 'resource' as const,
  resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' },
};

/** What the suite calls each tool for. */
const CONTENT = {
  test_simple_text: [TEXT],
  test_image_content: [IMAGE],
  test_audio_content: [AUDIO],
  test_embedded_resource: [RESOURCE],
  test_multiple_content_types: [TEXT, IMAGE, RESOURCE],
  test_error_handling: [{ type: 'text' as const, text: 'This tool intentionally returns an error for testing' }],
  test_tool_with_progress: [TEXT],
  test_missing_capability: [],
  test_streaming_elicitation: [TEXT],
  test_logging_tool: [TEXT],
};

const contentOf = (name: string) => new Map(Object.entries(CONTENT)).get(name) ?? [];

const tools = Object.keys(CONTENT).map(
  (name): Tool => ({ name, description: `For the conformance suite: ${name}.`, inputSchema: { type: 'object' } }),
);

/** Gives the gateway's MCP server the tools that the suite calls, in place of its own, and lists that are empty. */
export function serveFixture(server: Server): void {
  server.registerCapabilities({ prompts: {}, resources: {} });
  server.setRequestHandler('tools/list', () => ({ tools }));
  server.setRequestHandler('prompts/list', () => ({ prompts: [] }));
  server.setRequestHandler('resources/list', () => ({ resources: [] }));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
  server.setRequestHandler('tools/call', async ({ params: { name } }, { mcpReq }) => {
    if (name === 'test_missing_capability') {
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
    }
    const progressToken = mcpReq._meta?.progressToken;
    if (name === 'test_tool_with_progress' && progressToken !== undefined) {
      for (const progress of [0, 50, 100]) {
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      }
    }
    return { content: [...contentOf(name)], ...(name === 'test_error_handling' ? { isError: true } : {}) };
  });
}
