/** The policy could not be evaluated. Always a denial (503), never a pass; the cause is for the log. */
export class PolicyFailure extends Error {
  override readonly name = 'PolicyFailure';

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}
