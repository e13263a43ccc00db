/** Why a policy bundle was refused, in a word. The sentence that goes with it says more. */
export const REFUSAL_CODES = [
  /** Its source did not hand one out. */
  'unreachable',
  /** It is not an archive, is truncated, is too large, or holds more than plain files. */
  'archive',
  'signature',
  /** It is older than one that was in force: its number is lower, or it was in force before. */
  'rollback',
  /** Its manifest, module or data are not those of a policy that this gateway can run. */
  'policy',
  'self_test',
  'fixtures',
  'time_limit',
] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** A bundle may not serve. The message is for the operator, in one line. */
export class BundleRefused extends Error {
  override readonly name = 'BundleRefused';
  readonly code: RefusalCode;

  constructor(code: RefusalCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}
