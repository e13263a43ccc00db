/** The command line asks for something that makes no sense: exit code 2, like an unknown option. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
