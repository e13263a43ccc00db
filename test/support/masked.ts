const ID = /\b(org|proj|mem|key|mkey|rule|call|dec|prov|req)_[0-9a-f]{32}\b/g;
const ANSWER_ID = /\bchatcmpl-[0-9a-f]{32}\b/g;

const maskText = (text: string): string => text.replace(ID, '<$1>').replace(ANSWER_ID, '<chatcmpl>');

/** The same value with every id of ours as its prefix, so that whole answers can be compared. */
export function masked(value: unknown): unknown {
  if (typeof value === 'string') return maskText(value);
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, masked(item)]));
}
