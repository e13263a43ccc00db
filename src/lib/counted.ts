/** How many there are of something, in words: `1 key`, `2 keys`. @param many for what takes more than an `s` */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
