/**
 * Whether a parsed JSON value nests objects and arrays deeper than `max` levels. Level by level, without recursion, so that
 * the answer for a hostile value cannot overflow the stack.
 */
export function depthExceeds(value: unknown, max: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    const containers = level.filter((item): item is object => typeof item === 'object' && item !== null);
    if (containers.length > 0 && depth >= max) return true;
    level = containers.flatMap((item) => Object.values(item));
  }
  return false;
}
