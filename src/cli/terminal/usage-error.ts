/** The command line asks for something that makes no sense: exit code 2, like an unknown option. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** What commander says of a faulty command line, without its jargon. */
export function inOurWords(text: string): string {
  const said = text.trimEnd().replace(/^error: /, '');
  const value = 'command-argument value ';
  const argument = said.lastIndexOf(" is invalid for argument '");
  if (said.startsWith(value) && argument !== -1) {
    const [, name = '', rest = ''] = /^ is invalid for argument '([^']*)'\.([\s\S]*)$/.exec(said.slice(argument)) ?? [];
    return `<${name}>: ${said.slice(value.length, argument)} is not valid.${rest}`;
  }
  return said.replace(/^option '([^']*)' argument /, '$1: ').replace(' is invalid. ', ' is not valid. ');
}
