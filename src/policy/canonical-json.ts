/** What canonical texts are made of. Objects are maps, so that no key (`__proto__`) can vanish into a prototype. */
export type Canonical = string | number | true | readonly Canonical[] | ReadonlyMap<string, Canonical>;

/** JSON with sorted keys and no blanks: equal values have equal texts. */
export function canonicalJson(value: Canonical): string {
  if (value instanceof Map) {
    const members = [...value].sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`).join(',')}}`;
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(',')}]`;
  return JSON.stringify(value);
}
