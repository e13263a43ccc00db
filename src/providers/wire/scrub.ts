import { plainText } from '../../lib/text.ts';

const MAX_INPUT = 4096;
const MAX_OUTPUT = 1000;
const REDACTED = '[redacted]';

/** What looks like a credential: known prefixes, bearer tokens, user information in URLs, key parameters, long hex. */
const CREDENTIALS = [
  /\b(?:bearer|basic)\s+[^\s"',;]{6,}/gi,
  /\b(?:sk|pk|rk|pcl|pclm|pcli|pcls|gsk|xai|hf|nvapi|pplx|ghp|gho|glpat|xox[abp]|r8|fw|csk|tgp|key)[-_][A-Za-z0-9*._-]{6,}/gi,
  /\bAIza[A-Za-z0-9_*-]{6,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9*]{6,}/g,
  /\beyJ[A-Za-z0-9_-]{6,}[A-Za-z0-9_.-]*/g,
  /\/\/[^\s/@]{1,200}@/g,
  /\b(?:api[-_ ]?key|token|secret|password|authorization)["']?\s*[:=]\s*["']?[^\s"',;&]{4,}/gi,
  /\b[0-9a-f]{32,}\b/gi,
];

/** A long word that mixes upper case, lower case and digits, as only random text does. */
const LONG_WORD = /[A-Za-z0-9+/_=-]{32,}/g;

const looksRandom = (word: string): boolean => /[a-z]/.test(word) && /[A-Z]/.test(word) && /[0-9]/.test(word);

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

/**
 * An upstream's text made fit for a caller: one line, bounded, and without anything that looks like a credential
 * (src/core/README.md, "error texts"). `secret` is the one that the request carried.
 */
export function scrub(text: string, secret?: string): string {
  // The secret goes before the text is cut: the cut might leave a part of it that is no longer recognized.
  const withoutSecret = secret === undefined || secret === '' ? text : text.replaceAll(secret, REDACTED);
  let clean = plainText(withoutSecret.slice(0, MAX_INPUT).replace(CONTROL, ' '));
  for (const pattern of CREDENTIALS) clean = clean.replace(pattern, REDACTED);
  clean = clean.replace(LONG_WORD, (word) => (looksRandom(word) ? REDACTED : word)).trim();
  return (clean.length > MAX_OUTPUT ? `${clean.slice(0, MAX_OUTPUT)}…` : clean).toWellFormed();
}
