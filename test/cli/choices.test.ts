// Every option and argument whose values are enumerated refuses another one, and names those that there are (issue 12, 17).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AUDIT_ACTIONS } from '../../src/admin/audit/audit-trail.ts';
import { createProgram } from '../../src/cli/program.ts';
import { RULE_TYPES } from '../../src/domain/iam-rule.ts';
import { type CommandLine, createCommandLine } from './command-line.ts';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

type Command = ReturnType<typeof createProgram>;

const STATUS = 'active, inactive';
const MODE = 'enforce, report';
const ROLE = 'owner, admin, developer';
const WIRE = 'openai, anthropic, google';

/** The command, its option with the value's name, and the values. */
const OPTIONS: readonly (readonly [command: string, option: string, values: string])[] = [
  ['keys list', '--kind <kind>', 'regular, playground'],
  ['keys roll', '--end-applications <which>', 'registered, all, none'],
  ['rules add', '--mode <mode>', MODE],
  ['rules add', '--status <status>', STATUS],
  ['rules add', '--type <type>', 'free, paid'],
  ['rules update', '--mode <mode>', MODE],
  ['rules update', '--status <status>', STATUS],
  ['rules update', '--type <type>', 'free, paid, none'],
  ['provider-keys add', '--status <status>', STATUS],
  ['provider-keys update', '--status <status>', STATUS],
  ['custom-providers add', '--wire <api>', WIRE],
  ['custom-providers update', '--wire <api>', WIRE],
  ['custom-models add', '--status <status>', STATUS],
  ['custom-models update', '--status <status>', STATUS],
  ['projects create', '--caching <on|off>', 'on, off'],
  ['projects update', '--caching <on|off>', 'on, off'],
  ['members add', '--role <role>', ROLE],
  ['members update', '--role <role>', ROLE],
  ['members invite', '--role <role>', ROLE],
  ['audit list', '--action <action>', AUDIT_ACTIONS.join(', ')],
  ...['calls list', 'calls tail', 'decisions list', 'decisions tail', 'decisions export'].map(
    (command) => [command, '--outcome <outcome>', 'permit, deny'] as const,
  ),
  ...['access', 'models', 'policy diff', 'policy plan', 'policy apply', 'policy explain', 'policy lint'].map(
    (command) => [command, '--against <what>', 'env'] as const,
  ),
  ['policy diff', '--fail-on <what>', 'new-access'],
  ['policy plan', '--fail-on <what>', 'new-access'],
  ['policy apply', '--fail-on <what>', 'new-access'],
  ['policy explain', '--action <action>', 'chat, moderation, image'],
  ['replay', '--fail-on <what...>', 'new-denial, new-access'],
  ['organizations update', '--new-keys <rule>', 'as-most-limited, unlimited'],
  ['usage', '--by <granularity>', 'hour, day, total'],
];

const PRICES =
  'prompt, completion, request, image, input_cache_read, input_cache_write, input_cache_write_1h, internal_reasoning, input_audio, input_audio_cache_read, output_audio, input_image, output_image, per_image, web_search';
const CAPABILITIES = 'streaming, vision, tools, parallel-tool-calls, reasoning, json-output, structured-outputs';

/** The same of what is a list, or more than a word: a wrong value, and what is said of it. */
const LISTS: readonly (readonly [command: string, option: string, value: string, sentence: string])[] = [
  ['rules update', '--rule-type <ruleType>', 'deny', `It must be one of ${RULE_TYPES.join(', ')}.`],
  ['custom-models add', '--price <price>', 'output=1', `The name must be one of ${PRICES}.`],
  ['custom-models add', '--supports <list>', 'tools,flying', `It must be "none" or a comma list of ${CAPABILITIES}.`],
  ['custom-models add', '--input <list>', 'text,smell', 'It must be a comma list of text, image, audio, video, file.'],
  ['custom-models add', '--output <list>', 'text,video', 'It must be a comma list of text, image, audio.'],
  ['replay', '--group-by <dimensions>', 'key,team', 'It must be a comma list of key, member, rule, model.'],
  ['usage', '--group-by <dimensions>', 'key,team', 'It must be a comma list of member, model, provider, project, key.'],
];

const refusal = (what: string) => ({ code: 2, stdout: '', stderr: `portcullis: ${what}\n` });

const runWith = (command: string, option: string, value: string) =>
  portcullis.run(...command.split(' '), ...option.split(' ').slice(0, 1), value);

describe('the command line refuses a wrong value, and names the right ones', () => {
  it.each(OPTIONS)('%s %s', async (command, option, values) => {
    expect(await runWith(command, option, 'wrong')).toEqual(
      refusal(`${option}: 'wrong' is not valid. Allowed choices are ${values}.`),
    );
  });

  it.each(LISTS)('%s %s', async (command, option, value, sentence) => {
    expect(await runWith(command, option, value)).toEqual(refusal(`${option}: '${value}' is not valid. ${sentence}`));
  });

  it.each([
    ['rules add', 'ruleType', `It must be one of ${RULE_TYPES.join(', ')}.`],
    ['organizations set-plan', 'plan', 'Allowed choices are free, pro, enterprise.'],
  ])('%s <%s>', async (command, argument, sentence) => {
    expect(await portcullis.run(...command.split(' '), 'wrong')).toEqual(
      refusal(`<${argument}>: 'wrong' is not valid. ${sentence}`),
    );
  });

  it('for every option that says which values it has', () => {
    const listed = (command: Command, name: string): string[] => [
      ...command.options.filter(({ argChoices }) => argChoices !== undefined).map(({ flags }) => `${name} ${flags}`),
      ...command.commands.flatMap((each) => listed(each, `${name} ${each.name()}`.trim())),
    ];
    expect(listed(createProgram({}), '').sort()).toEqual(
      OPTIONS.map(([command, option]) => `${command} ${option}`).sort(),
    );
  });
});
