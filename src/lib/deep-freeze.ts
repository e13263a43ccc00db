/** Freezes a value and all that it holds, but for buffers, which cannot be frozen. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value;
  for (const each of Array.isArray(value) ? value : Object.values(value)) deepFreeze(each);
  return Object.freeze(value);
}
